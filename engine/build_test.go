package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

func TestSecondBuildRunsNothing(t *testing.T) {
	s := newScene(t)
	a := s.add("first", 1, of(s.source("hello")))
	b := s.add("second", 2, of(a))
	s.build(b)
	s.ran(1, 2)
	s.tells("started first[no result yet]", "finished first hit=false",
		"started second[no result yet]", "finished second hit=false")

	s.events = nil
	s.build(b)
	s.ran()
	s.tells("finished first hit=true", "finished second hit=true")
}

func TestOnlyWhatIsWantedRuns(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil)
	b := s.add("b", 2, of(a))
	s.add("unrelated", 3, nil)
	s.add("after", 4, of(b))
	s.build(b)
	s.ran(1, 2)
}

func TestOutputsAreInTheOrderTheyAreWanted(t *testing.T) {
	s := newScene(t)
	source := s.source("hello")
	ab := s.addAll("ab", 1, of(source), outputs(2))
	outs := s.build(ab[1], source, ab[0], ab[1])
	for i, want := range []string{read(t, s.store, outs[3].Digest), "hello", read(t, s.store, outs[2].Digest)} {
		if d := cache.DigestOf([]byte(want)); outs[i].Digest != d || outs[i].Size != int64(len(want)) {
			t.Errorf("output %d is %v, want digest %v of %d bytes", i, outs[i], d, len(want))
		}
	}
	if outs[0] == outs[2] {
		t.Error("two outputs of an action are the same")
	}
}

func TestNothingWantedIsBuilt(t *testing.T) {
	s := newScene(t)
	s.add("a", 1, nil)
	if outs := s.build(); len(outs) != 0 {
		t.Errorf("Build returned %v", outs)
	}
	s.ran()
}

func TestChangedSettingRebuildsWhatFollows(t *testing.T) {
	s := newScene(t)
	world := func(seed int) *engine.Artifact {
		a := s.add("a", 1, nil)
		b := s.add("b", seed, of(a))
		return s.add("c", 3, of(b))
	}
	s.build(world(2))
	s.again()
	s.build(world(20))
	s.ran(20, 3)
	s.tells("finished a hit=true", "started b[seed: 2 → 20]", "finished b hit=false",
		"started c[input b changed]", "finished c hit=false")
}

func TestEarlyCutoff(t *testing.T) {
	s := newScene(t)
	world := func(seed int) *engine.Artifact {
		a := s.add("a", seed, nil, few(1)) // always the same bytes
		b := s.add("b", 2, of(a))
		return s.add("c", 3, of(b))
	}
	s.build(world(1))
	s.again()
	s.build(world(10))
	s.ran(10)
}

func TestContentOfASourceDecides(t *testing.T) {
	s := newScene(t)
	world := func(text string) *engine.Artifact { return s.add("a", 1, of(s.source(text))) }
	s.build(world("one"))
	s.again()
	s.build(world("two"))
	s.ran(1)
	s.again()
	s.build(world("one"))
	s.ran()
}

func TestRenamedStepIsAHit(t *testing.T) {
	s := newScene(t)
	s.build(s.add("old", 1, nil))
	s.again()
	s.build(s.add("new", 1, nil))
	s.ran()
}

func TestTwoActionsWithOneKeyRunOnce(t *testing.T) {
	s := newScene(t)
	source := s.source("hello")
	var want []*engine.Artifact
	for i := range 8 {
		want = append(want, s.add(fmt.Sprint("step ", i), 1, of(source)))
	}
	s.opt.Workers = 8
	s.build(want...)
	s.ran(1)
}

func TestOneInputReadTwice(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil)
	s.build(s.add("b", 2, of(a, a)))
	s.ran(1, 2)
}

// Bytes that are gone are made again only if someone must read them.
func TestMissingBytes(t *testing.T) {
	setUp := func(t *testing.T) (s *scene, a, b *engine.Artifact, outs []cache.Output) {
		s = newScene(t)
		a = s.add("a", 1, nil)
		b = s.add("b", 2, of(a))
		outs = s.build(a, b)
		s.ran(1, 2)
		s.events = nil
		return s, a, b, outs
	}
	t.Run("that nobody reads are not made", func(t *testing.T) {
		s, _, b, outs := setUp(t)
		s.forget(outs[0])
		s.build(b)
		s.ran()
	})
	t.Run("that are wanted are made, with one warning", func(t *testing.T) {
		s, _, b, outs := setUp(t)
		s.forget(outs[1])
		s.build(b)
		s.ran(2)
		s.tells("finished a hit=true", "warned b", "started b[output b missing from the cache]", "finished b hit=false")
	})
	t.Run("are made by the chain up to what is there", func(t *testing.T) {
		s, _, b, outs := setUp(t)
		s.forget(outs...)
		s.build(b)
		s.ran(1, 2)
	})
	t.Run("that a new action reads are made", func(t *testing.T) {
		s, a, _, outs := setUp(t)
		s.forget(outs[0])
		s.build(s.add("c", 3, of(a)))
		s.ran(1, 3)
	})
	t.Run("that are damaged are made", func(t *testing.T) {
		s, _, b, outs := setUp(t)
		s.store.bad[outs[1].Digest] = true
		s.build(b)
		s.ran(2)
	})
	t.Run("of a result that is gone are made", func(t *testing.T) {
		s, _, b, _ := setUp(t)
		for k := range s.store.keys {
			s.store.lost[k] = true
		}
		s.build(b)
		s.ran(1, 2)
		s.tells("started a[result no longer in the cache]", "finished a hit=false",
			"started b[result no longer in the cache]", "finished b hit=false")
	})
}

