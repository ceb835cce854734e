package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
)

// aPlan has two causes, followers in layers and in instances of for_each, something that
// is needed again, and hits.
func aPlan() *view.Planning {
	p := &engine.Plan{}
	add := func(e engine.Entry) int {
		p.Entries = append(p.Entries, e)
		return len(p.Entries) - 1
	}
	add(engine.Entry{
		Step: "checkpoint.base", Status: engine.Hit, Root: -1, Size: 8 << 20, Seconds: 120,
		Key: cache.Key{1}, Result: cache.Result{Note: "12 tensors"},
	})
	mix := add(engine.Entry{
		Step: "calibration.mix", Status: engine.Run, Cause: true, Root: 1, Size: 1 << 20, Seconds: 2.5, Peak: 1 << 30,
		Key: cache.Key{2}, Pool: "cpu", Reasons: []engine.Reason{{Kind: engine.Setting, Name: "blocks", Old: "12", New: "13"}},
	})
	for layer := range 3 {
		add(engine.Entry{
			Step: "codes.body", Name: fmt.Sprintf("layer %d down hessian", layer), Status: engine.Maybe, Root: mix,
			Size: 4 << 20, Seconds: 60, Peak: 3 << 30, Pool: "gpu", Reasons: []engine.Reason{{Kind: engine.Follows, Name: "calibration.mix"}},
		})
	}
	tokens := add(engine.Entry{
		Step: `traces.自分["数学 🧮"]`, Status: engine.Run, Cause: true, Root: 5, Key: cache.Key{3},
		Reasons: []engine.Reason{
			{Kind: engine.Setting, Name: "prompt", Old: `"` + strings.Repeat("long ", 30) + `"`, New: `"short"`},
			{Kind: engine.Input, Name: "prompts/数学.jsonl"},
			{Kind: engine.Evicted, Old: "2 h ago"},
			{Kind: engine.Setting, Name: "seed", Old: "1"},
		},
	})
	for _, key := range []string{"a", "b", "c", "z"} {
		add(engine.Entry{
			Step: `mix.made["` + key + `"]`, Status: engine.Run, Root: tokens, Size: 100, Seconds: 0.02, Key: cache.Key{4},
			Reasons: []engine.Reason{{Kind: engine.Input, Name: "traces.自分"}},
		})
	}
	add(engine.Entry{
		Step: "codes.body", Name: "layer 0 inputs", Status: engine.Run, Root: mix, Key: cache.Key{5},
		Reasons: []engine.Reason{{Kind: engine.Needed, Name: "codes.body layer 0 down hessian"}},
	})
	for _, i := range []int{1, 2} {
		p.Entries[i].Critical = true
	}
	p.Entries[3].Dropped = 8 << 20
	p.Entries[tokens].Evicted = time.Unix(1_800_000_000, 0).UTC()
	p.Sources = []engine.Source{{Path: "text.txt", Output: cache.Output{Size: 12}}}
	return &view.Planning{Plan: p, Budget: view.Budget{Memory: 8 << 30, Disk: 20 << 30}, Compared: "of 12:04"}
}

func drawPlan(t *testing.T, p *view.Planning, opt view.PlanOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := view.WritePlan(&b, p, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	inLooks(t, "plan", func(t *testing.T, s view.Style) string {
		return drawPlan(t, aPlan(), view.PlanOptions{Style: s})
	})
}

func TestPlanOfAll(t *testing.T) {
	inLooks(t, "plan_all", func(t *testing.T, s view.Style) string {
		return drawPlan(t, aPlan(), view.PlanOptions{Style: s, All: true})
	})
}

func TestPlanAsJSON(t *testing.T) {
	golden(t, "plan.json", drawPlan(t, aPlan(), view.PlanOptions{JSON: true}))
}

func TestPlanOfNothing(t *testing.T) {
	p := aPlan()
	p.Entries = p.Entries[:1]
	inLooks(t, "plan_nothing", func(t *testing.T, s view.Style) string {
		return drawPlan(t, p, view.PlanOptions{Style: s})
	})
}

// A plan that does not fit says of what there is too little.
func TestPlanThatDoesNotFit(t *testing.T) {
	p := aPlan()
	p.Budget = view.Budget{Memory: 2 << 30, Disk: 1 << 20}
	inLooks(t, "plan_too_big", func(t *testing.T, s view.Style) string {
		return drawPlan(t, p, view.PlanOptions{Style: s})
	})
}

// A plan of a hundred thousand actions is a screen of lines.
func TestPlanOfManyActions(t *testing.T) {
	p := &engine.Plan{}
	for i := range 100_000 {
		p.Entries = append(p.Entries, engine.Entry{
			Step: fmt.Sprintf(`mix.a["%d"]`, i), Status: engine.Run, Cause: true, Root: i, Reasons: []engine.Reason{{}},
		})
	}
	got := drawPlan(t, &view.Planning{Plan: p}, view.PlanOptions{Style: view.Style{Width: 80}})
	if want := `+ mix.a["0"] … ["99999"]: 100000 run `; !strings.Contains(got, want) || strings.Count(got, "\n") > 7 {
		t.Errorf("drawn:\n%s", got)
	}
}
