package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// A gauge measures how much of something is in use.
type gauge struct {
	mu        sync.Mutex
	now, most int64
}

// use takes n for a while.
func (g *gauge) use(n int64, d time.Duration) {
	g.add(n)
	time.Sleep(d)
	g.add(-n)
}

func (g *gauge) add(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
}

// using makes an op take n of a gauge for a second.
func using(g *gauge, n int64) change {
	return doing(func(context.Context, func(float64, string)) error {
		g.use(n, time.Second)
		return nil
	})
}

func TestWorkersAndPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Workers = 4
		s.opt.Pools = map[string]int{"gpu": 1, "disk": 2}
		all, gpu, disk := &gauge{}, &gauge{}, &gauge{}
		both := func(pool *gauge) change {
			return doing(func(context.Context, func(float64, string)) error {
				all.add(1)
				defer all.add(-1)
				pool.use(1, time.Second)
				return nil
			})
		}
		var want []*engine.Artifact
		for i := range 8 {
			want = append(want, s.add("gpu", i, nil, inPool("gpu"), both(gpu)))
			want = append(want, s.add("disk", 100+i, nil, inPool("disk"), both(disk)))
			want = append(want, s.add("cpu", 200+i, nil, both(&gauge{})))
		}
		begin := time.Now() //nolint:forbidigo // the clock of a synctest bubble
		s.build(want...)
		if all.most != 4 || gpu.most != 1 || disk.most != 2 {
			t.Errorf("at once: %d in all, %d on the gpu, %d on disks; want 4, 1, 2", all.most, gpu.most, disk.most)
		}
		if d := time.Since(begin); d != 8*time.Second {
			t.Errorf("the build took %v, want 8s: what waits must hold no worker", d)
		}
	})
}

func TestMemoryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Workers = 8
		s.opt.Memory = 100
		used := &gauge{}
		var want []*engine.Artifact
		for i, n := range []int64{60, 30, 100, 10, 50, 0, 70, 40, 0, 20, 90} {
			want = append(want, s.add(fmt.Sprint(n), i, nil, peak(n), using(used, n)))
		}
		s.build(want...)
		if used.most > 100 {
			t.Errorf("actions used %d bytes at once", used.most)
		}
		if used.most < 90 {
			t.Errorf("actions used only %d bytes at once", used.most)
		}
	})
}

// Many small actions must not keep a big one waiting to the end.
func TestBigActionIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Workers = 3
		s.opt.Memory = 100
		used := &gauge{}
		s.opt.Pools = map[string]int{"gpu": 1}
		want := of(s.add("small", 0, nil, peak(30), using(used, 30)),
			s.add("big", 1, nil, peak(90), inPool("gpu"), using(used, 90)))
		for i := range 10 {
			want = append(want, s.add("small", 2+i, nil, peak(30), doing(func(context.Context, func(float64, string)) error {
				used.use(30, time.Duration(2+i%2)*700*time.Millisecond) // never all at once
				return nil
			})))
		}
		s.build(want...)
		if at := slices.Index(strings.Split(s.story(), "\n"), "started big[no result yet]"); at < 0 || at > 3 {
			t.Errorf("the big action started late:\n%s", s.story())
		}
	})
}

