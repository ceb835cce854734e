package cache

import (
	"context"
	"path/filepath"
	"time"
)

// The names of locks that are of no key.
const (
	gateLock = "gate" // held while a lease or a pin is written, and while gc drops a few blobs
	gcLock   = "gc"   // held by a gc, all along
)

// gateWait is how long a build waits at the gate: gc passes in milliseconds, unless its
// process was stopped in the middle. What that costs is a blob that is made again.
const gateWait = 10 * time.Second

// gateTry is the wait between two tries at the gate, which is never closed for long.
const gateTry = 2 * time.Millisecond

// gate keeps gc from dropping anything between its look at leases and pins and its
// deed, until open is called. Where there are no locks it does nothing.
func (d *Dir) gate() (open func()) {
	ctx, cancel := context.WithTimeout(context.Background(), gateWait)
	defer cancel()
	if d.frozen {
		return func() {}
	}
	w := &lockWait{d: d, path: filepath.Join(d.path, locksDir, gateLock), wait: gateTry, most: gateTry}
	open, err := w.lock(ctx)
	if err != nil {
		return func() {}
	}
	return open
}

// letPass leaves the gate open for long enough that whoever waits there gets in.
func letPass(ctx context.Context) error {
	t := time.NewTimer(2 * gateTry)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lockName is Lock of a name that is no key.
func (d *Dir) lockName(ctx context.Context, name string, waiting func(holder string)) (unlock func(), err error) {
	if d.frozen {
		return nil, d.writeError(ErrReadOnly)
	}
	return d.lockPath(ctx, filepath.Join(d.path, locksDir, name), waiting)
}

// tryLockKey is Lock without the wait: errInUse if someone holds k.
func (d *Dir) tryLockKey(k Key) (unlock func(), err error) {
	f, err := d.openLock(filepath.Join(d.path, locksDir, k.String()))
	if err != nil {
		return nil, err
	}
	ok, err := f.TryLock()
	if err != nil { // there are no locks here
		f.Close()
		return func() {}, nil //nolint:nilerr // and then nobody holds one
	}
	if !ok || !d.isAt(f, f.Name()) {
		f.Close()
		return nil, errInUse
	}
	writeHolder(f, holderText(WithPurpose(context.Background(), "bonsai cache gc"), d.now()))
	return func() { d.unlockFile(f) }, nil
}
