package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

var errLuck = errors.New("out of luck")

func unlucky(context.Context, func(float64, string)) error { return errLuck }

func TestFailureSaysWhatFailed(t *testing.T) {
	s := newScene(t)
	a := s.graph.Add(engine.Action{
		Step: "codes.body", Name: "layer 3 qkv", Op: mix{Seed: 1, Spread: []int{0}, tally: s.tally, act: unlucky},
		Outputs: []engine.Output{{}},
	})
	err := s.fails(a...)
	if want := "codes.body layer 3 qkv: out of luck"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
	e, ok := errors.AsType[*engine.ActionError](err)
	if !ok || !errors.Is(err, errLuck) || e.Step != "codes.body" || e.Name != "layer 3 qkv" || e.Key == (cache.Key{}) {
		t.Errorf("error is %#v", err)
	}
}

func TestFailureStopsTheRest(t *testing.T) {
	s := newScene(t)
	s.opt.Workers = 1
	bad := s.add("bad", 1, nil, doing(unlucky))
	other := s.add("other", 2, nil)
	s.fails(s.add("after", 3, of(bad)), other)
	s.ran(1)
	s.tells("started bad[no result yet]", "failed bad: out of luck")
}

func TestKeepGoingRunsWhatDoesNotDependOnAFailure(t *testing.T) {
	s := newScene(t)
	s.opt.KeepGoing = true
	s.opt.Workers = 1
	bad := s.add("bad", 1, nil, doing(unlucky))
	worse := s.add("worse", 2, nil, transient, doing(unlucky))
	good := s.add("good", 3, nil)
	after := s.add("after", 4, of(good, bad))
	later := s.add("later", 5, of(after))
	reader := s.add("reader", 6, of(worse))
	fine := s.add("fine", 7, of(good))
	err := s.fails(later, reader, fine)
	s.ran(1, 2, 3, 7)
	if want := "bad: out of luck\nworse: out of luck"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
	s.again()
	s.build(s.add("fine", 7, of(s.add("good", 3, nil))))
	s.ran()
}

func TestPanicIsAnError(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil, doing(func(context.Context, func(float64, string)) error { panic("index out of range") }))
	err := s.fails(a)
	p, ok := errors.AsType[*engine.PanicError](err)
	if !ok || p.Value != "index out of range" || !strings.Contains(string(p.Stack), "TestPanicIsAnError") {
		t.Errorf("error is %#v", err)
	}
	if want := "a: panic: index out of range"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
}

func TestOpThatEndsItsGoroutine(t *testing.T) {
	s := newScene(t)
	err := s.fails(s.add("a", 1, nil, doing(func(context.Context, func(float64, string)) error {
		runtime.Goexit()
		return nil
	})))
	if want := "a: the op ended its goroutine"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
}

// textOp is an op whose text is what a test says.
type textOp struct {
	opFunc
	text func() (string, error)
}

func (o textOp) AppendText(b []byte) ([]byte, error) {
	s, err := o.text()
	return append(b, s...), err
}

func TestTextOfAnOp(t *testing.T) {
	for _, test := range []struct {
		name string
		text func() (string, error)
		want string
	}{
		{"an error is the action's", func() (string, error) { return "", errLuck }, "a: text of the op: out of luck"},
		{"a panic is the action's", func() (string, error) { panic("no text") }, "a: panic: no text"},
		{"a line like an input is refused", func() (string, error) { return "op x\nin 0 key", nil }, "reads as an input"},
		{"a first line like an input is refused", func() (string, error) { return "in 0 key", nil }, "reads as an input"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t)
			a := s.graph.Add(engine.Action{Step: "a", Op: textOp{text: test.text}, Outputs: []engine.Output{{}}})
			if err := s.fails(a...); !strings.Contains(err.Error(), test.want) {
				t.Errorf("Build: error is %q, want %q", err, test.want)
			}
			if _, err := engine.MakePlan(t.Context(), s.graph, a, s.opt); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("MakePlan: error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestTwinsOfAFailureFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Workers = 3
		s.opt.KeepGoing = true
		act := doing(func(context.Context, func(float64, string)) error {
			time.Sleep(time.Second)
			return errLuck
		})
		err := s.fails(s.add("a", 1, nil, act), s.add("b", 1, nil, act))
		if want := "a: out of luck\nb: out of luck"; err.Error() != want {
			t.Errorf("error is %q, want %q", err, want)
		}
		s.ran(1)
	})
}

func TestMissingSources(t *testing.T) {
	s := newScene(t)
	s.opt.KeepGoing = true
	a := s.add("a", 1, of(s.graph.Source(filepath.Join(s.dir, "none"))))
	b := s.add("b", 2, of(a, s.graph.Source(filepath.Join(s.dir, "nothing"))))
	c := s.add("c", 3, nil)
	err := s.fails(b, c)
	s.ran(3)
	for _, want := range []string{"a: source ", "none", "b: source ", "nothing"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not have %q", err, want)
		}
	}
	if e, ok := errors.AsType[*engine.SourceError](err); !ok || !errors.Is(e, fs.ErrNotExist) {
		t.Errorf("error is %#v", err)
	}
	if _, err := engine.MakePlan(t.Context(), s.graph, of(b), s.opt); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("MakePlan: error is %v", err)
	}
}

