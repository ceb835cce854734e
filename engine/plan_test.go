package engine_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// shows checks a plan, as lines such as "run * codes.body: seed: 1 → 2" with a star for
// a cause.
func shows(t *testing.T, p *engine.Plan, want ...string) {
	t.Helper()
	var got []string
	for i, e := range p.Entries {
		if e.Status == engine.Hit && e.Root >= 0 || e.Status != engine.Hit && (e.Root < 0 || !p.Entries[e.Root].Cause) ||
			e.Cause && e.Root != i {
			t.Errorf("the root of %s is entry %d", e.Step, e.Root)
		}
		line := e.Status.String() + " "
		if e.Cause {
			line += "* "
		}
		line += e.Step
		for i, r := range e.Reasons {
			line += [...]string{"; ", ": "}[min(1, max(0, 1-i))] + r.String()
		}
		got = append(got, line)
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("plan is\n%s\nwant\n%s", g, w)
	}
}

func TestPlanOfAColdBuild(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, of(s.source("hello")))
	b := s.add("b", 2, nil)
	c := s.add("c", 3, of(a, b))
	d := s.add("d", 4, of(c))
	shows(t, s.plan(d),
		"run * a: no result yet",
		"run * b: no result yet",
		"maybe c: follows a",
		"maybe d: follows c")
	if p := s.plan(d); len(p.Sources) != 1 || p.Sources[0].Size != 5 || p.Sources[0].Digest != cache.Digest(sha256.Sum256([]byte("hello"))) {
		t.Errorf("the sources of the plan are %v", p.Sources)
	}
	s.ran()
	if len(s.store.made) > 0 {
		t.Error("MakePlan wrote blobs")
	}
}

// Each follower is counted with one cause: the first that it follows or, if only its bytes
// are needed again, that of who needs them.
func TestPlanKnowsWhoFollowsWhom(t *testing.T) {
	s := newScene(t)
	world := func(seed int) *engine.Artifact {
		a := s.add("a", 1, of(s.source("one")), transient)
		b := s.add("b", seed, of(a))
		c := s.add("c", 9, nil)
		d := s.add("d", 3, of(b, c))
		return s.add("e", 4, of(d))
	}
	s.build(world(2))
	s.again()
	p := s.plan(world(20))
	shows(t, p, "run a: needed again by b", "run * b: seed: 2 → 20", "hit c", "maybe d: follows b", "maybe e: follows d")
	for i, want := range []int{1, 1, -1, 1, 1} {
		if got := p.Entries[i].Root; got != want {
			t.Errorf("the root of %s is entry %d, want %d", p.Entries[i].Step, got, want)
		}
	}
}

func TestPlanSaysWhichSettingChanged(t *testing.T) {
	s := newScene(t)
	world := func(b int, text string) *engine.Artifact {
		first := s.add("a", 1, of(s.source(text)))
		second := s.add("b", b, of(first), few(b))
		return s.add("c", 3, of(second))
	}
	s.build(world(2, "one"))
	for _, test := range []struct {
		name  string
		world func() *engine.Artifact
		want  []string
	}{
		{"nothing", func() *engine.Artifact { return world(2, "one") }, []string{"hit a", "hit b", "hit c"}},
		{"two settings of one action", func() *engine.Artifact { return world(20, "one") }, []string{
			"hit a", "run * b: seed: 2 → 20; spread: [2] → [20]", "maybe c: follows b",
		}},
		{"a file", func() *engine.Artifact { return world(2, "two") }, []string{
			"run * a: input " + s.dir + "/text changed", "maybe b: follows a", "maybe c: follows b",
		}},
		{"a file, and a setting behind it", func() *engine.Artifact { return world(21, "two") }, []string{
			"run * a: input " + s.dir + "/text changed", "maybe * b: seed: 2 → 21; spread: [2] → [21]; follows a",
			"maybe c: follows b",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.again()
			shows(t, s.plan(test.world()), test.want...)
		})
	}
}

func TestPlanOfOtherInputs(t *testing.T) {
	s := newScene(t)
	a, b := s.add("a", 1, nil), s.add("b", 2, nil)
	s.build(a, b, s.add("c", 3, of(a)))
	s.again()
	s.add("a", 1, nil)
	b = s.add("b", 2, nil)
	shows(t, s.plan(s.add("c", 3, of(b))), "hit b", "run * c: input b changed")
	s.again()
	a, b = s.add("a", 1, nil), s.add("b", 2, nil)
	shows(t, s.plan(s.add("c", 3, of(b, a))), "hit a", "hit b", "run * c: inputs: 1 → 2; input b changed")
	s.again()
	shows(t, s.plan(s.add("c", 3, nil)), "run * c: inputs: 1 → 0")
}

func TestPlanOfAnEvictedResult(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil)
	s.build(a)
	for k := range s.store.keys {
		s.store.lost[k] = true
	}
	shows(t, s.plan(a), "run * a: result no longer in the cache")
}

