package assist_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"bonsai/recipes"
	"bonsai/recipes/assist"
	"bonsai/rules"
)

// mark is where the cursor is in the text of a test.
const mark = "‸"

// catalogue is the standard one, whose rules read no file unless a path is right.
func options(dir string) recipes.Options {
	return recipes.Options{Catalogue: rules.Standard(rules.Settings{}), Dir: dir, Version: "0.1.0"}
}

// at reads a recipe that is one file with a mark in it.
func at(t *testing.T, text string) (*assist.Recipe, assist.Place) {
	t.Helper()
	place := assist.Place{File: "a.hcl", Byte: strings.Index(text, mark)}
	if place.Byte < 0 {
		t.Fatalf("%q has no mark", text)
	}
	files := []recipes.File{{Name: "a.hcl", Bytes: []byte(strings.Replace(text, mark, "", 1))}}
	opt := options(t.TempDir())
	return assist.New(files, opt, recipes.Describe(opt.Catalogue)), place
}

const declarations = `
variable "seed" { default = 7 }
locals { twice = var.seed * 2 }
checkpoint "base" { from = "x" }
dataset "text" {
  kind = "text"
  path = "a.txt"
}
`

func TestComplete(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{ // the first items; … for any more
		{"the top of a file", mark, "include recipe variable locals target function …"},
		{"a block type half typed", "co" + mark, "codes"},
		{"attributes, those required first", "codes \"b\" {\n  " + mark + "\n}", "model calibration rotation method damping …"},
		{"attributes but those that are there", "codes \"b\" {\n  model = checkpoint.base\n  " + mark + "\n}", "calibration rotation method …"},
		{"an attribute half typed", "codes \"b\" {\n  da" + mark + "\n}", "damping"},
		{"in a nested block", "calibration \"b\" {\n  take \"x\" {\n    " + mark, "from n seed"},
		{"a nested block", "calibration \"b\" {\n  ta" + mark, "take"},
		{"of a block without an end", declarations + "rotation \"b\" {\n  m" + mark, "model"},
		{"in a block on one line", "rotation \"b\" { " + mark, "model seed block …"},
		{"references that the attribute takes", declarations + "rotation \"b\" {\n  model = " + mark + "\n}", "checkpoint.base checkpoint dataset local rotation var …"},
		{"a root half typed", declarations + "rotation \"b\" {\n  seed = va" + mark + "\n}", "var values"},
		{"names under a root", declarations + "rotation \"b\" {\n  seed = var." + mark + "\n}", "seed"},
		{"names under a root half typed", declarations + "rotation \"b\" {\n  seed = local.t" + mark + "\n}", "twice"},
		{"no names under what is no root", declarations + "rotation \"b\" {\n  seed = target." + mark + "\n}", ""},
		{"names in a text", declarations + "gguf \"b\" {\n  name = \"x-${var." + mark + "}\"\n}", "seed"},
		{"names in a list", declarations + "target \"t\" {\n  steps = [dataset." + mark + "]\n}", "text"},
		{"the only values", "dataset \"b\" {\n  kind = " + mark + "\n}", `"text" "wikitext" "json" "jsonl" "parquet" …`},
		{"the only values in quotes", "dataset \"b\" {\n  kind = \"j" + mark + "\"\n}", "json jsonl"},
		{"true and false", "dataset \"b\" {\n  trim = tr" + mark + "\n}", "true trim …"},
		{"functions of the recipe", "function \"jsonic\" {}\nlocals {\n  a = json" + mark + "\n}", "jsonic jsondecode jsonencode"},
		{"functions", "locals {\n  a = jsone" + mark + "\n}", "jsonencode"},
		{"types", "variable \"a\" {\n  type = li" + mark + "\n}", "list"},
		{"each in a block with for_each", "gguf \"b\" {\n  name = each." + mark + "\n  for_each = {}\n}", "key value"},
		{"no each in another", "gguf \"b\" {\n  name = each." + mark + "\n}", ""},
		{"what an override replaces", "include \"tiny\" {\n  override \"codes\" \"body\" {\n    dam" + mark, "damping"},
		{"self in a postcondition", "gguf \"b\" {\n  postcondition {\n    condition = self.b" + mark + "\n  }\n}", "bytes"},
		{"no self elsewhere", "gguf \"b\" {\n  name = self." + mark + "\n}", ""},
		{"the blocks of any step", "gguf \"b\" {\n  p" + mark + "\n}", "precondition postcondition"},
		{"built-in recipes", "include \"" + mark + "\"", "tiny …"},
		{"no names in a label", "codes \"" + mark + "\" {}", ""},
		{"nothing in a comment", "# co" + mark, ""},
		{"after a line that is left unfinished", "rotation \"a\" {\n  model = f(\n}\nrotation \"b\" {\n  mo" + mark, "model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, place := at(t, c.text)
			var labels []string
			for _, i := range r.Complete(place) {
				labels = append(labels, i.Label)
			}
			got := strings.Join(labels, " ")
			want, more := strings.CutSuffix(c.want, "…")
			if got != want && (!more || !strings.HasPrefix(got+" ", want)) {
				t.Errorf("at the mark in\n%s\nthere may be\n%s\nwant\n%s", c.text, got, c.want)
			}
		})
	}
}

