package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"bonsai/engine"

	"github.com/dominikbraun/graph"
)

func TestSourceIsOneArtifactForEachPath(t *testing.T) {
	g := &engine.Graph{}
	a, b, c := g.Source("dir/text"), g.Source("dir/../dir//text"), g.Source("other")
	if a != b || a == c {
		t.Error("sources are not told apart by their cleaned path")
	}
	if path, ok := a.Source(); path != "dir/text" || !ok || a.String() != path {
		t.Errorf("source is %q, %v, %v", path, ok, a)
	}
	if _, ok := a.Action(); ok {
		t.Error("a source has an action")
	}
	if a.Output() != (engine.Output{}) {
		t.Errorf("output of a source is %+v", a.Output())
	}
}

func TestNamesOfArtifacts(t *testing.T) {
	g := &engine.Graph{}
	op := mix{}
	one := g.Add(engine.Action{Step: "calibration.mix", Op: op, Outputs: []engine.Output{{Name: "blocks"}}})
	two := g.Add(engine.Action{
		Step: "codes.body", Name: "layer 3 qkv", Op: op, In: one,
		Outputs: []engine.Output{{Name: "codes", Size: 7}, {Name: "report", Transient: true}},
	})
	if got, want := fmt.Sprint(one, two), "[calibration.mix] [codes.body layer 3 qkv codes codes.body layer 3 qkv report]"; got != want {
		t.Errorf("names are %s, want %s", got, want)
	}
	a, ok := two[1].Action()
	if !ok || a.Step != "codes.body" || two[1].Output() != (engine.Output{Name: "report", Transient: true}) {
		t.Errorf("action is %+v, output %+v", a, two[1].Output())
	}
	if _, ok := two[0].Source(); ok {
		t.Error("an output is a source")
	}
	var steps []string
	for a := range g.Actions() {
		steps = append(steps, a.Step)
		if len(steps) == 2 {
			break
		}
	}
	if !slices.Equal(steps, []string{"calibration.mix", "codes.body"}) {
		t.Errorf("actions are %v", steps)
	}
}

func TestMistakesOfTheProgramPanic(t *testing.T) {
	other := (&engine.Graph{}).Source("x")
	out := []engine.Output{{}}
	for name, f := range map[string]func(g *engine.Graph){
		"no op":                      func(g *engine.Graph) { g.Add(engine.Action{Outputs: out}) },
		"no output":                  func(g *engine.Graph) { g.Add(engine.Action{Op: mix{}}) },
		"input of another graph":     func(g *engine.Graph) { g.Add(engine.Action{Op: mix{}, Outputs: out, In: of(other)}) },
		"no input":                   func(g *engine.Graph) { g.Add(engine.Action{Op: mix{}, Outputs: out, In: of(nil)}) },
		"wanted from another graph":  func(g *engine.Graph) { _, _ = engine.Build(t.Context(), g, of(other), engine.Options{}) },
		"planned from another graph": func(g *engine.Graph) { _, _ = engine.MakePlan(t.Context(), g, of(other), engine.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(&engine.Graph{})
		})
	}
}

func TestDigraph(t *testing.T) {
	g := &engine.Graph{}
	source := g.Source("text")
	ab := g.Add(engine.Action{Step: "ab", Op: mix{}, In: of(source, source), Outputs: make([]engine.Output, 2)})
	c := g.Add(engine.Action{Step: "c", Op: mix{}, In: of(ab[0], ab[1], source), Outputs: make([]engine.Output, 1)})[0]
	d := g.Digraph()

	names := make(map[int]string)
	edges, err := d.Edges()
	if err != nil {
		t.Fatal(err)
	}
	adjacent, err := d.AdjacencyMap()
	if err != nil {
		t.Fatal(err)
	}
	for id := range adjacent {
		a, properties, err := d.VertexWithProperties(id)
		if err != nil {
			t.Fatal(err)
		}
		names[id] = properties.Attributes["label"]
		if names[id] != a.String() {
			t.Errorf("label of %v is %q", a, names[id])
		}
	}
	var got []string
	for _, e := range edges {
		got = append(got, names[e.Source]+" > "+names[e.Target])
	}
	slices.Sort(got)
	want := []string{"ab  > c", "ab  > c", "text > ab ", "text > ab ", "text > c"}
	if !slices.Equal(got, want) {
		t.Errorf("edges are %q, want %q", got, want)
	}
	cycles, err := graph.StronglyConnectedComponents(d)
	if err != nil || len(cycles) != 4 {
		t.Errorf("components are %v, %v; want one for each artifact", cycles, err)
	}
	for _, component := range cycles {
		if len(component) != 1 {
			t.Errorf("component %v of a graph without cycles", component)
		}
	}
	_ = c
}
