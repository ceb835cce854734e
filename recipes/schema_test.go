package recipes_test

import (
	"slices"
	"strings"
	"testing"

	"bonsai/recipes"
	"bonsai/rules"
)

func TestDescribeTellsOfEverything(t *testing.T) {
	l := recipes.Describe(rules.Standard(rules.Settings{}))
	var tell func(where string, s rules.Schema)
	tell = func(where string, s rules.Schema) {
		for _, a := range s.Attributes {
			if !strings.HasSuffix(a.Doc, ".") || a.Type == "" {
				t.Errorf("%s.%s has type %q and the sentence %q", where, a.Name, a.Type, a.Doc)
			}
		}
		for _, n := range s.Blocks {
			if n.Doc == "" {
				t.Errorf("%s.%s has no sentence", where, n.Type)
			}
			tell(where+"."+n.Type, n.Schema)
		}
	}
	for _, b := range l.Blocks {
		if b.Doc == "" || b.Step != (rules.Standard(rules.Settings{})[b.Type] != nil) {
			t.Errorf("%s is described as %+v", b.Type, b)
		}
		tell(b.Type, b.Schema)
	}
	tell("step", l.Steps)
	for _, f := range l.Functions {
		if !strings.HasSuffix(f.Doc, ".") || !strings.HasPrefix(f.Signature, f.Name+"(") {
			t.Errorf("function %s has signature %q and the sentence %q", f.Name, f.Signature, f.Doc)
		}
	}
	if names := functionNames(t); len(l.Functions) < 50 || len(names) < len(l.Functions) {
		t.Errorf("%d functions are described, and funcs.go has %d", len(l.Functions), len(names))
	}
}

// What is described of the language's own blocks is what it takes: no more, no less.
func TestDescribedIsWhatIsRead(t *testing.T) {
	for _, b := range recipes.Describe(nil).Blocks {
		if b.Unnamed {
			continue
		}
		label, body := "", ""
		if b.Label != "" {
			label = ` "x"`
		}
		for _, a := range b.Attributes {
			if !a.Required {
				body += "\n" + a.Name + ` = "x"`
			}
		}
		_, diags := recipes.Load([]recipes.File{{Name: "a.hcl", Bytes: []byte(b.Type + label + " {" + body + "\n}")}}, recipes.Options{})
		missing := 0
		for _, d := range diags {
			if d.Summary == "Unsupported argument" {
				t.Errorf("%s: %v", b.Type, d)
			}
			if d.Summary == "Missing required argument" {
				missing++
			}
		}
		required := slices.DeleteFunc(slices.Clone(b.Attributes), func(a rules.Attribute) bool { return !a.Required })
		if missing != len(required) {
			t.Errorf("%s: %d attributes are required, and %d were asked for:\n%v", b.Type, len(required), missing, diags)
		}
	}
}

func TestSignatures(t *testing.T) {
	l := recipes.Describe(nil)
	for _, want := range []string{
		"join(separator string, lists list(string)…) string", "can(expression expression) bool",
		"env(name string, default string…) string", "lookup(inputMap any, key string, default any)",
	} {
		name, _, _ := strings.Cut(want, "(")
		if f := l.Function(name); f == nil || f.Signature != want {
			t.Errorf("%s has signature %+v; want %s", name, f, want)
		}
	}
}
