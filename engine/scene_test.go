package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// A scene is a store and a graph that a test adds to action by action. Each action has a
// number that stands for its op in the tally.
type scene struct {
	t     *testing.T
	dir   string
	store *shaky
	tally *tally
	graph *engine.Graph
	opt   engine.Options

	mu     sync.Mutex // of events, for ops that look at them
	events []engine.Event
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, dir: t.TempDir(), store: newShaky(), tally: newTally(), graph: &engine.Graph{}}
	s.opt = options(s.store)
	s.opt.Emit = func(e engine.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
		if e, ok := e.(engine.Finished); ok && !e.Hit {
			s.honest(e)
		}
	}
	return s
}

// honest checks that the manifest of a run names what its op read.
func (s *scene) honest(e engine.Finished) {
	s.t.Helper()
	var seed int
	if _, err := fmt.Sscanf(e.Result.Manifest, "op mix v1\nset Seed %d", &seed); err == nil {
		checkReads(s.t, e, s.tally.lastRead(seed))
	}
}

// forgetStep removes what a step wrote in this build.
func (s *scene) forgetStep(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e, ok := e.(engine.Finished); ok && e.Step == step && !e.Hit {
			s.forget(e.Result.Outputs...)
		}
	}
}

// again starts a new graph over the same store: the next build of an edited recipe.
func (s *scene) again() {
	s.graph, s.events = &engine.Graph{}, nil
	s.tally.take()
}

// A change is a change to an action that add makes.
type change func(*engine.Action)

func transient(a *engine.Action) {
	for i := range a.Outputs {
		a.Outputs[i].Transient = true
	}
}

// few makes the outputs take only n values.
func few(n int) change {
	return func(a *engine.Action) {
		m := a.Op.(mix)
		m.Spread = slices.Repeat([]int{n}, len(m.Spread))
		a.Op = m
	}
}

// doing makes the op do f before it writes.
func doing(f func(ctx context.Context, report func(float64, string)) error) change {
	return func(a *engine.Action) {
		m := a.Op.(mix)
		m.act = f
		a.Op = m
	}
}

func inPool(name string) change { return func(a *engine.Action) { a.Pool = name } }
func peak(n int64) change       { return func(a *engine.Action) { a.Peak = n } }

func outputs(n int) change {
	return func(a *engine.Action) {
		m := a.Op.(mix)
		m.Spread = make([]int, n)
		a.Op, a.Outputs = m, nil
		for i := range n {
			a.Outputs = append(a.Outputs, engine.Output{Name: fmt.Sprint("o", i)})
		}
	}
}

// add adds an action with one output, and returns that.
func (s *scene) add(step string, seed int, in []*engine.Artifact, changes ...change) *engine.Artifact {
	return s.addAll(step, seed, in, changes...)[0]
}

func (s *scene) addAll(step string, seed int, in []*engine.Artifact, changes ...change) []*engine.Artifact {
	a := engine.Action{
		Step: step, Op: mix{Seed: seed, Spread: []int{0}, tally: s.tally},
		In: in, Outputs: []engine.Output{{}},
	}
	for _, c := range changes {
		c(&a)
	}
	return s.graph.Add(a)
}

// source makes the file "text" and returns it as an artifact.
func (s *scene) source(text string) *engine.Artifact {
	return s.graph.Source(file(s.t, s.dir, "text", text))
}

func (s *scene) build(want ...*engine.Artifact) []cache.Output {
	s.t.Helper()
	return build(s.t, s.graph, s.opt, want...)
}

func (s *scene) plan(want ...*engine.Artifact) *engine.Plan {
	s.t.Helper()
	return plan(s.t, s.graph, s.opt, want...)
}

// fails builds and returns the error that must come.
func (s *scene) fails(want ...*engine.Artifact) error {
	s.t.Helper()
	_, err := engine.Build(s.t.Context(), s.graph, want, s.opt)
	if err == nil {
		s.t.Fatal("Build returned no error")
	}
	return err
}

// ran checks which ops ran since the last look, once each.
func (s *scene) ran(seeds ...int) {
	s.t.Helper()
	runs := s.tally.take()
	for _, seed := range seeds {
		if runs[seed] != 1 {
			s.t.Errorf("op %d ran %d times, want once (of all: %v)", seed, runs[seed], runs)
		}
		delete(runs, seed)
	}
	if len(runs) > 0 {
		s.t.Errorf("ops %v ran too", runs)
	}
}

// story returns the events as lines, without hashing and progress.
func (s *scene) story() string {
	var b strings.Builder
	for _, e := range s.events {
		switch e := e.(type) {
		case engine.Started:
			fmt.Fprintf(&b, "started %s%v\n", e.Step, e.Reasons)
		case engine.Finished:
			fmt.Fprintf(&b, "finished %s hit=%v\n", e.Step, e.Hit)
		case engine.Failed:
			fmt.Fprintf(&b, "failed %s: %v\n", e.Step, e.Err)
		case engine.Warned:
			fmt.Fprintf(&b, "warned %s\n", e.Step)
		case engine.Waiting:
			fmt.Fprintf(&b, "waiting %s\n", e.Step)
		}
	}
	return b.String()
}

// tells checks the story of the build.
func (s *scene) tells(want ...string) {
	s.t.Helper()
	if got := strings.TrimSpace(s.story()); got != strings.Join(want, "\n") {
		s.t.Errorf("events:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// forget removes the bytes of an artifact from the store.
func (s *scene) forget(outs ...cache.Output) {
	s.t.Helper()
	for _, out := range outs {
		if err := s.store.Mem.Remove(out.Digest); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scene) has(d cache.Digest) bool {
	_, err := s.store.Stat(d)
	return err == nil
}

func of(in ...*engine.Artifact) []*engine.Artifact { return in }
