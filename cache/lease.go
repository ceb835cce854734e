package cache

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bonsai/cache/disk"
)

// maxLease bounds what is read of a lease, in bytes.
const maxLease = 4096

// A Lease says that a build runs: nothing that was used since it began is dropped to
// make room.
type Lease struct {
	Process int       `json:"process"`
	Host    string    `json:"host"`
	Purpose string    `json:"purpose"` // such as "bonsai build target=gguf"
	Since   time.Time `json:"since"`
}

// String says whose it is, as the text of a lock does.
func (l Lease) String() string {
	return fmt.Sprintf("process %d on %s, %s, since %s", l.Process, l.Host, l.Purpose, l.Since.Format(time.RFC3339))
}

// Hold says that this process begins to build, until release is called or the process
// ends, however it ends. Nothing that is used or stored from now on is dropped by gc
// before that. Release may be called more than once.
func (d *Dir) Hold(purpose string) (release func(), err error) {
	if d.frozen {
		return nil, d.writeError(ErrReadOnly)
	}
	defer d.gate()()
	f, err := d.newLease()
	if err != nil {
		return nil, d.writeError(err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	b, err := json.Marshal(Lease{Process: os.Getpid(), Host: host, Purpose: purpose, Since: d.now().UTC()})
	if err == nil {
		_, err = f.Write(b)
		_ = d.disk.Chtimes(f.Name(), d.now()) // the clock is the caller's: see lease
	}
	if err != nil {
		d.unlockFile(f)
		return nil, d.writeError(err)
	}
	return sync.OnceFunc(func() { d.unlockFile(f) }), nil
}

// newLease makes a lease file and locks it. Another process may take it for that of a
// dead one before it is locked, and delete it: then it is made again.
func (d *Dir) newLease() (*disk.File, error) {
	for {
		path := filepath.Join(d.path, leasesDir, fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()))
		f, err := d.openLock(path)
		if err != nil {
			return nil, err
		}
		ok, err := f.TryLock()
		if disk.IsUnsupported(err) {
			return f, nil // it counts for as long as any build may run: see isLeft
		}
		if err != nil {
			d.unlockFile(f)
			return nil, err
		}
		if ok && d.isAt(f, path) {
			return f, nil
		}
		f.Close()
	}
}

// Leases returns those of the builds that run now.
func (d *Dir) Leases() ([]Lease, error) {
	entries, err := d.disk.ReadDir(filepath.Join(d.path, leasesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var leases []Lease
	for _, e := range entries {
		l, held, err := d.lease(filepath.Join(d.path, leasesDir, e.Name()))
		if err != nil {
			return nil, err
		}
		if held {
			leases = append(leases, l)
		}
	}
	return leases, nil
}

// lease reads a lease, and reports whether its process lives. The lease of a dead one is
// deleted.
func (d *Dir) lease(path string) (l Lease, held bool, err error) {
	f, err := d.disk.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Lease{}, false, nil
	}
	if err != nil {
		return Lease{}, false, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return Lease{}, false, err
	}
	if d.isLeft(f, fi) {
		if !d.frozen {
			d.disk.Remove(path)
		}
		return Lease{}, false, nil
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLease))
	if err != nil || json.Unmarshal(b, &l) != nil {
		l = Lease{Host: "unknown host", Purpose: "unknown purpose", Since: fi.ModTime()} // being written, or damaged
	}
	if at := fi.ModTime().UTC(); at.Before(l.Since) {
		l.Since = at
	}
	return l, true, nil
}
