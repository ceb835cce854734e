package rules_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bonsai/rules"
)

// described returns the schema of every rule.
func described(t *testing.T) map[string]rules.Schema {
	t.Helper()
	schemas := map[string]rules.Schema{}
	for name, r := range rules.Standard(rules.Settings{}) {
		d, ok := r.(rules.Described)
		if !ok {
			t.Fatalf("the rule of %s does not describe itself", name)
		}
		schemas[name] = d.Schema()
	}
	return schemas
}

func TestSchemaTellsOfEverything(t *testing.T) {
	var tell func(where string, s rules.Schema)
	tell = func(where string, s rules.Schema) {
		if !strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s: %q is no sentence", where, s.Doc)
		}
		for _, a := range s.Attributes {
			if !strings.HasSuffix(a.Doc, ".") || a.Type == "any" {
				t.Errorf("%s.%s has type %q and the sentence %q", where, a.Name, a.Type, a.Doc)
			}
			if !a.Required && a.Default == "" && a.Absent == "" {
				t.Errorf("%s.%s: what holds without it?", where, a.Name)
			}
		}
		for _, n := range s.Blocks {
			tell(where+"."+n.Type, n.Schema)
		}
	}
	for name, s := range described(t) {
		tell(name, s)
	}
}

// A block may hold what its schema tells of, and must hold what that requires.
func TestSchemaIsWhatARuleDecodes(t *testing.T) {
	missing := regexp.MustCompile(`Missing required argument: The argument "(\w+)"`)
	for name, s := range described(t) {
		var optional, required []string
		for _, a := range s.Attributes {
			if a.Required {
				required = append(required, a.Name)
			} else {
				optional = append(optional, a.Name+" = "+sample(a))
			}
		}
		_, said := load(t, t.TempDir(), fmt.Sprintf("%s %q {\n%s\n}", name, "x", strings.Join(optional, "\n")))
		var asked []string
		for _, m := range missing.FindAllStringSubmatch(said, -1) {
			asked = append(asked, m[1])
		}
		slices.Sort(required)
		slices.Sort(asked)
		if !slices.Equal(required, asked) || strings.Contains(said, "Unsupported argument") {
			t.Errorf("%s: schema requires %v; with all the rest the rule said\n%s", name, required, said)
		}
	}
}

// sample returns a value of an attribute's type.
func sample(a rules.Attribute) string {
	switch a.Type {
	case "string":
		return `"x"`
	case "bool":
		return "true"
	case "integer", "number":
		return "1"
	}
	return "[]"
}

// blockOf is where each block type stands in the recipe that mistakes are made in.
func blockOf(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^` + name + ` "\w+" \{`)
}

// with returns base with an attribute in the block of a type, in place of the one there;
// without it if value is empty.
func with(t *testing.T, block, attribute, value string) string {
	t.Helper()
	text := strings.ReplaceAll(base, "{model}", "qwen3")
	text = regexp.MustCompile(`(?m)^(\w+ "\w+" \{) (.*) \}$`).ReplaceAllString(text, "$1\n  $2\n}")
	at := blockOf(block).FindStringIndex(text)
	if at == nil {
		t.Fatalf("base has no block %s", block)
	}
	end := at[1] + strings.Index(text[at[1]:], "\n}")
	body := regexp.MustCompile(`(?m)^  `+attribute+` +=.*$`).ReplaceAllString(text[at[1]:end], "")
	if value == "" {
		return text[:at[1]] + body + text[end:]
	}
	return text[:at[1]] + "\n  " + attribute + " = " + value + body + text[end:]
}

// manifests returns what the actions of a recipe are, as text.
func manifests(t *testing.T, dir, text string) string {
	t.Helper()
	r, said := load(t, dir, text)
	if said != "" {
		t.Fatalf("%s\nsaid %s", text, said)
	}
	var b strings.Builder
	for a := range r.Graph.Actions() {
		fmt.Fprintln(&b, a.String())
		op, err := a.Op.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(op)
	}
	return b.String()
}

// A default that is told means the same as leaving the attribute out.
func TestSchemaDefaults(t *testing.T) {
	dir := folder(t)
	for name, s := range described(t) {
		for _, a := range s.Attributes {
			if a.Default == "" {
				continue
			}
			without := with(t, name, a.Name, "")
			if got, want := manifests(t, dir, with(t, name, a.Name, a.Default)), manifests(t, dir, without); got != want {
				t.Errorf("%s.%s = %s and nothing give different actions", name, a.Name, a.Default)
			}
		}
	}
}

// The values that are told are all that there are.
func TestSchemaValues(t *testing.T) {
	dir := folder(t)
	for name, s := range described(t) {
		for _, a := range s.Attributes {
			for _, v := range a.Values {
				if _, said := load(t, dir, with(t, name, a.Name, fmt.Sprintf("%q", v))); said != "" && name != "dataset" {
					t.Errorf("%s.%s = %q: %s", name, a.Name, v, said)
				}
			}
			if _, said := load(t, dir, with(t, name, a.Name, `"nonsense"`)); len(a.Values) > 0 && !strings.Contains(said, "nonsense") {
				t.Errorf("%s.%s takes nonsense: %q", name, a.Name, said)
			}
		}
	}
}

// A reference to a step of a type that is told is taken, and any other is refused.
func TestSchemaReferences(t *testing.T) {
	dir := folder(t)
	steps := map[string]string{
		"checkpoint": "checkpoint.base", "dataset": "dataset.text", "calibration": "calibration.mix", "rotation": "rotation.signs",
		"codes": "codes.body", "endpoints": "endpoints.ends", "gguf": "gguf.file", "evaluation": "evaluation.final",
	}
	schemas := described(t)
	for name, s := range schemas {
		for _, a := range s.Attributes {
			if len(a.Refers) == 0 {
				continue
			}
			for other, address := range steps {
				_, said := load(t, dir, with(t, name, a.Name, address))
				refused := strings.Contains(said, "Wrong kind of reference") || strings.Contains(said, "refer to each other") || strings.Contains(said, "ycl")
				if told := slices.Contains(a.Refers, other); told == refused {
					t.Errorf("%s.%s = %s: told %v, and it said %q", name, a.Name, address, told, said)
				}
			}
		}
	}
	if len(steps) != len(schemas) {
		t.Errorf("steps are of types %v; the rules are %v", slices.Sorted(maps.Keys(steps)), slices.Sorted(maps.Keys(schemas)))
	}
}

func TestDocsOfWhatIsNotThere(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, `"nme"`) {
			t.Errorf("panicked with %q", got)
		}
	}()
	rules.SchemaOf(struct {
		Name string `hcl:"name"`
	}{}, "", map[string]rules.Attribute{"nme": {}})
}
