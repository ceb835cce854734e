package cache

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"bonsai/cache/disk"
)

// gateBatch is how many blobs a gc drops at the gate at once: some milliseconds.
const gateBatch = 32

// errInUse says that a blob is used by someone after all.
var errInUse = errors.New("in use")

// drop drops blobs, but for those that a build began to use since the survey. It does
// so while no lease and no pin can be made; between two batches they can.
func (g *gc) drop(ctx context.Context, batch []candidate) error {
	if len(batch) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.l.DryRun {
		for _, b := range batch {
			g.dropped(b)
		}
		return nil
	}
	if len(g.c.Dropped) > 0 {
		if err := letPass(ctx); err != nil {
			return err
		}
	}
	defer g.d.gate()()
	if err := g.look(); err != nil {
		return err
	}
	for _, b := range batch {
		if len(b.Pins) > 0 || g.held.uses(b.used) {
			g.c.InUse += g.weighs(b)
			continue
		}
		err := g.evict(b)
		switch {
		case errors.Is(err, errInUse):
			g.c.InUse += g.weighs(b)
		case err != nil:
			return g.d.writeError(err)
		default:
			g.dropped(b)
		}
	}
	return nil
}

// dropped counts a blob that went.
func (g *gc) dropped(b candidate) {
	g.c.After -= b.Size
	if b.links < 2 {
		g.free += b.Size
	}
	d := Dropped{Digest: b.digest, Size: b.Size + g.dropChunks(b), Why: b.why, Used: b.used, Seconds: b.seconds}
	if len(b.Results) > 0 {
		r := &g.s.Results[b.Results[0]]
		d.Step, d.Action = r.Step, r.Action
	}
	g.c.Dropped = append(g.c.Dropped, d)
}

// frees returns how many bytes dropping a blob frees: those of chunks that another blob
// has are not among them.
func (g *gc) frees(b candidate) int64 {
	n := b.Size
	for _, digest := range b.chunks {
		if c := g.s.Blobs[digest]; c != nil && c.lists == 1 && !g.isChunkKept(c) {
			n += c.Size
		}
	}
	return n
}

// weighs returns how many bytes are in the store for a blob alone, whether or not they
// can go now.
func (g *gc) weighs(b candidate) int64 {
	n := b.Size
	for _, digest := range b.chunks {
		if c := g.s.Blobs[digest]; c != nil && c.lists == 1 && !c.direct {
			n += c.Size
		}
	}
	return n
}

// isChunkKept reports whether a chunk stays although no list names it: it is a blob by
// itself, or someone stores another blob that has it. A later gc drops it then.
func (g *gc) isChunkKept(c *StoredBlob) bool {
	return c.direct || len(c.Pins) > 0 || g.held.uses(c.Stored) ||
		len(c.Results) == 0 && g.s.At.Sub(c.Stored) < blobGrace
}

// dropChunks drops the chunks of a blob that went, but for those that another has, and
// returns how many bytes that frees. One that cannot be dropped is left for a later gc.
func (g *gc) dropChunks(b candidate) (n int64) {
	for _, digest := range b.chunks {
		c := g.s.Blobs[digest]
		if c == nil {
			continue
		}
		if c.lists--; c.lists > 0 || g.isChunkKept(c) {
			continue
		}
		if !g.l.DryRun && g.d.take(candidate{StoredBlob: c, digest: digest}) != nil {
			continue
		}
		delete(g.s.Blobs, digest)
		n += c.Size
		g.c.After -= c.Size
		if c.links < 2 {
			g.free += c.Size
		}
	}
	return n
}

// look reads leases and pins again, at the gate.
func (g *gc) look() (err error) {
	now := Survey{At: g.d.now(), Results: g.s.Results, Blobs: g.s.Blobs}
	if now.Leases, err = g.d.Leases(); err != nil {
		return err
	}
	g.s.Leases, g.held = now.Leases, heldOf(&now)
	if now.Pins, err = g.d.Pins(); err != nil {
		return err
	}
	if !samePins(now.Pins, g.s.Pins) {
		for _, b := range g.s.Blobs {
			b.Results, b.Pins = nil, nil
		}
		now.connect()
		g.s.Pins = now.Pins
	}
	return nil
}

func samePins(a, b []Pin) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !a[i].At.Equal(b[i].At) {
			return false
		}
	}
	return true
}

// evict makes the results that name a blob tombstones, and then removes it: a gc that
// dies in between leaves a blob that is there although its results say it went, which
// is no harm.
//
// On a full disk no tombstone can be written: then the blob goes first, and one that
// gc does not live to write costs a warning of the next build.
func (g *gc) evict(b candidate) error {
	for _, i := range b.Results {
		r := &g.s.Results[i]
		if !r.Evicted.IsZero() && !r.buried && !g.d.isAsFound(r) {
			return errInUse // what it names came back, and a build relies on that
		}
		if r.Evicted.IsZero() {
			err := g.d.bury(r)
			if disk.IsFull(err) || errors.Is(err, ErrFull) {
				if err = g.d.take(b); err == nil {
					err = g.d.bury(r)
				}
			}
			if err != nil {
				return err
			}
			r.Evicted, r.buried = g.d.now(), true
		}
	}
	return g.d.take(b)
}

// isAsFound reports whether nobody used or changed a result since the survey. One that is
// gone nobody uses.
func (d *Dir) isAsFound(s *Stored) bool {
	fi, err := d.disk.Stat(d.resultPath(s.Key))
	return errors.Is(err, fs.ErrNotExist) || err == nil && fi.ModTime().Equal(s.Used)
}

// bury makes a result a tombstone. It returns errInUse if someone works on its key, or
// used or changed it since the survey. A result that is gone needs none.
func (d *Dir) bury(s *Stored) error {
	unlock, err := d.tryLockKey(s.Key)
	if err != nil {
		return err
	}
	defer unlock()
	path := d.resultPath(s.Key)
	r, fi, err := d.peek(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return errInUse // damaged: whoever looks it up next sets it aside
	case !fi.ModTime().Equal(s.Used):
		return errInUse
	}
	r.Evicted = d.now()
	b, err := encodeResult(r)
	if err != nil {
		return err
	}
	return d.writeFileAt(path, b, s.Used)
}

// take removes a blob, unless it was stored anew since the survey. It has another name
// when its time is looked at, so that whoever stores the same bytes either renews it
// before, which is seen, or finds none and stores its own.
func (d *Dir) take(b candidate) error {
	path := d.blobPath(b.digest)
	if b.chunks != nil {
		path = d.listPath(b.digest)
	}
	trash := filepath.Join(d.path, tempDir, "gc-"+b.digest.String())
	if _, err := d.disk.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := d.rename(path, trash); err != nil {
		return err
	}
	if fi, err := d.disk.Lstat(trash); err == nil && !fi.ModTime().Equal(b.Stored) {
		if err := d.disk.Rename(trash, path); err != nil {
			return err
		}
		return errInUse
	}
	return d.disk.Remove(trash)
}