func TestHover(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a block type", "cod" + mark + "es \"b\" {}", "Makes the layers of a model ternary"},
		{"an attribute", "codes \"b\" {\n  damp" + mark + "ing = 1\n}", "damping: number, default 0.01"},
		{"an attribute of a nested block", "calibration \"b\" {\n  take \"x\" {\n    " + mark + "n = 1\n  }\n}", "Blocks, at least 1."},
		{"an attribute of any step", "codes \"b\" {\n  for_" + mark + "each = {}\n}", "the block makes one step for each element"},
		{"a variable", "rotation \"b\" {\n  seed = va" + mark + "r.seed\n}" + declarations, "var.seed = 7"},
		{"a local", "rotation \"b\" {\n  seed = local.tw" + mark + "ice\n}" + declarations, "local.twice = 14"},
		{"a step", "rotation \"b\" {\n  model = checkpoint.ba" + mark + "se\n}" + declarations, "Names a model that there is"},
		{"a function", "locals { a = jo" + mark + "in(\",\", [])\n}", "join(separator string, lists list(string)…) string"},
		{"a function of the recipe", "locals { a = f" + mark + "(1) }\nfunction \"f\" {}", "f(…)"},
		{"what is declared", "variable \"se" + mark + "ed\" { default = \"x\" }", `var.seed = "x"`},
		{"nothing", "codes \"b\" {\n  x = 12" + mark + "3\n}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, place := at(t, c.text)
			got, where := r.Hover(place)
			if !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("at the mark in\n%s\nstands\n%s\nwant\n%s", c.text, got, c.want)
			}
			if got != "" && (where.Start.Byte > place.Byte || where.End.Byte < place.Byte) {
				t.Errorf("%v does not hold byte %d", where, place.Byte)
			}
		})
	}
}

func TestDefinition(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a variable", declarations + "rotation \"b\" { seed = var.se" + mark + "ed }", "2,11-15 seed"},
		{"a local", declarations + "rotation \"b\" { seed = loca" + mark + "l.twice }", "3,10-15 twice"},
		{"a step", declarations + "rotation \"b\" { model = checkpoint.base" + mark + " }", "4,13-17 base"},
		{"a function", "locals { a = twi" + mark + "ce(1) }\nfunction \"twice\" {}", "2,11-16 twice"},
		{"a function of the language", "locals { a = joi" + mark + "n(1) }", ""},
		{"a declaration", "rotation \"b" + mark + "ig\" {}", "1,11-14 big"},
		{"what is not declared", "rotation \"b\" { seed = var.x" + mark + " }", ""},
		{"a number", "rotation \"b\" { seed = 1" + mark + " }", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, place := at(t, c.text)
			got := ""
			if d, ok := r.Definition(place); ok {
				text := strings.Replace(c.text, mark, "", 1)
				got = fmt.Sprintf("%d,%d-%d %s", d.Start.Line, d.Start.Column, d.End.Column, text[d.Start.Byte:d.End.Byte])
			}
			if got != c.want {
				t.Errorf("at the mark in\n%s\nis referred to %q; want %q", c.text, got, c.want)
			}
		})
	}
}

