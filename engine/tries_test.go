package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// errBusy may pass.
var errBusy = fmt.Errorf("read the dataset: %w", &net.DNSError{Err: "server misbehaving", IsTemporary: true})

func retries(n int) change            { return func(a *engine.Action) { a.Retries = n } }
func limit(d time.Duration) change    { return func(a *engine.Action) { a.Timeout = d } }
func failing(n int, err error) change { return doing(failFirst(n, err)) }
func now() time.Time                  { return time.Now() } //nolint:forbidigo // the clock of a synctest bubble
func (s *scene) count(step string) (n int) {
	for _, e := range s.events {
		if e, ok := e.(engine.Started); ok && e.Step == step {
			n++
		}
	}
	return n
}

// failFirst returns an act that fails n times.
func failFirst(n int, err error) func(context.Context, func(float64, string)) error {
	return func(context.Context, func(float64, string)) error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

// What may pass is tried again, after pauses that grow.
func TestTemporaryFailureIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Now = now
		began := now()
		a := s.add("a", 1, nil, retries(3), failing(3, errBusy))
		s.build(a)
		if took := now().Sub(began); took != 7*time.Second {
			t.Errorf("the build took %v, want pauses of 1, 2 and 4 s", took)
		}
		var waits []time.Duration
		var tries []int
		for _, e := range s.events {
			switch e := e.(type) {
			case engine.Retried:
				waits = append(waits, e.Wait)
				if !errors.Is(e.Err, errBusy) || e.Time.IsZero() || e.Key == (cache.Key{}) {
					t.Errorf("event %+v", e)
				}
			case engine.Started:
				tries = append(tries, e.Try)
			}
		}
		if fmt.Sprint(waits, tries) != "[1s 2s 4s] [1 2 3 4]" {
			t.Errorf("waits %v, tries %v", waits, tries)
		}
	})
}

func TestPausesEndWithAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		began := now()
		s.build(s.add("a", 1, nil, retries(100), failing(80, errBusy)))
		if took := now().Sub(began); took != 63*time.Second+74*time.Minute {
			t.Errorf("80 pauses took %v", took)
		}
	})
}

type odd struct{ error }

func (odd) Temporary() bool { return true }
func (o odd) Unwrap() error { return o.error }

// What does not pass is not tried again, whatever is allowed.
func TestLastingFailureIsNotRetried(t *testing.T) {
	for name, act := range map[string]func(context.Context, func(float64, string)) error{
		"a wrong setting":            func(context.Context, func(float64, string)) error { return errLuck },
		"a panic":                    func(context.Context, func(float64, string)) error { panic(errBusy) },
		"a full disk":                func(context.Context, func(float64, string)) error { return odd{syscall.ENOSPC} },
		"a full disk of the cache":   func(context.Context, func(float64, string)) error { return odd{cache.ErrFull} },
		"not a number":               func(context.Context, func(float64, string)) error { return errors.New("loss is NaN") },
		"what says it does not pass": func(context.Context, func(float64, string)) error { return syscall.EACCES },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			a := s.add("a", 1, nil, retries(5), doing(act))
			_ = s.fails(a)
			s.ran(1)
		})
	}
}

func TestRetriesComeToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		a := s.add("a", 1, nil, retries(2), failing(9, errors.Join(errLuck, errBusy)))
		if err := s.fails(a); !errors.Is(err, errBusy) {
			t.Errorf("error is %v", err)
		}
		if n := s.count("a"); n != 3 {
			t.Errorf("%d tries, want 3", n)
		}
	})
}

