package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// dice gives choices out of bytes, so that a fuzzer can steer them.
type dice struct{ b []byte }

// roll returns a number below n.
func (d *dice) roll(n int) int {
	if len(d.b) == 0 {
		return 0
	}
	x := int(d.b[0])
	d.b = d.b[1:]
	return x % n
}

func (d *dice) done() bool { return len(d.b) == 0 }

// A ref is an input: a source, or an output of an action.
type ref struct{ action, output int } // action -1: source number output

// A toy is an action of a world.
type toy struct {
	seed      int
	in        []ref
	transient []bool
	spread    []int
}

// A world is a graph that can be edited, with what is asked of it.
type world struct {
	dir     string
	sources []string // contents
	toys    []toy
	want    []ref
	fickle  bool
	wrap    func(mix) engine.Op // what an op is made, if set
	act     func(action int) func(context.Context, func(float64, string)) error
}

// newWorld rolls a graph of up to 9 actions.
func newWorld(d *dice, dir string) *world {
	w := &world{dir: dir}
	for i := range d.roll(3) {
		w.sources = append(w.sources, fmt.Sprint("source ", i))
	}
	for i := range 1 + d.roll(9) {
		w.toys = append(w.toys, w.newToy(d, i))
	}
	w.wish(d)
	return w
}

func (w *world) newToy(d *dice, i int) toy {
	t := toy{seed: i}
	for range d.roll(4) {
		if r, ok := w.anyRef(d, i); ok {
			t.in = append(t.in, r)
		}
	}
	kinds := d.roll(8) // mostly one output
	for range 1 + kinds/6 {
		transient := d.roll(2) == 1
		spread := 0
		if !transient { // bytes of transient outputs are all different
			spread = d.roll(4)
		}
		t.transient, t.spread = append(t.transient, transient), append(t.spread, spread)
	}
	return t
}

// anyRef rolls an input for action i.
func (w *world) anyRef(d *dice, i int) (ref, bool) {
	n := d.roll(len(w.sources) + 2*i + 1)
	if n < len(w.sources) {
		return ref{-1, n}, true
	}
	if i == 0 {
		return ref{}, false
	}
	a := i - 1 - (n-len(w.sources))/2%i // near ones are likelier
	return ref{a, d.roll(len(w.toys[a].transient))}, true
}

// wish rolls what is wanted.
func (w *world) wish(d *dice) {
	w.want = nil
	for range 1 + d.roll(2) {
		a := len(w.toys) - 1 - d.roll(len(w.toys))
		w.want = append(w.want, ref{a, d.roll(len(w.toys[a].transient))})
	}
}

// edit rolls one change.
func (w *world) edit(d *dice, s *shaky) {
	switch a := d.roll(len(w.toys)); d.roll(8) {
	case 0:
		w.toys[a].seed = 100*(1+d.roll(3)) + a
	case 1, 2:
		if len(w.sources) > 0 {
			w.sources[d.roll(len(w.sources))] = edited(d.roll(4))
		}
	case 3:
		if r, ok := w.anyRef(d, a); ok && len(w.toys[a].in) > 0 {
			w.toys[a].in[d.roll(len(w.toys[a].in))] = r
		}
	case 4:
		w.wish(d)
	case 5:
		if blobs := sorted(s.made); len(blobs) > 0 {
			_ = s.Mem.Remove(blobs[d.roll(len(blobs))])
		}
	case 6:
		if blobs := sorted(s.made); len(blobs) > 0 {
			s.bad[blobs[d.roll(len(blobs))]] = true
		}
	case 7:
		keys := slices.SortedFunc(maps.Keys(s.keys), func(a, b cache.Key) int { return slices.Compare(a[:], b[:]) })
		if len(keys) > 0 {
			s.lost[keys[d.roll(len(keys))]] = true
		}
	}
}

// edited returns what a source holds after an edit. Each is of another length: two writes of
// the same length within a tick of the file system's clock cannot be told apart without
// reading the file, and random lives edit a thousand times as fast as people do.
func edited(n int) string { return "edit" + strings.Repeat("!", n) }

func sorted(m map[cache.Digest]bool) []cache.Digest {
	return slices.SortedFunc(maps.Keys(m), func(a, b cache.Digest) int { return slices.Compare(a[:], b[:]) })
}

// op returns the op of action i. Its seed tells the actions of a world apart.
func (w *world) op(i int, c *tally) mix {
	m := mix{Seed: w.toys[i].seed, Spread: w.toys[i].spread, tally: c, fickle: w.fickle}
	if w.act != nil {
		m.act = w.act(i)
	}
	return m
}

// graph returns the world as a graph, and the artifacts that are wanted.
func (w *world) graph(t testing.TB, c *tally) (*engine.Graph, []*engine.Artifact) {
	t.Helper()
	g := &engine.Graph{}
	var sources []*engine.Artifact
	for i, text := range w.sources {
		sources = append(sources, g.Source(file(t, w.dir, fmt.Sprint("source", i), text)))
	}
	var made [][]*engine.Artifact
	at := func(r ref) *engine.Artifact {
		if r.action < 0 {
			return sources[r.output]
		}
		return made[r.action][r.output]
	}
	for i, toy := range w.toys {
		a := engine.Action{Step: fmt.Sprint("toy ", i), Op: w.op(i, c)}
		if w.wrap != nil {
			a.Op = w.wrap(w.op(i, c))
		}
		for _, r := range toy.in {
			a.In = append(a.In, at(r))
		}
		for o, transient := range toy.transient {
			a.Outputs = append(a.Outputs, engine.Output{Name: fmt.Sprint(o), Transient: transient})
		}
		made = append(made, g.Add(a))
	}
	var want []*engine.Artifact
	for _, r := range w.want {
		want = append(want, at(r))
	}
	return g, want
}

