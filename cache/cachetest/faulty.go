package cachetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"bonsai/cache/disk"
)

// errKilled is the error of every call from the one at which a Faulty crashed.
var errKilled = errors.New("process was killed")

// IsKilled reports whether err comes of a crash.
func IsKilled(err error) bool { return errors.Is(err, errKilled) }

// A tornError is that of a write that wrote n bytes.
type tornError struct {
	error
	n int
}

// Torn implements what disk.Disk asks of errors.
func (e tornError) Torn() int { return e.n }

// Unwrap returns the error of the call.
func (e tornError) Unwrap() error { return e.error }

// A Faulty is a disk of this machine whose calls can be made to fail. It counts them
// from 1. A write that fails has written half of its bytes. It is safe for concurrent
// use.
type Faulty struct {
	t  testing.TB
	mu sync.Mutex

	calls   int
	failAt  int // 0: never
	failErr error
	crashAt int // 0: never
	hit     disk.Call
	refused map[disk.Op]error

	unsynced map[string]bool // files with bytes that are not durable
	unnamed  map[string]bool // files with a name that is not durable
}

// NewFaulty returns a disk on which nothing fails yet.
func NewFaulty(t testing.TB) *Faulty {
	f := &Faulty{t: t}
	f.Reset()
	return f
}

// Reset counts from 0 again and forgets all faults, as another process on a healthy
// disk does. What is not durable stays so.
func (f *Faulty) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.failAt, f.failErr, f.crashAt, f.hit = 0, 0, nil, 0, disk.Call{}
	f.refused = make(map[disk.Op]error)
	if f.unsynced == nil {
		f.unsynced, f.unnamed = make(map[string]bool), make(map[string]bool)
	}
}

// Disk returns the disk, for cache.Options.
func (f *Faulty) Disk() *disk.Disk { return &disk.Disk{Before: f.before} }

// Calls returns the number of calls since Reset.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// FailAt makes the n-th call since Reset fail with err, and no other.
func (f *Faulty) FailAt(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt, f.failErr = n, err
}

// CrashAt makes the n-th call since Reset and all later ones fail as if the process were dead.
func (f *Faulty) CrashAt(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashAt = n
}

// Refuse makes every call of a kind fail with err, as a file system that lacks it.
func (f *Faulty) Refuse(op disk.Op, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused[op] = err
}

// Hit returns the call at which FailAt or CrashAt struck; ok is false before that.
func (f *Faulty) Hit() (c disk.Call, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit, f.hit.Op != ""
}

func (f *Faulty) before(c disk.Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	err := f.fault(c)
	switch {
	case err == nil || c.Op == disk.Close:
	case c.Op == disk.Write && (f.crashAt == 0 || f.calls <= f.crashAt):
		err = tornError{err, c.Size / 2}
	default:
		return err
	}
	f.track(c)
	return err
}

func (f *Faulty) fault(c disk.Call) error {
	switch {
	case f.crashAt > 0 && f.calls >= f.crashAt:
		if f.calls == f.crashAt {
			f.hit = c
		}
		return errKilled
	case f.calls == f.failAt:
		f.hit = c
		return f.failErr
	default:
		return f.refused[c.Op]
	}
}

// track keeps what a loss of power would undo.
func (f *Faulty) track(c disk.Call) {
	switch c.Op { //nolint:exhaustive // the others have nothing to lose
	case disk.Write, disk.Truncate:
		f.unsynced[c.Path] = true
	case disk.Sync:
		delete(f.unsynced, c.Path)
	case disk.Remove:
		delete(f.unsynced, c.Path)
		delete(f.unnamed, c.Path)
	case disk.MkdirAll:
		for path := c.Path; isMissing(path); path = filepath.Dir(path) {
			f.unnamed[path] = true
		}
	case disk.Rename:
		if isMissing(c.To) {
			f.unnamed[c.To] = true
		}
		f.unsynced[c.To] = f.unsynced[c.Path]
		delete(f.unsynced, c.Path)
		delete(f.unnamed, c.Path)
	case disk.SyncDir:
		for path := range f.unnamed {
			if filepath.Dir(path) == c.Path {
				delete(f.unnamed, path)
			}
		}
	}
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// LosePower takes away what no call has made durable: files and folders that were given
// a name have none, and files that were written to are half as long. To be called when no
// file is open.
func (f *Faulty) LosePower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path := range f.unnamed {
		if err := os.RemoveAll(path); err != nil {
			f.t.Error(err)
		}
	}
	for path, bad := range f.unsynced {
		fi, err := os.Lstat(path)
		if !bad || err != nil {
			continue
		}
		if err := errors.Join(os.Chmod(path, 0o666), os.Truncate(path, fi.Size()/2)); err != nil {
			f.t.Errorf("lose half of %s: %v", path, err)
		}
	}
	clear(f.unnamed)
	clear(f.unsynced)
}
