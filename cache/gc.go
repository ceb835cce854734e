package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// blobGrace is how long a blob without a result is left alone: an action stores its
	// blobs one after another and then its result. While a build runs, what was stored
	// since it began is left alone however long that takes.
	blobGrace = time.Hour

	// forgetAfter is how long a result without blobs is kept after its last use. It
	// takes a block of the disk, and lets a plan name what comes after it: a thousand
	// actions a day for half a year are some 0.7 GiB.
	forgetAfter = 180 * 24 * time.Hour

	// minSeconds is added to what making a blob took: finding its inputs and storing it
	// durably takes about that much. minBytes is what a file takes at least.
	minSeconds = 0.01
	minBytes   = 4096
)

// Limits say what a gc may leave. The zero value drops only what nothing names any more.
type Limits struct {
	Max    int64         // bytes of the whole store; 0: no limit
	Age    time.Duration // since the last use; 0: no limit
	Free   int64         // bytes that the disk must gain at least
	DryRun bool          // only say what would go

	// Waiting is told who runs a gc already, if anyone does. It may be nil.
	Waiting func(holder string)
}

// Why a blob was dropped.
const (
	DroppedUnnamed = "no result names it"
	DroppedOld     = "not used for long"
	DroppedForRoom = "to make room"
)

// A Dropped is one blob that a gc dropped.
type Dropped struct {
	Digest  Digest
	Size    int64
	Why     string
	Used    time.Time
	Seconds float64 // what making it again takes
	Step    string  // of a result that names it, if any does
	Action  string
}

// A Collection is what came of a gc.
type Collection struct {
	Before, After int64 // bytes of the store
	Dropped       []Dropped
	Forgotten     int   // results without blobs that nothing used for half a year
	Trimmed       int   // records, logs, plans, scratch folders, damaged files
	Pinned, InUse int64 // bytes of blobs that would have gone next but for a pin, or for a running build
	Over          int64 // bytes that are still too many
}

// Bytes returns the size of all that was dropped.
func (c *Collection) Bytes() (n int64) {
	for _, d := range c.Dropped {
		n += d.Size
	}
	return n
}

// Seconds returns how long it takes to make again what was dropped.
func (c *Collection) Seconds() (s float64) {
	for _, d := range c.Dropped {
		s += d.Seconds
	}
	return s
}

// GC drops blobs until the store is within l, those first whose making again costs the
// least per byte and hour without use: see engine/adr/0008. Their results stay as
// tombstones. What a pin names, and what a running build used or stored since it began,
// is not dropped; whoever has a blob open reads on. Other files that were kept long
// enough go too.
//
// It is safe beside builds and another gc, and may be interrupted: what it returns is
// then true of what it did.
func (d *Dir) GC(ctx context.Context, l Limits) (Collection, error) {
	if !l.DryRun {
		unlock, err := d.lockName(WithPurpose(ctx, "bonsai cache gc"), gcLock, l.Waiting)
		switch {
		case err == nil:
			defer unlock()
		case errors.Is(err, ErrReadOnly), ctx.Err() != nil:
			return Collection{}, err
		default: // there are no locks here: two at once may drop more than they need
		}
	}
	s, err := d.Survey(ctx)
	if err != nil {
		return Collection{}, err
	}
	g := &gc{d: d, l: l, s: s, held: heldOf(s)}
	g.c.Before = s.Bytes()
	g.c.After = g.c.Before
	err = g.run(ctx)
	g.c.Over = max(0, g.excess())
	return g.c, err
}

// A gc is one call of GC.
type gc struct {
	d    *Dir
	l    Limits
	s    *Survey
	held held
	c    Collection
	free int64 // bytes that the disk gained
}

// A candidate is a blob that may go.
type candidate struct {
	*StoredBlob
	digest  Digest
	used    time.Time
	seconds float64
	value   float64 // seconds of making it again, per byte and hour without use
	why     string
}

