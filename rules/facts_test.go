package rules_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/rules"
)

// TestFacts holds that every step of the shipped recipe has the facts that the reference
// of the language tells of, and no others.
func TestFacts(t *testing.T) {
	r, said := load(t, "../recipes", shipped(t))
	if said != "" {
		t.Fatal(said)
	}
	reference, err := os.ReadFile(filepath.Join("..", "recipes", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Steps {
		step, ok := s.Value.(rules.Factual)
		if !ok {
			t.Errorf("%s has no facts", s.Address)
			continue
		}
		kind, _, _ := strings.Cut(s.Address, ".")
		if want := factsIn(string(reference), kind); !slices.Equal(slices.Sorted(maps.Keys(step.Facts())), want) {
			t.Errorf("facts of %s are %v; doc.go says %v", s.Address, step.Facts(), want)
		}
	}
}

// factsIn returns the names after "//   - KIND:" in the reference, sorted, up to what it says
// of another form of the step.
func factsIn(reference, kind string) []string {
	reference = strings.ReplaceAll(reference, "codes and endpoints:", "codes: method damping tensors weights tokens\n//   - endpoints:")
	_, text, _ := strings.Cut(reference, "//   - "+kind+":")
	text, _, _ = strings.Cut(text, "//   - ")
	text, _, _ = strings.Cut(text, "//\n")
	text, _, _ = strings.Cut(text, ";")
	names := strings.FieldsFunc(strings.TrimSuffix(strings.TrimSpace(text), ", as planned"), func(r rune) bool {
		return strings.ContainsRune(" \n/,", r)
	})
	slices.Sort(names)
	return names
}

func TestFactsAreRight(t *testing.T) {
	for fact, right := range map[string]bool{
		"facts(checkpoint.base).layers == 4":                                  true,
		"facts(checkpoint.base).layers == 5":                                  false,
		"facts(calibration.mix).tokens == var.blocks * 128":                   true,
		`facts(gguf.model).file == "tiny-qwen3-PTQ1_0.gguf"`:                  true,
		"facts(gguf.model).weights == facts(checkpoint.base).parameters":      true,
		"facts(gguf.model).bytes * 7 < facts(checkpoint.base).bytes":          true,
		"facts(checkpoint.base).bytes == facts(checkpoint.base).parameters*2": true,
		"floor(facts(gguf.model).bits_per_weight) == 1":                       true,
	} {
		text := shipped(t) + `
rotation "probe" {
  model = checkpoint.base
  precondition {
    condition     = ` + fact + `
    error_message = "wrong"
  }
}`
		if _, said := load(t, "../recipes", text); (said == "") != right {
			t.Errorf("%s: said %q", fact, said)
		}
	}
}
