package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// checkFickle builds a world of ops that give other bytes in each run, over a store that
// loses blobs while the build runs, and checks what a build still promises: each result
// is recorded under the names of what was read, and soon there is nothing left to run.
func (w *world) checkFickle(t *testing.T, s *shaky, c *tally, workers int) {
	t.Helper()
	g, want := w.graph(t, c)
	seeds := make(map[string]int)
	for i, toy := range w.toys {
		seeds[fmt.Sprint("toy ", i)] = toy.seed
	}
	opt := options(s)
	opt.Workers = workers
	opt.Emit = func(e engine.Event) {
		if e, ok := e.(engine.Finished); ok && !e.Hit {
			checkReads(t, e, c.lastRead(seeds[e.Step]))
		}
	}
	for range 4 {
		c.take()
		outs := build(t, g, opt, want...)
		s.vanish = nil
		for i, out := range outs {
			if size, err := s.Stat(out.Digest); err != nil || size != out.Size {
				t.Errorf("wanted %v is not in the store: %v", w.want[i], err)
			}
		}
		if len(c.runs) == 0 {
			return
		}
	}
	t.Errorf("after four builds there is still something to run: %v", c.runs)
}

// checkReads compares the names in a manifest with what the op read.
func checkReads(t *testing.T, e engine.Finished, reads []cache.Digest) {
	t.Helper()
	for i, d := range reads {
		line := fmt.Sprintf("\nin %d digest ", i)
		_, named, ok := strings.Cut(e.Result.Manifest, line)
		if ok && !strings.HasPrefix(named, d.String()) {
			t.Errorf("%s read %s as input %d, and its manifest is\n%s", e.Step, d, i, e.Result.Manifest)
		}
	}
}

func fickleLife(t *testing.T, b []byte) (edited int) {
	d := &dice{b}
	s, c := newShaky(), newTally()
	w := newWorld(d, t.TempDir())
	w.fickle = true
	for i := range w.toys { // ops that are not deterministic must not mix the two: adr 0002
		for o := range w.toys[i].transient {
			w.toys[i].transient[o] = w.toys[i].transient[0]
		}
	}
	for edits := 0; edits < 8 && !t.Failed(); edits++ {
		s.vanish = make([]byte, d.roll(30))
		for i, left := 0, 2; i < len(s.vanish); i++ { // a third loss could be one too many
			s.vanish[i] = 1
			if left > 0 && d.roll(4) == 0 {
				s.vanish[i] = 0
				left--
			}
		}
		w.checkFickle(t, s, c, 1+d.roll(3))
		if d.done() {
			break
		}
		for range 1 + d.roll(3) {
			w.edit(d, s)
			edited++
		}
	}
	return edited
}

// FuzzFickle checks builds whose ops are not deterministic and whose store loses blobs.
func FuzzFickle(f *testing.F) {
	f.Add([]byte("a few bytes that make a small world"))
	f.Fuzz(func(t *testing.T, b []byte) { fickleLife(t, b) })
}

func TestRandomFickleLives(t *testing.T) {
	lives := 400
	if testing.Short() {
		lives = 50
	}
	edits := 0
	for seed := range lives {
		b := make([]byte, 60+seed%200)
		_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(b)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { edits += fickleLife(t, b) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d lives with %d edits", lives, edits)
}