// vanishing is a store that loses a blob between Stat and Open, some times.
type vanishing struct {
	*shaky
	times int
}

func (v *vanishing) Open(d cache.Digest) (cache.Blob, error) {
	if v.times > 0 {
		v.times--
		_ = v.Mem.Remove(d)
		return nil, fmt.Errorf("blob %s: %w", d.Short(), cache.ErrMiss)
	}
	return v.shaky.Open(d)
}

func TestBytesVanishBeforeTheyAreRead(t *testing.T) {
	s := newScene(t)
	b := s.add("b", 2, of(s.add("a", 1, nil)))
	s.opt.Store = &vanishing{s.store, 2}
	s.build(b)
	if runs := s.tally.take(); runs[1] != 3 || runs[2] != 1 {
		t.Errorf("runs are %v, want 3 of op 1 and 1 of op 2", runs)
	}
}

func TestStoreThatKeepsNothing(t *testing.T) {
	s := newScene(t)
	b := s.add("b", 2, of(s.add("a", 1, nil)))
	s.opt.Store = &vanishing{s.store, 1000}
	err := s.fails(b)
	if want := "b: input a: not in the cache"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
}

func TestResultSaysHowItWasMade(t *testing.T) {
	s := newScene(t)
	s.opt.Version, s.opt.Backend = "0.1", "go"
	a := s.add("a", 1, of(s.source("hello")), doing(func(_ context.Context, report func(float64, string)) error {
		report(0.5, "half")
		report(1, "relative error 0.279\xff")
		report(0.9, "not the end")
		return nil
	}))
	s.build(a)
	e := s.events[len(s.events)-1].(engine.Finished)
	r, err := s.store.Lookup(e.Key)
	if err != nil {
		t.Fatal(err)
	}
	if r.Note != "relative error 0.279\uFFFD" || r.Version != "0.1" || r.Backend != "go" || !r.Started.Equal(clock()) {
		t.Errorf("result is %+v", r)
	}
	want := "op mix v1\nset Seed 1\nset Spread [0]\nin 0 digest " + cache.DigestOf([]byte("hello")).String() + "\n"
	if r.Manifest != want || cache.KeyOf([]byte(want)) != e.Key {
		t.Errorf("manifest is %q, want %q", r.Manifest, want)
	}
	if r.PeakMemory <= 0 {
		t.Error("an action that ran alone has no peak of memory")
	}
}

func TestProgressArrivesBetweenStartAndEnd(t *testing.T) {
	s := newScene(t)
	seen := make(chan bool)
	emit := s.opt.Emit
	s.opt.Emit = func(e engine.Event) {
		emit(e)
		if _, ok := e.(engine.Progress); ok {
			seen <- true
		}
	}
	s.build(s.add("a", 1, nil, doing(func(_ context.Context, report func(float64, string)) error {
		for i := range 3 {
			report(float64(i)/3, fmt.Sprint("part ", i))
			<-seen
		}
		for range 100_000 {
			report(2./3, "part 2") // nothing new: nobody is told
		}
		return nil
	})))
	var got []string
	for _, e := range s.events {
		switch e := e.(type) {
		case engine.Started:
			got = append(got, "started")
		case engine.Progress:
			got = append(got, fmt.Sprintf("%.2f %s", e.Done, e.Note))
		case engine.Finished:
			got = append(got, "finished")
		}
	}
	if want := "[started 0.00 part 0 0.33 part 1 0.67 part 2 finished]"; fmt.Sprint(got) != want {
		t.Errorf("events are %v, want %s", got, want)
	}
}

// However often an op reports, the build is not swamped, and the op does not wait.
func TestManyReportsAreFewEvents(t *testing.T) {
	s := newScene(t)
	reported := make(chan bool)
	events := 0
	s.opt.Emit = func(e engine.Event) {
		if _, ok := e.(engine.Progress); ok {
			events++
			<-reported
		}
	}
	s.build(s.add("a", 1, nil, doing(func(_ context.Context, report func(float64, string)) error {
		for i := range 1000 {
			report(0.5, fmt.Sprint("part ", i))
		}
		close(reported)
		return nil
	})))
	if events > 2 {
		t.Errorf("%d events", events)
	}
}

func TestSourceIsGivenAsAFile(t *testing.T) {
	s := newScene(t)
	path := file(t, s.dir, "text", "hello")
	a := s.graph.Add(engine.Action{
		Step: "a", In: of(s.graph.Source(path)), Outputs: []engine.Output{{}},
		Op: opFunc{"outer", func(_ context.Context, out *writer) error {
			r, _, _ := out.in[0].Outer()
			f, ok := r.(*os.File)
			if !ok || f.Name() != path {
				return fmt.Errorf("the input is a %T", r)
			}
			return nil
		}},
	})
	s.build(a...)
}

func TestOptionsAreChecked(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil)
	s.opt.Pools = map[string]int{"gpu": 0}
	if err := s.fails(a); !strings.Contains(err.Error(), `pool "gpu"`) {
		t.Errorf("error is %v", err)
	}
	s.opt.Pools, s.opt.Memory = nil, -1
	if err := s.fails(a); !strings.Contains(err.Error(), "memory budget") {
		t.Errorf("error is %v", err)
	}
}

func TestSourcesWithoutSources(t *testing.T) {
	s := newScene(t)
	s.opt.Sources, s.opt.History, s.opt.Locker, s.opt.Now, s.opt.Emit = nil, nil, nil, nil, nil
	b := s.add("b", 2, of(s.source("hello")))
	s.build(b)
	s.build(b)
	s.ran(2)
	missing := s.add("c", 3, of(s.graph.Source(s.dir+"/none")))
	if err := s.fails(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}