func TestPlanOfMissingBytes(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil)
	b := s.add("b", 2, of(a))
	outs := s.build(a, b)
	s.forget(outs...)
	shows(t, s.plan(b), "run * a: output a missing from the cache", "run * b: output b missing from the cache")
	shows(t, s.plan(s.add("c", 3, of(a, b))), "run * a: output a missing from the cache",
		"run * b: output b missing from the cache", "run c: no result yet")
}

// What may have to run because something after it may run is a maybe too.
func TestPlanOfBytesThatMayBeNeeded(t *testing.T) {
	s := newScene(t)
	world := func(a int) *engine.Artifact {
		first := s.add("a", a, nil)
		kept := s.add("kept", 2, nil)
		gone := s.add("gone", 3, of(kept))
		x := s.add("x", 4, of(gone), transient)
		unused := s.add("unused", 5, of(x), transient)
		return s.add("z", 7, of(first, x, s.add("y", 6, of(unused)), gone))
	}
	z := world(1)
	s.build(z)
	for _, e := range s.events {
		if e, ok := e.(engine.Finished); ok && e.Step == "gone" {
			s.forget(e.Result.Outputs...)
		}
	}
	s.again()
	shows(t, s.plan(world(10)),
		"run * a: seed: 1 → 10", "hit kept", "maybe * gone: output gone missing from the cache",
		"maybe x: needed again by z", "hit y", "maybe z: follows a")
}

func TestPlanOfTransientArtifacts(t *testing.T) {
	s := newScene(t)
	file, _ := s.layers(1, 2, 3)
	s.build(file)
	s.again()
	file, _ = s.layers(1, 2, 3)
	shows(t, s.plan(file), "hit codes 0", "hit codes 1", "hit codes 2", "hit file")
	s.again()
	file, _ = s.layers(1, 22, 3)
	p := s.plan(file)
	shows(t, p,
		"run embed: needed again by inputs 0",
		"hit codes 0",
		"run inputs 0: needed again by hessian 1",
		"run hessian 1: needed again by codes 1",
		"run * codes 1: seed: 2 → 22",
		"maybe inputs 1: follows codes 1",
		"maybe hessian 2: follows inputs 1",
		"maybe codes 2: follows hessian 2",
		"maybe file: follows codes 1")
	s.build(file)
	s.ran(29, 30, 11, 22, 31, 12, 3, 99)
}

func TestPlanTotals(t *testing.T) {
	s := newScene(t)
	now := clock()
	s.opt.Now = func() time.Time { return now }
	takes := func(d time.Duration) change {
		return doing(func(context.Context, func(float64, string)) error {
			now = now.Add(d)
			return nil
		})
	}
	costs := func(seconds float64, size, peak int64) change {
		return func(a *engine.Action) {
			a.Cost, a.Peak, a.Pool = seconds, peak, "gpu"
			a.Outputs[0].Size = size
		}
	}
	world := func(seed int) *engine.Artifact {
		a := s.add("a", 1, nil, takes(2*time.Second), costs(100, 1000, 10))
		b := s.add("b", seed, of(a), takes(3*time.Second), costs(100, 2000, 30))
		return s.add("c", 3, of(b), takes(4*time.Second), costs(100, 3000, 20))
	}
	want := world(2)
	p := s.plan(want)
	if got, want := fmt.Sprint(p.Total(engine.Hit), p.Total(engine.Run), p.Total(engine.Maybe)),
		"{0 0 0 0} {1 1000 10 100} {2 5000 30 200}"; got != want {
		t.Errorf("totals of a cold build are %s, want %s", got, want)
	}
	s.build(want)
	s.again()
	want = world(20)
	p = s.plan(want)
	if got, want := fmt.Sprint(p.Total(engine.Hit), p.Total(engine.Run), p.Total(engine.Maybe)),
		"{1 68 10 2} {1 2000 30 3} {1 3000 20 4}"; got != want {
		t.Errorf("totals are %s, want %s", got, want)
	}
	if err := p.Fits(30); err != nil {
		t.Errorf("Fits(30): %v", err)
	}
	if err := p.Fits(0); err != nil {
		t.Errorf("Fits(0): %v", err)
	}
	if err := p.Fits(29); err == nil || err.Error() != "b needs 30 bytes of memory, and the budget is 29" {
		t.Errorf("Fits(29): %v", err)
	}
	e := p.Entries[0]
	if e.Pool != "gpu" || e.Result.Duration != 2*time.Second || e.Manifest == "" || e.Key == p.Entries[2].Key {
		t.Errorf("entry is %+v", e)
	}
	s.build(want)
	if e, ok := s.events[2].(engine.Started); !ok || e.Estimate != 3 {
		t.Errorf("event is %#v, want Started with an estimate of 3 seconds", s.events[2])
	}
}

func TestInterruptedPlan(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := engine.MakePlan(ctx, s.graph, of(s.add("a", 1, nil)), s.opt); err == nil {
		t.Error("no error")
	}
}