func (g *gc) run(ctx context.Context) error {
	if err := g.trim(ctx); err != nil {
		return err
	}
	var batch []candidate
	planned := int64(0) // bytes in batch
	for _, b := range g.candidates() {
		if b.why = g.reason(b, planned); b.why == "" || g.isKept(b) {
			continue
		}
		batch = append(batch, b)
		planned += g.frees(b)
		if enough := b.why == DroppedForRoom && g.excess() <= planned; len(batch) == gateBatch || enough {
			if err := g.drop(ctx, batch); err != nil {
				return err
			}
			batch, planned = batch[:0], 0
		}
	}
	return g.drop(ctx, batch)
}

// candidates returns all blobs, the one to go first in front.
func (g *gc) candidates() []candidate {
	list := make([]candidate, 0, len(g.s.Blobs))
	for digest, b := range g.s.Blobs {
		if b.lists == 0 { // a chunk goes with the last blob that has it
			list = append(list, g.judge(digest, b))
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.value, b.value), a.used.Compare(b.used), slices.Compare(a.digest[:], b.digest[:]))
	})
	return list
}

// judge finds the value of a blob: that of the result that is most worth keeping, of
// those that name it. Of the results that can make it the quickest counts.
func (g *gc) judge(digest Digest, b *StoredBlob) candidate {
	c := candidate{StoredBlob: b, digest: digest, used: b.Stored}
	for n, i := range b.Results {
		r := &g.s.Results[i]
		if r.Used.After(c.used) {
			c.used = r.Used
		}
		took := r.Took.Seconds() + minSeconds
		if n == 0 || took < c.seconds {
			c.seconds = took
		}
		c.value = max(c.value, value(took, max(r.Bytes(), b.Size), g.s.At.Sub(r.Used)))
	}
	return c
}

// value returns what a gc goes by: the seconds that dropping something costs if it is
// asked for again, for each byte it frees, and for each hour since its last use. For
// what was not used for t is asked for again soon with a chance of about 1/t.
func value(seconds float64, bytes int64, unused time.Duration) float64 {
	return seconds / float64(bytes+minBytes) / (max(unused, 0) + markEvery).Hours()
}

// reason returns why a blob should go, "" if it need not. planned bytes are about to go.
func (g *gc) reason(b candidate, planned int64) string {
	switch unused := g.s.At.Sub(b.used); {
	case len(b.Results) == 0 && g.s.Foreign == 0:
		return DroppedUnnamed // else a result of a later bonsai may name it
	case g.l.Age > 0 && unused > g.l.Age:
		return DroppedOld
	case g.excess() > planned && (b.links < 2 || g.over() > planned):
		return DroppedForRoom
	default:
		return ""
	}
}

// over returns by how much the store is larger than it may be, and excess how many bytes
// must go for that or for the disk. A blob that a user's file shares gives the disk
// nothing back.
func (g *gc) over() int64 {
	if g.l.Max == 0 {
		return 0
	}
	return g.c.After - g.l.Max
}

func (g *gc) excess() int64 { return max(g.over(), g.l.Free-g.free) }

// isKept reports whether a blob must not go, and counts it.
func (g *gc) isKept(b candidate) bool {
	switch {
	case len(b.Pins) > 0:
		if b.why != DroppedUnnamed {
			g.c.Pinned += g.weighs(b)
		}
	case g.held.uses(b.used), len(b.Results) == 0 && (g.isUnsure() || g.s.At.Sub(b.used) < blobGrace):
		g.c.InUse += g.weighs(b)
	default:
		return false
	}
	return true
}

// isUnsure reports whether a blob that no result names may be pinned or in use all the
// same: by one that cannot be read.
func (g *gc) isUnsure() bool { return g.s.Foreign > 0 && (len(g.s.Pins) > 0 || g.held.any) }

// A held is what leases say.
type held struct {
	oldest time.Time // when the oldest running build began
	any    bool
	all    bool // one began in the future: the clock went back, and marks say nothing
}

func heldOf(s *Survey) (h held) {
	for _, l := range s.Leases {
		if !h.any || l.Since.Before(h.oldest) {
			h.any, h.oldest = true, l.Since
		}
		h.all = h.all || l.Since.After(s.At.Add(time.Second))
	}
	return h
}

// uses reports whether a running build may need what was last used at a time.
func (h held) uses(last time.Time) bool {
	return h.all || h.any && !last.Before(h.oldest.Add(-markEvery))
}
