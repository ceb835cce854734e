package record_test

import (
	"fmt"
	"reflect"
	"testing"

	"bonsai/engine"
	"bonsai/engine/record"
)

// planOf plans a chain in a store.
func planOf(t *testing.T, opt engine.Options, texts ...word) (*engine.Plan, *engine.Graph) {
	t.Helper()
	g, want := chain(texts...)
	p, err := engine.MakePlan(t.Context(), g, want, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p, g
}

// The story of a plan, and later of the build, leads from each action to the one that
// was edited.
func TestStory(t *testing.T) {
	d, now := openStore(t), clock()
	opt := engine.Options{Store: d, History: d, Sources: d, Recipe: "r"}
	texts := []word{{text: "v"}, {text: "w"}, {text: "x"}, {text: "y"}}
	build(t, d, now, texts...)
	texts[1].text = "W"
	plan := record.OfPlan(planOf(t, opt, texts...))
	run := record.OfRun(build(t, d, now, texts...))
	for name, story := range map[string]record.Story{"plan": plan, "run": run} {
		if len(story) != 3 || story["word.a"] != nil || !story["word.b"].Cause || story["word.d"].Cause {
			t.Errorf("story of the %s: %v", name, story)
		}
		for from, want := range map[string]string{
			"word.a": "[]", "word.b": "[[word.b]]", "word.c": "[[word.c word.b]]", "word.d": "[[word.d word.c word.b]]", "none": "[]",
		} {
			if got := fmt.Sprint(story.Chains(from, 3)); got != want {
				t.Errorf("%s: %s comes of %s, want %s", name, from, got, want)
			}
		}
	}
	if story := record.OfPlan(planOf(t, opt, texts...)); len(story) != 0 {
		t.Errorf("nothing is left to do, and the story is %v", story)
	}
}

// An action behind two causes has both, the nearer one first.
func TestChainsOfTwoCauses(t *testing.T) {
	g := &engine.Graph{}
	add := func(name string, in ...*engine.Artifact) *engine.Artifact {
		return g.Add(engine.Action{Step: name, Op: word{text: name}, In: in, Outputs: []engine.Output{{}}})[0]
	}
	near, far := add("near"), add("far")
	middle := add("middle", far)
	top := add("top", middle, near)
	p, err := engine.MakePlan(t.Context(), g, []*engine.Artifact{top}, engine.Options{Store: openStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Chain{{"top", "near"}, {"top", "middle", "far"}}
	if got := record.OfPlan(p, g).Chains("top", 3); !reflect.DeepEqual(got, want) {
		t.Errorf("Chains = %v, want %v", got, want)
	}
	if got := record.OfPlan(p, g).Chains("top", 1); !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("Chains of one = %v, want %v", got, want[:1])
	}
}