func TestWhatDoesNotFitIsRefusedBeforeAnythingRuns(t *testing.T) {
	s := newScene(t)
	first := s.add("first", 1, nil)
	big := s.graph.Add(engine.Action{
		Step: "codes.body", Name: "layer 0", Op: mix{Seed: 2, Spread: []int{0}, tally: s.tally},
		In: of(first), Outputs: []engine.Output{{}}, Peak: 1001,
	})[0]
	s.opt.Memory = 1000
	err := s.fails(big)
	if want := "codes.body layer 0 needs 1001 bytes of memory, and the budget is 1000"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
	if e, ok := errors.AsType[*engine.MemoryError](err); !ok || e.Peak != 1001 || e.Budget != 1000 {
		t.Errorf("error is %#v", err)
	}
	s.ran()

	t.Run("unless it is stored", func(t *testing.T) {
		s.opt.Memory = 0
		outs := s.build(big)
		s.tally.take()
		s.opt.Memory = 1000
		s.build(big)
		s.ran()
		s.forget(outs...)
		if err := s.fails(big); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("unless nothing wants it", func(t *testing.T) {
		s.build(first)
	})
}

// late is a store that loses a blob after the plan has seen it.
type late struct {
	*shaky
	digest cache.Digest
	looks  int
}

func (l *late) Stat(d cache.Digest) (int64, error) {
	if d == l.digest {
		if l.looks--; l.looks < 0 {
			return 0, cache.ErrMiss
		}
	}
	return l.shaky.Stat(d)
}

func TestWhatDoesNotFitAndLosesItsBytes(t *testing.T) {
	s := newScene(t)
	big := s.add("big", 1, nil, peak(1001))
	outs := s.build(big)
	s.opt.Memory = 1000
	s.opt.Store = &late{s.store, outs[0].Digest, 1}
	if err := s.fails(big); err.Error() != "big needs 1001 bytes of memory, and the budget is 1000" {
		t.Errorf("error is %v", err)
	}
}

func TestActionsStartInTheOrderOfTheGraph(t *testing.T) {
	s := newScene(t)
	s.opt.Workers = 1
	var want []*engine.Artifact
	for i := range 50 {
		a := s.add(fmt.Sprint("a", i), i, nil)
		want = append(want, s.add(fmt.Sprint("b", i), 100+i, of(a)))
	}
	slices.Reverse(want)
	s.build(want...)
	var steps []string
	for _, e := range s.events {
		if e, ok := e.(engine.Started); ok {
			steps = append(steps, e.Step)
		}
	}
	for i := range 50 {
		if a, b := fmt.Sprint("a", i), fmt.Sprint("b", i); steps[2*i] != a || steps[2*i+1] != b {
			t.Fatalf("order is %v", steps)
		}
	}
}

// While another process has the lock, an action holds neither a worker nor its pool, and
// then takes the other's result.
func TestWaitingForALockHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Workers = 1
		s.opt.Pools = map[string]int{"gpu": 1}
		s.opt.Memory = 100
		first := s.add("first", 1, nil, inPool("gpu"), peak(100))
		second := s.add("second", 2, nil, inPool("gpu"), peak(100))
		key := s.plan(first).Entries[0].Key
		unlock, err := s.store.Lock(t.Context(), key, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { // the other process
			time.Sleep(time.Hour)
			w, _ := s.store.Create()
			_, _ = w.Write([]byte("made elsewhere"))
			out, _ := w.Commit()
			_ = s.store.Record(key, cache.Result{Outputs: []cache.Output{out}})
			unlock()
		}()
		outs := s.build(first, second)
		if got := read(t, s.store, outs[0].Digest); got != "made elsewhere" {
			t.Errorf("first is %q", got)
		}
		s.ran(2)
		s.tells("waiting first", "started second[no result yet]", "finished second hit=false", "finished first hit=true")
	})
}

// If the other process fails, the action runs here.
func TestLockIsFreeAndThereIsNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		a := s.add("a", 1, nil)
		unlock, err := s.store.Lock(t.Context(), s.plan(a).Entries[0].Key, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Hour, unlock)
		s.build(a)
		s.ran(1)
		s.tells("waiting a", "started a[no result yet]", "finished a hit=false")
	})
}

func TestInterruptedWhileWaitingForALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		a := s.add("a", 1, nil)
		unlock, err := s.store.Lock(t.Context(), s.plan(a).Entries[0].Key, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := engine.Build(ctx, s.graph, of(a), s.opt); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		s.ran()
	})
}

// brokenLocks is a Locker that cannot lock.
type brokenLocks struct{}

func (brokenLocks) Lock(context.Context, cache.Key, func(string)) (func(), error) {
	return nil, errors.New("no locks on this file system")
}

func TestWithoutLocksItRunsAllTheSame(t *testing.T) {
	s := newScene(t)
	s.opt.Locker = brokenLocks{}
	s.build(s.add("b", 2, of(s.add("a", 1, nil))))
	s.ran(1, 2)
	s.tells("warned a", "started a[no result yet]", "finished a hit=false",
		"started b[no result yet]", "finished b hit=false")
}

// unreachable is a store whose results cannot be looked up, as a server that is down.
type unreachable struct{ *shaky }

func (unreachable) Lookup(cache.Key) (cache.Result, error) {
	return cache.Result{}, errors.New("connection refused")
}

func TestUnreachableResultsAreMisses(t *testing.T) {
	s := newScene(t)
	s.opt.Store = unreachable{s.store}
	s.build(s.add("b", 2, of(s.add("a", 1, nil))))
	s.ran(1, 2)
	s.tells("warned a", "started a[no result yet]", "finished a hit=false",
		"started b[no result yet]", "finished b hit=false")
}

// forgetful is a History that cannot be written.
type forgetful struct{ *shaky }

func (forgetful) SetLast(string, cache.Key) error { return cache.ErrReadOnly }

func TestHistoryThatCannotBeWrittenIsOneWarning(t *testing.T) {
	s := newScene(t)
	s.opt.History = forgetful{s.store}
	s.build(s.add("b", 2, of(s.add("a", 1, nil))))
	s.tells("started a[no result yet]", "finished a hit=false", "warned a",
		"started b[no result yet]", "finished b hit=false")
}

// Two builds in one process are as two processes: what both want runs once.
func TestTwoBuildsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		nap := doing(func(context.Context, func(float64, string)) error {
			time.Sleep(time.Second)
			return nil
		})
		s.opt.Emit = nil
		var want []*engine.Artifact
		for i := range 20 {
			want = append(want, s.add("a", i, of(want[max(0, i-2):]...), nap))
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := engine.Build(t.Context(), s.graph, want, s.opt); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		for seed, n := range s.tally.take() {
			if n != 1 {
				t.Errorf("op %d ran %d times", seed, n)
			}
		}
	})
}