// An action that pauses holds no worker, no place in its pool, no memory and no lock.
func TestPauseHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Workers, s.opt.Memory, s.opt.Pools = 1, 100, map[string]int{"gpu": 1}
		a := s.add("a", 1, nil, retries(1), failing(1, errBusy), inPool("gpu"), peak(100))
		b := s.add("b", 2, nil, inPool("gpu"), peak(100), doing(func(ctx context.Context, _ func(float64, string)) error {
			key := s.plan(a).Entries[0].Key
			unlock, err := s.store.Lock(ctx, key, func(string) { t.Error("the lock of a is held while it pauses") })
			if err == nil {
				unlock()
			}
			return err
		}))
		s.build(a, b)
		s.tells("started a[no result yet]", "started b[no result yet]", "finished b hit=false",
			"started a[no result yet]", "finished a hit=false")
	})
}

// While an action pauses another process may do it.
func TestPausedActionTakesTheResultOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		a := s.add("a", 1, nil, retries(1), failing(1, errBusy))
		time.AfterFunc(time.Second/2, func() {
			other := newScene(t)
			other.opt.Store, other.opt.Locker, other.opt.History = s.store, s.store, s.store
			other.build(other.add("a", 1, nil))
		})
		s.build(a)
		s.tells("started a[no result yet]", "finished a hit=true")
	})
}

// Twins of an action that pauses wait with it.
func TestTwinsOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		act := failFirst(1, errBusy)
		s.build(s.add("a", 1, nil, retries(1), doing(act)), s.add("b", 1, nil, retries(1), doing(act)))
		if runs := s.tally.take(); runs[1] != 2 {
			t.Errorf("ran %v, want twice: a failure and a success", runs)
		}
	})
}

func TestInterruptedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		a := s.add("a", 1, nil, retries(9), failing(9, errBusy))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Second, cancel)
		began := now()
		_, err := engine.Build(ctx, s.graph, of(a), s.opt)
		if took := now().Sub(began); !errors.Is(err, context.Canceled) || took != 20*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// An op has until its limit; it learns why it is stopped.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		var cause error
		a := s.add("codes.body", 1, nil, limit(time.Hour), retries(5), doing(func(ctx context.Context, _ func(float64, string)) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}))
		began := now()
		err := s.fails(a)
		late, ok := errors.AsType[*engine.TimeoutError](err)
		if took := now().Sub(began); !ok || late.Limit != time.Hour || late.Step != "codes.body" || late.Deaf || took != time.Hour {
			t.Errorf("after %v: %#v", took, err)
		}
		if cause != error(late) { //nolint:errorlint // this very error
			t.Errorf("the cause of the op's context is %v", cause)
		}
		if want := "codes.body: stopped at its limit of 1h0m0s"; err.Error() != want {
			t.Errorf("error is %q, want %q", err, want)
		}
		s.ran(1) // it is not tried again
	})
}

func TestWhatEndsInTimeIsNotStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.build(s.add("a", 1, nil, limit(time.Hour), taking(time.Hour-1)))
		s.build(s.graph.Add(engine.Action{ // it is done before it is given up
			Step: "b", Timeout: time.Hour, Outputs: []engine.Output{{}},
			Op: opFunc{"late", func(_ context.Context, w *writer) error {
				time.Sleep(time.Hour + time.Second)
				return w.print("all of it")
			}},
		})...)
		err := s.fails(s.add("c", 3, nil, limit(time.Hour), failing(1, errLuck)))
		if _, late := errors.AsType[*engine.TimeoutError](err); late || !errors.Is(err, errLuck) {
			t.Errorf("error is %v", err)
		}
	})
}

// An op that does not heed its context is given up, and neither holds up the end of the
// build nor lets others have the memory that it still uses.
func TestDeafOpIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.KeepGoing, s.opt.Workers, s.opt.Memory = true, 2, 100
		used := &gauge{}
		a := s.add("deaf", 1, nil, limit(time.Hour), peak(60), using(used, 60), taking(9*time.Hour))
		b := s.add("small", 2, nil, peak(40), using(used, 40))
		c := s.add("big", 3, of(b), peak(60))
		began := now()
		err := s.fails(a, b, c)
		late, ok := errors.AsType[*engine.TimeoutError](err)
		if took := now().Sub(began); !ok || !late.Deaf || took != time.Hour+10*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if want := "deaf: ran into its limit of 1h0m0s and did not stop: it was given up"; err.Error() != want {
			t.Errorf("error is %q, want %q", err, want)
		}
		s.ran(1, 2)
		if skipped := s.skips(); skipped != "big because of deaf" {
			t.Errorf("skipped: %q", skipped)
		}
		time.Sleep(10 * time.Hour) // then what it had open is let go of
		if n := s.store.open.Load(); n != 0 {
			t.Errorf("%d outputs are neither stored nor dropped", n)
		}
	})
}