func TestReasonsAsText(t *testing.T) {
	for _, test := range []struct {
		reason engine.Reason
		want   string
	}{
		{engine.Reason{}, "no result yet"},
		{engine.Reason{Kind: engine.Evicted}, "result no longer in the cache"},
		{engine.Reason{Kind: engine.Setting, Name: "damping", Old: "0.01", New: "0.02"}, "damping: 0.01 → 0.02"},
		{engine.Reason{Kind: engine.Setting, Name: "damping", New: "0.02"}, "damping: none → 0.02"},
		{engine.Reason{Kind: engine.Setting, Name: "damping", Old: "0.02"}, "damping: 0.02 → none"},
		{engine.Reason{Kind: engine.Input, Name: "calibration.mix"}, "input calibration.mix changed"},
		{engine.Reason{Kind: engine.Missing, Name: "codes.body"}, "output codes.body missing from the cache"},
		{engine.Reason{Kind: engine.Needed, Name: "codes.body"}, "needed again by codes.body"},
		{engine.Reason{Kind: engine.Follows, Name: "codes.body"}, "follows codes.body"},
	} {
		if got := test.reason.String(); got != test.want {
			t.Errorf("%#v is %q, want %q", test.reason, got, test.want)
		}
	}
}

// What a gc dropped is made again without a warning: its tombstone says what it was.
func TestPlanOfWhatAGCDropped(t *testing.T) {
	s := newScene(t)
	s.opt.Now = clock
	a := s.add("a", 1, nil)
	b := s.add("b", 2, of(a))
	outs := s.build(a, b)
	key := s.plan(a).Entries[0].Key
	res, err := s.store.Lookup(key)
	if err != nil {
		t.Fatal(err)
	}
	res.Evicted = clock().Add(-150 * time.Minute)
	if err := s.store.Record(key, res); err != nil {
		t.Fatal(err)
	}
	s.forget(outs[0])
	shows(t, s.plan(b), "hit a", "hit b") // its digest is known, and b has all it needs
	p := s.plan(a, b)
	shows(t, p, "run * a: dropped by gc 2 h ago", "hit b")
	if !p.Entries[0].Cause || !p.Entries[0].Evicted.Equal(res.Evicted) {
		t.Errorf("entry is %+v", p.Entries[0])
	}
	s.again()
	a = s.add("a", 1, nil)
	s.build(a, s.add("b", 2, of(a)))
	s.ran(1)
	if story := s.story(); !strings.Contains(story, "started a[dropped by gc 2 h ago]") || strings.Contains(story, "warned") {
		t.Errorf("events:\n%s", story)
	}
	if res, err := s.store.Lookup(key); err != nil || !res.Evicted.IsZero() {
		t.Errorf("after the rerun: %+v, %v", res, err)
	}
}

// Figures of a plan: the longest chain, the most bytes at once, and times of actions that
// never ran by what others of their kind took.
func TestPlanFigures(t *testing.T) {
	s := newScene(t)
	add := func(step string, cost float64, size int64, in []*engine.Artifact, changes ...change) *engine.Artifact {
		return s.add(step, len(step)*31+int(step[0]), in, append(changes, func(a *engine.Action) {
			a.Cost, a.Outputs[0].Size = cost, size
		})...)
	}
	x := add("x", 5, 100, nil, transient)
	h := add("h", 1, 60, of(x), transient)
	c := add("c", 7, 10, of(h))
	y := add("y", 2, 100, of(x, c), transient)
	d := add("d", 3, 10, of(y))
	p := s.plan(c, d, add("beside", 4, 5, nil))
	seconds, chain := p.Critical()
	var steps []string
	for _, e := range chain {
		steps = append(steps, e.Step)
	}
	if got := strings.Join(steps, " "); seconds != 18 || got != "x h c y d" {
		t.Errorf("the longest chain is %q with %v s", got, seconds)
	}
	// x 100, h 60, c 10: h goes, then y 100: x goes, then d 10: y goes, then beside 5.
	if n := p.Disk(); n != 210 {
		t.Errorf("most bytes at once: %d, want x, c and y: 210", n)
	}
	t.Run("with what others took", func(t *testing.T) {
		s.build(c)
		for _, e := range s.plan(c).Entries { // it took twice what was estimated
			res := e.Result
			res.Duration = 14_000_000_000
			if err := s.store.Record(e.Key, res); err != nil || e.Step != "c" {
				t.Fatal(e.Step, err)
			}
		}
		for _, e := range s.plan(c, d).Entries {
			want := map[string]float64{"x": 10, "c": 14, "y": 4, "d": 6}[e.Step]
			if e.Seconds != want {
				t.Errorf("%s is expected to take %v s, want %v", e.Step, e.Seconds, want)
			}
		}
	})
	t.Run("of nothing to do", func(t *testing.T) {
		s.build(c, d)
		p := s.plan(c, d)
		if seconds, chain := p.Critical(); seconds != 0 || chain != nil || p.Disk() != 0 {
			t.Errorf("longest chain %v s, %d entries; %d bytes", seconds, len(chain), p.Disk())
		}
	})
}
