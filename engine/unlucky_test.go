package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// dependsOn reports whether an artifact needs one of some actions, directly or not.
func (w *world) dependsOn(r ref, actions map[int]bool) bool {
	if r.action < 0 {
		return false
	}
	if actions[r.action] {
		return true
	}
	return slices.ContainsFunc(w.toys[r.action].in, func(in ref) bool { return w.dependsOn(in, actions) })
}

// checkUnlucky builds a world in which some ops fail, or panic, or interrupt the build.
// It returns which ops ended well.
func (w *world) checkUnlucky(t *testing.T, s *shaky, opt engine.Options, bad map[int]bool, interrupt bool) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newTally()
	w.act = func(i int) func(context.Context, func(float64, string)) error {
		return func(context.Context, func(float64, string)) error {
			switch {
			case !bad[i]:
				return nil
			case interrupt:
				cancel()
				return ctx.Err()
			case i%2 == 0:
				panic(errLuck)
			default:
				return errLuck
			}
		}
	}
	defer func() { w.act = nil }()
	good, started := make(map[string]bool), make(map[string]int)
	opt.Emit = func(e engine.Event) {
		switch e := e.(type) {
		case engine.Started:
			started[e.Step]++
		case engine.Failed:
			started[e.Step]--
		case engine.Finished:
			if !e.Hit {
				good[e.Step] = true
				started[e.Step]--
			}
		}
	}
	g, want := w.graph(t, c)
	outs, err := engine.Build(ctx, g, want, opt)
	w.checkErrors(t, err, bad, interrupt)
	for step, n := range started {
		if n != 0 {
			t.Errorf("%s: %d more Started than Finished and Failed", step, n)
		}
	}
	for seed, n := range c.take() {
		if n > 1 {
			t.Errorf("op %d ran %d times", seed, n)
		}
	}
	if err == nil && len(outs) != len(want) {
		t.Errorf("%d outputs of %d", len(outs), len(want))
	}
	if opt.KeepGoing && !interrupt {
		w.checkSpared(t, s, bad)
	}
	return good
}

// checkErrors checks that only ops that fail are in the error.
func (w *world) checkErrors(t *testing.T, err error, bad map[int]bool, interrupt bool) {
	t.Helper()
	if err == nil {
		return
	}
	if interrupt && !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want an interruption", err)
	}
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		if e, ok := errors.AsType[*engine.ActionError](err); ok {
			var i int
			if _, err := fmt.Sscanf(e.Step, "toy %d", &i); err != nil || !bad[i] || interrupt {
				t.Errorf("%s failed: %v", e.Step, e)
			}
		}
	}
}

// checkSpared checks that what is wanted and does not need an op that fails was built.
func (w *world) checkSpared(t *testing.T, s *shaky, bad map[int]bool) {
	t.Helper()
	for _, r := range w.want {
		if w.dependsOn(r, bad) {
			continue
		}
		if _, err := s.Stat(cache.DigestOf(w.cold(r))); err != nil {
			t.Errorf("wanted %v needs nothing that fails and was not built", r)
		}
	}
}

// unluckyLife rolls a world, builds it with bad luck, and then with good luck: what ended
// well the first time does not run again.
func unluckyLife(t *testing.T, b []byte) (edited int) {
	d := &dice{b}
	w, s := newWorld(d, t.TempDir()), newShaky()
	for edits := 0; edits < 8 && !t.Failed(); edits++ {
		bad := map[int]bool{}
		for range 1 + d.roll(3) {
			bad[d.roll(len(w.toys))] = true
		}
		opt := options(s)
		opt.Workers, opt.KeepGoing = 1+d.roll(3), d.roll(2) == 0
		good := w.checkUnlucky(t, s, opt, bad, d.roll(3) == 0)

		c := newTally()
		g, want := w.graph(t, c)
		outs := build(t, g, opt, want...)
		for i, r := range w.want {
			if got, cold := read(t, s, outs[i].Digest), string(w.cold(r)); got != cold {
				t.Errorf("wanted %v: build after a failure gives %q, cold build %q", r, got, cold)
			}
		}
		for i, toy := range w.toys {
			if good[fmt.Sprint("toy ", i)] && c.runs[toy.seed] > 0 && !slices.Contains(toy.transient, true) {
				t.Errorf("toy %d ended well before the failure and ran again", i)
			}
		}
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

// FuzzUnlucky checks builds in which ops fail, panic, or interrupt the build.
func FuzzUnlucky(f *testing.F) {
	f.Add([]byte("a few bytes that make a small world"))
	f.Fuzz(func(t *testing.T, b []byte) { unluckyLife(t, b) })
}

func TestRandomUnluckyLives(t *testing.T) {
	lives := 400
	if testing.Short() {
		lives = 50
	}
	edits := 0
	for seed := range lives {
		b := make([]byte, 60+seed%200)
		_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 2}).Read(b)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { edits += unluckyLife(t, b) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d lives with %d edits", lives, edits)
}
