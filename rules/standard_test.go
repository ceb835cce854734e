package rules_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/engine"
	"bonsai/ops/mlx"
	"bonsai/recipes"
	"bonsai/rules"
)

var update = flag.Bool("update", false, "write what came as what is wanted")

func load(t *testing.T, dir, text string) (*recipes.Recipe, string) {
	t.Helper()
	settings := rules.Settings{Engine: mlx.New("go"), Rate: 1e9}
	r, diags := recipes.Load([]recipes.File{{Name: "recipe.hcl", Bytes: []byte(text)}}, recipes.Options{
		Catalogue: rules.Standard(settings), Dir: dir, Version: "0.1.0",
	})
	var said []string
	for _, d := range diags {
		said = append(said, fmt.Sprintf("%d: %s: %s", d.Subject.Start.Line, d.Summary, d.Detail))
	}
	return r, strings.Join(said, "\n")
}

// shipped returns the text of the shipped recipe.
func shipped(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../recipes", "tiny.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestActions holds the actions of the shipped recipe and what they read, so that a
// change of what is computed from what shows in review.
func TestActions(t *testing.T) {
	r, said := load(t, "../recipes", shipped(t))
	if said != "" {
		t.Fatal(said)
	}
	var b strings.Builder
	for a := range r.Graph.Actions() {
		fmt.Fprintf(&b, "%s%s\n", a, transient(a))
		for _, in := range a.In {
			fmt.Fprintf(&b, "  < %s\n", in)
		}
	}
	golden := filepath.Join("testdata", "tiny.actions")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the actions of tiny.hcl are\n%s\nwant those of %s; -update writes them", b.String(), golden)
	}
}

func transient(a engine.Action) string {
	if a.Outputs[0].Transient {
		return " (transient)"
	}
	return ""
}

// TestEstimates holds that a plan has something to say about every costly action.
func TestEstimates(t *testing.T) {
	r, said := load(t, "../recipes", shipped(t))
	if said != "" {
		t.Fatal(said)
	}
	for a := range r.Graph.Actions() {
		costly := strings.Contains(a.Name, "layer") || strings.Contains(a.Name, "head")
		if costly && (a.Cost <= 0 || a.Peak <= 0) {
			t.Errorf("%s: estimated at %v s and %d bytes of memory", a, a.Cost, a.Peak)
		}
		for _, o := range a.Outputs {
			if o.Size <= 0 {
				t.Errorf("%s: output %q has no estimated size", a, o.Name)
			}
		}
	}
}