func TestSourceChangesWhileItIsRead(t *testing.T) {
	s := newScene(t)
	source := s.source("before")
	path, _ := source.Source()
	a := s.add("a", 1, of(source), doing(func(context.Context, func(float64, string)) error {
		return os.WriteFile(path, []byte("after"), 0o666)
	}))
	err := s.fails(a)
	e, ok := errors.AsType[*engine.SourceError](err)
	if !ok || e.Path != path || !errors.Is(err, engine.ErrChanged) {
		t.Errorf("error is %v", err)
	}
	if want := "a: source " + path + ": changed while it was read"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
	if len(s.store.keys) > 0 {
		t.Error("a result was recorded")
	}
	s.ran(1)
	s.build(a) // the op writes the same again
	s.ran(1)
}

func TestSourceIsGoneWhenItIsRead(t *testing.T) {
	s := newScene(t)
	source := s.source("before")
	path, _ := source.Source()
	first := s.add("first", 1, nil, doing(func(context.Context, func(float64, string)) error { return os.Remove(path) }))
	if err := s.fails(s.add("a", 2, of(first, source))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// full is a store whose disk is full after some blobs.
type full struct {
	*shaky
	room int
}

func (f *full) Create() (cache.Writer, error) {
	if f.room--; f.room < 0 {
		return nil, cache.ErrFull
	}
	return f.shaky.Create()
}

func TestFullDisk(t *testing.T) {
	s := newScene(t)
	b := s.add("b", 2, of(s.add("a", 1, nil)))
	s.opt.Store = &full{s.store, 1}
	err := s.fails(b)
	if !errors.Is(err, cache.ErrFull) || !strings.HasPrefix(err.Error(), "b: store output 0: ") {
		t.Errorf("error is %v", err)
	}
	s.opt.Store = s.store
	s.tally.take()
	s.build(b)
	s.ran(2)
}

func TestInterruptedBuild(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	a := s.add("a", 1, nil)
	b := s.add("b", 2, of(a), doing(func(ctx context.Context, _ func(float64, string)) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}))
	c := s.add("c", 3, of(b))
	_, err := engine.Build(ctx, s.graph, of(c), s.opt)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if _, ok := errors.AsType[*engine.ActionError](err); ok {
		t.Errorf("an interruption counts as a failure of an action: %v", err)
	}
	s.ran(1, 2)
	s.tells("started a[no result yet]", "finished a hit=false", "started b[no result yet]", "failed b: context canceled")
	s.again()
	s.build(s.add("b", 20, of(s.add("a", 1, nil))))
	s.ran(20)
}

func TestWhatFinishesAfterAnInterruptIsKept(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	source := s.source("hello")
	out := s.graph.Add(engine.Action{
		Step: "a", In: of(source), Outputs: []engine.Output{{}},
		Op: opFunc{"stubborn", func(_ context.Context, out *writer) error {
			s.tally.add(1)
			cancel()
			return out.print("done anyway")
		}},
	})[0]
	if _, err := engine.Build(ctx, s.graph, of(s.add("b", 2, of(out))), s.opt); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	s.ran(1)
	s.build(out)
	s.ran()
}

func TestInterruptThatComesTooLate(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := s.graph.Add(engine.Action{
		Step: "a", Outputs: []engine.Output{{}},
		Op: opFunc{"stubborn", func(_ context.Context, out *writer) error {
			cancel()
			return out.print("done anyway")
		}},
	})
	if _, err := engine.Build(ctx, s.graph, out, s.opt); err != nil {
		t.Errorf("all is built, and the error is %v", err)
	}
}

// Interrupted at any moment, a build loses nothing that was finished.
func TestInterruptedAtAnyMoment(t *testing.T) {
	for seed := range 40 {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		s := newScene(t)
		nap := doing(func(ctx context.Context, _ func(float64, string)) error {
			select {
			case <-time.After(time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		var all []*engine.Artifact
		for i := range 20 {
			var in []*engine.Artifact
			for range min(i, rng.IntN(3)) {
				in = append(in, all[rng.IntN(i)])
			}
			all = append(all, s.add(fmt.Sprint(i), i, in, nap))
		}
		finished := make(map[string]bool)
		s.opt.Emit = func(e engine.Event) {
			switch e := e.(type) {
			case engine.Started:
				if finished[e.Step] {
					t.Errorf("%s runs again", e.Step)
				}
			case engine.Finished:
				finished[e.Step] = true
			}
		}
		for tries := 0; ; tries++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(8000))*time.Microsecond)
			_, err := engine.Build(ctx, s.graph, all, s.opt)
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) || tries > 1000 {
				t.Fatalf("try %d: %v", tries, err)
			}
		}
	}
}

// A failure does not wait for the lock that another process holds.
func TestFailureWhileAnotherActionWaitsForALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		held := s.add("held", 1, nil)
		key := s.plan(held).Entries[0].Key
		unlock, err := s.store.Lock(t.Context(), key, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		bad := s.add("bad", 2, nil, doing(func(context.Context, func(float64, string)) error {
			time.Sleep(time.Minute)
			return errLuck
		}))
		if err := s.fails(held, bad); !errors.Is(err, errLuck) || errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	})
}

// slowSources hash for as long as they may.
type slowSources struct{}

func (slowSources) SourceDigest(ctx context.Context, _ string) (cache.Output, error) {
	<-ctx.Done()
	return cache.Output{}, ctx.Err()
}

// A failure does not wait for a source either, and the source has not failed.
func TestFailureWhileASourceIsHashed(t *testing.T) {
	s := newScene(t)
	s.opt.Sources = slowSources{}
	err := s.fails(s.add("slow", 1, of(s.source("text"))), s.add("bad", 2, nil, doing(unlucky)))
	if err.Error() != "bad: out of luck" {
		t.Errorf("error is %q", err)
	}
}