// One that ends while the build goes on gives its slots back.
func TestDeafOpThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.KeepGoing, s.opt.Workers, s.opt.Memory = true, 2, 100
		a := s.add("deaf", 1, nil, limit(time.Minute), peak(60), taking(2*time.Hour))
		b := s.add("slow", 2, nil, peak(40), taking(5*time.Hour))
		c := s.add("big", 3, nil, peak(60))
		_ = s.fails(a, b, c)
		s.ran(1, 2, 3)
	})
}

func (s *scene) skips() (text string) {
	for _, e := range s.events {
		if e, ok := e.(engine.Skipped); ok {
			if text != "" {
				text += ", "
			}
			text += e.Step + " because of " + e.Because
		}
	}
	return text
}

// What did not run is reported with the failure that it waited for.
func TestWhatIsSkippedAndWhy(t *testing.T) {
	s := newScene(t)
	s.opt.KeepGoing, s.opt.Workers = true, 1
	bad := s.add("bad", 1, nil, failing(9, errLuck))
	worse := s.add("worse", 2, nil, failing(9, errLuck))
	fine := s.add("fine", 3, nil)
	x := s.add("x", 4, of(fine, bad))
	lost := s.add("lost", 5, of(s.graph.Source("/nowhere")))
	top := s.add("top", 6, of(fine, worse, x))
	through := s.add("through", 8, of(s.add("hidden", 7, of(bad), transient)))
	_ = s.add("unwanted", 9, of(bad))
	_ = s.fails(top, lost, through)
	want := "x because of bad, lost because of /nowhere, top because of worse, hidden because of bad, through because of bad"
	if got := s.skips(); got != want {
		t.Errorf("skipped: %q\nwant     %q", got, want)
	}
	t.Run("a build that stops", func(t *testing.T) {
		s := newScene(t)
		s.opt.Workers = 1
		bad := s.add("bad", 1, nil, failing(9, errLuck))
		_ = s.fails(s.add("after", 2, of(bad)), s.add("beside", 3, nil))
		if got := s.skips(); got != "after because of bad, beside because of " {
			t.Errorf("skipped: %q", got)
		}
	})
	t.Run("a build that does not fail", func(t *testing.T) {
		s := newScene(t)
		s.build(s.add("a", 1, of(s.add("t", 2, nil, transient))))
		if got := s.skips(); got != "" {
			t.Errorf("skipped: %q", got)
		}
	})
}

// What a recipe says of resources counts when the budget is checked.
func TestAmendedPeakIsChecked(t *testing.T) {
	s := newScene(t)
	first := s.add("first", 1, nil)
	from := s.graph.Len()
	big := s.add("big", 2, of(first))
	s.graph.Amend(from, func(a *engine.Action) {
		a.Peak, a.Retries, a.Step, a.In = 1001, 3, "other", nil
	})
	if a, _ := big.Action(); a.Step != "big" || len(a.In) != 1 || a.Retries != 3 || a.Peak != 1001 {
		t.Errorf("amended to %+v", a)
	}
	if a, _ := first.Action(); a.Peak != 0 {
		t.Errorf("an action before it was amended too: %+v", a)
	}
	s.opt.Memory = 1000
	if e, ok := errors.AsType[*engine.MemoryError](s.fails(big)); !ok || e.Peak != 1001 {
		t.Errorf("error is %+v", e)
	}
	s.ran()
}