func TestRename(t *testing.T) {
	r, place := at(t, declarations+"rotation \"b\" { seed = var.se"+mark+"ed }")
	places, err := r.Rename(place, "start")
	if err != nil || len(places) != 3 {
		t.Errorf("Rename(seed, start) = %v, %v; want three places", places, err)
	}
	if !slices.IsSortedFunc(places, func(a, b hcl.Range) int { return a.Start.Byte - b.Start.Byte }) {
		t.Errorf("the places are %v", places)
	}
	for _, name := range []string{"1a", "a b", ""} {
		if _, err := r.Rename(place, name); err == nil {
			t.Errorf("renamed to %q", name)
		}
	}
	r, place = at(t, declarations+"dataset \"new"+mark+"\" {}")
	if _, err := r.Rename(place, "text"); err == nil || !strings.Contains(err.Error(), "dataset.text already") {
		t.Errorf("renamed to a name that is taken: %v", err)
	}
}

func TestSymbols(t *testing.T) {
	r, _ := at(t, declarations+mark+"recipe {\n}\ntarget \"all\" {")
	var got []string
	for _, s := range r.Symbols("a.hcl") {
		got = append(got, fmt.Sprintf("%s %s %d-%d", s.Kind, s.Name, s.Range.Start.Line, s.Range.End.Line))
	}
	const want = "variable var.seed 2-2|locals locals 3-3|local local.twice 3-3|checkpoint checkpoint.base 4-4|" +
		"dataset dataset.text 5-8|recipe recipe 9-10|target target.all 11-11"
	if strings.Join(got, "|") != want {
		t.Errorf("the symbols are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.ReplaceAll(want, "|", "\n"))
	}
}

func TestDiagnosticsAndFindings(t *testing.T) {
	r, _ := at(t, "locals { a = var.x }"+mark)
	if d := r.Diagnostics(); len(d) != 1 || d[0].Summary != "Reference to an undeclared name" || len(r.Findings()) > 0 {
		t.Errorf("diagnostics are %v, findings %v", d, r.Findings())
	}
	r, _ = at(t, "locals { a = 1 }"+mark)
	if f := r.Findings(); len(f) != 1 || f[0].ID != "unused-local" || len(r.Diagnostics()) > 0 {
		t.Errorf("diagnostics are %v, findings %v", r.Diagnostics(), f)
	}
}

func TestFormat(t *testing.T) {
	r, _ := at(t, "locals { a=1 }"+mark)
	if text, ok := r.Format("a.hcl"); !ok || string(text) != "locals { a = 1 }\n" {
		t.Errorf("Format = %q, %v", text, ok)
	}
	if _, ok := r.Format("b.hcl"); ok {
		t.Error("formatted a file that is not there")
	}
}

// FuzzAssist checks that no text and no place in it is too much.
func FuzzAssist(f *testing.F) {
	for _, seed := range []string{
		declarations, "codes \"b\" {\n  model = checkpoint.", "a \"${b.", "x = <<E\n${each.", "\"\"\"{{{(((", "include \"", "locals {\n a = [for x in y.", "}}}", "a.b.c[\"d\"].",
	} {
		f.Add([]byte(seed), len(seed))
	}
	opt := options(f.TempDir())
	language := recipes.Describe(opt.Catalogue)
	f.Fuzz(func(_ *testing.T, text []byte, place int) {
		r := assist.New([]recipes.File{{Name: "a.hcl", Bytes: text}}, opt, language)
		at := assist.Place{File: "a.hcl", Byte: place}
		r.Complete(at)
		r.Hover(at)
		r.Definition(at)
		r.Symbols("a.hcl")
		_, _ = r.Rename(at, "x")
		r.Format("a.hcl")
	})
}
