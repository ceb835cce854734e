package cache

import (
	"context"
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

// The waits between two tries for a lock. A system call that waits could not be
// cancelled; a wait this short is not noticed beside an action.
const (
	firstWait = 2 * time.Millisecond
	lastWait  = 200 * time.Millisecond
)

// maxHolder bounds what is read of a lock file, in bytes.
const maxHolder = 1024

// purposeKey is the key of a context's value set by WithPurpose.
type purposeKey struct{}

// WithPurpose names the work that a lock taken under the context is for, such as a
// step. Whoever waits for that lock is told.
func WithPurpose(ctx context.Context, purpose string) context.Context {
	return context.WithValue(ctx, purposeKey{}, purpose)
}

// holderText says who holds a lock: process, host, purpose, since when.
func holderText(ctx context.Context, now time.Time) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	text := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	if purpose, ok := ctx.Value(purposeKey{}).(string); ok {
		text += ", " + purpose
	}
	return text + ", since " + now.Format(time.RFC3339)
}

// Lock waits until no one else, in this process or another, holds k, and holds it
// until unlock is called or the process ends, however it ends. While it waits it
// calls waiting, which may be nil, with a text that says who holds k: once, and again
// when the holder changes. Unlock may be called more than once.
//
// It returns ctx.Err() if ctx is done first. On a file system without locks the first
// call of a Dir returns an ErrNoLocks, to be told once; later ones keep no one out.
func (d *Dir) Lock(ctx context.Context, k Key, waiting func(holder string)) (unlock func(), err error) {
	if d.frozen {
		return nil, d.writeError(ErrReadOnly)
	}
	unlock, err = d.lockPath(ctx, filepath.Join(d.path, locksDir, k.String()), waiting)
	if errors.Is(err, ErrNoLocks) && d.lockless.Swap(true) {
		return func() {}, nil
	}
	return unlock, err
}

// lockPath is Lock of a file.
func (d *Dir) lockPath(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	return (&lockWait{d: d, path: path, tell: waiting, wait: firstWait, most: lastWait}).lock(ctx)
}

// lock waits until the file is locked.
func (w *lockWait) lock(ctx context.Context) (unlock func(), err error) {
	d := w.d
	for {
		f, err := w.try(ctx)
		if err != nil {
			return nil, d.lockError(ctx, err)
		}
		if f != nil {
			writeHolder(f, holderText(ctx, d.now()))
			return sync.OnceFunc(func() { d.unlockFile(f) }), nil
		}
	}
}

func (d *Dir) lockError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.writeError(err)
}

// A lockWait is one call of Lock.
type lockWait struct {
	d    *Dir
	path string
	tell func(holder string)
	told string
	wait time.Duration
	most time.Duration // that wait grows to
}

// try opens the lock file and waits until it is locked. The holder deletes the file
// before letting go: then it is the wrong file, and try returns nil for another try.
func (w *lockWait) try(ctx context.Context) (*disk.File, error) {
	f, err := w.d.openLock(w.path)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := f.TryLock()
		if disk.IsUnsupported(err) {
			w.d.unlockFile(f)
			return nil, fmt.Errorf("%w: %w", ErrNoLocks, err)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		if ok && w.d.isAt(f, w.path) {
			return f, nil
		}
		if ok {
			f.Close()
			return nil, nil
		}
		w.report(f)
		if err := w.sleep(ctx); err != nil {
			f.Close()
			return nil, err
		}
	}
}

// openLock opens a lock file. Its folder is made if someone deleted it.
func (d *Dir) openLock(path string) (*disk.File, error) {
	f, err := d.disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := d.disk.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return d.disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
}

// report tells who holds the lock, if that is news.
func (w *lockWait) report(f *disk.File) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	if holder := string(b); err == nil && holder != "" && holder != w.told && w.tell != nil {
		w.told = holder
		w.tell(holder)
	}
}

func (w *lockWait) sleep(ctx context.Context) error {
	t := time.NewTimer(w.wait)
	defer t.Stop()
	w.wait = min(w.wait*3/2, w.most)
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isAt reports whether path is a name of the open file f.
func (d *Dir) isAt(f *disk.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := d.disk.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// writeHolder writes who holds the lock into its file. A waiter that cannot read it
// waits all the same.
func writeHolder(f *disk.File, text string) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(text), 0)
	}
}

// unlockFile deletes a lock file while its lock is held, then lets go.
func (d *Dir) unlockFile(f *disk.File) {
	d.disk.Remove(f.Name())
	f.Close()
}