// cold computes an artifact's bytes from nothing.
func (w *world) cold(r ref) []byte {
	if r.action < 0 {
		return []byte(w.sources[r.output])
	}
	var in [][]byte
	for _, i := range w.toys[r.action].in {
		in = append(in, w.cold(i))
	}
	return w.op(r.action, nil).output(r.output, in)
}

// checkBuild builds a world in whatever state the store is, and checks all that a build
// promises.
func (w *world) checkBuild(t *testing.T, s *shaky, workers int) {
	t.Helper()
	c := newTally()
	g, want := w.graph(t, c)
	opt := options(s)
	opt.Workers = workers

	before := s.writes.Load()
	p := plan(t, g, opt, want...)
	if n := s.writes.Load() - before; n != 0 {
		t.Errorf("MakePlan wrote %d times", n)
	}
	outs := build(t, g, opt, want...)
	for i, r := range w.want {
		if got, cold := read(t, s, outs[i].Digest), string(w.cold(r)); got != cold {
			t.Errorf("wanted %v: warm build gives %q, cold build %q", r, got, cold)
		}
	}
	ran := c.take()
	w.checkPlan(t, p, ran)
	w.checkTransients(t, s, ran)

	p = plan(t, g, opt, want...)
	build(t, g, opt, want...)
	if again := c.take(); len(again) > 0 {
		t.Errorf("second build ran %v", again)
	}
	for _, e := range p.Entries {
		if e.Status != engine.Hit {
			t.Errorf("plan of the second build: %s: %v %v", e.Step, e.Status, e.Reasons)
		}
	}
}

// checkPlan compares a plan with what ran after it.
func (w *world) checkPlan(t *testing.T, p *engine.Plan, ran map[int]int) {
	t.Helper()
	status := make(map[int]engine.Status)
	// Bytes that are missing may come back as those of another action.
	missing := slices.ContainsFunc(p.Entries, func(e engine.Entry) bool {
		return slices.ContainsFunc(e.Reasons, func(r engine.Reason) bool {
			return r.Kind == engine.Missing || r.Kind == engine.Evicted && r.Old != ""
		})
	})
	for _, e := range p.Entries {
		var i int
		if _, err := fmt.Sscanf(e.Step, "toy %d", &i); err != nil {
			t.Fatal(err)
		}
		status[w.toys[i].seed] = e.Status
		if e.Status != engine.Hit && len(e.Reasons) == 0 {
			t.Errorf("plan gives no reason why %s is %v", e.Step, e.Status)
		}
		if e.Status == engine.Run && ran[w.toys[i].seed] == 0 && !missing {
			t.Errorf("plan says that %s runs, and it did not: %v", e.Step, e.Reasons)
		}
	}
	for seed, n := range ran {
		if n > 1 {
			t.Errorf("the op with seed %d ran %d times in one build", seed, n)
		}
		if st, ok := status[seed]; !ok || st == engine.Hit {
			t.Errorf("the op with seed %d ran; in the plan it is %v (%v)", seed, st, ok)
		}
	}
	if causes := slices.ContainsFunc(p.Entries, func(e engine.Entry) bool { return e.Cause }); !causes && len(ran) > 0 {
		t.Errorf("%d actions ran and the plan names no cause", len(ran))
	}
}

// checkTransients checks that a build leaves no transient bytes that it made.
func (w *world) checkTransients(t *testing.T, s *shaky, ran map[int]int) {
	t.Helper()
	for i, toy := range w.toys {
		for o, transient := range toy.transient {
			r := ref{i, o}
			if !transient || ran[toy.seed] == 0 || slices.Contains(w.want, r) {
				continue
			}
			if _, err := s.Stat(cache.DigestOf(w.cold(r))); !errors.Is(err, cache.ErrMiss) {
				t.Errorf("transient output %v is still in the store (%v)", r, err)
			}
		}
	}
}

// life rolls a world, builds it, edits it, builds it again, and so on. It returns the
// number of edits.
func life(t *testing.T, b []byte) (edited int) {
	d := &dice{b}
	w, s := newWorld(d, t.TempDir()), newShaky()
	w.checkBuild(t, s, 1+d.roll(3))
	for edits := 0; !d.done() && edits < 8 && !t.Failed(); edits++ {
		for range 1 + d.roll(3) {
			w.edit(d, s)
			edited++
		}
		w.checkBuild(t, s, 1+d.roll(3))
	}
	return edited
}

// FuzzBuild checks the one promise of an incremental build. After any edit, of settings,
// files, wiring or wishes, and after any damage to the store: a warm build gives the
// bytes that a cold one gives, runs no action twice, runs nothing that the plan did
// not announce, and then there is nothing left to run.
func FuzzBuild(f *testing.F) {
	f.Add([]byte("a few bytes that make a small world"))
	f.Fuzz(func(t *testing.T, b []byte) { life(t, b) })
}

func TestRandomLives(t *testing.T) {
	lives := 400
	if testing.Short() {
		lives = 50
	}
	edits := 0
	for seed := range lives {
		b := make([]byte, 40+seed%200)
		rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
		_, _ = rng.Read(b)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { edits += life(t, b) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d lives with %d edits", lives, edits)
}
