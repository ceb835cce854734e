package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bonsai/recipes"
	"bonsai/recipes/lint"
	"bonsai/rules/rulestest"
)

func check(t *testing.T, text string) (found []lint.Finding, f recipes.File) {
	t.Helper()
	f = recipes.File{Name: "a.hcl", Bytes: []byte(text)}
	opt := recipes.Options{Catalogue: rulestest.Catalogue(), LookupEnv: func(name string) (string, bool) { return "x", name == "HOME" }}
	found, _, diags := lint.Check([]recipes.File{f}, opt)
	if diags.HasErrors() {
		t.Fatalf("%s\nsaid %v", text, diags)
	}
	return found, f
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a used variable", `variable "a" { default = 1 }
locals { b = var.a }
mix "c" { text = "${local.b} times" }`, ""},
		{"an unused variable", `variable "a" { default = 1 }`, "1 unused-variable: Nothing refers to the variable var.a."},
		{"a variable that only its own validation uses", `variable "a" {
  default = 1
  validation {
    condition     = var.a > 0
    error_message = "x"
  }
}`, "1 unused-variable: Nothing refers to the variable var.a."},
		{"an unused local", `locals { a = 1 }`, "1 unused-local: Nothing refers to the local local.a."},
		{"a step without a target, where none is declared", `mix "a" {}`, ""},
		{"a step that no target needs", `mix "a" {}
mix "b" { of = mix.a }
mix "c" { of = mix.a }
target "t" {
  steps       = [mix.b]
  description = "b"
}`, "3 unreached-step: No target needs mix.c."},
		{"a step that is needed by way of a local", `mix "a" {}
locals { all = [mix.a] }
mix "b" { of = local.all }
target "t" {
  steps       = [mix.b]
  description = "b"
}`, ""},
		{"a redundant template", `locals { a = "x" }
mix "b" { text = "${local.a}" }
mix "c" { text = "${local.a}!" }`, "2 redundant-template: Write local.a without quotes."},
		{"a target without a description", `mix "a" {}
target "t" { steps = [mix.a] }`, "2 undescribed-target: The target t has no description."},
		{"for_each over one", `mix "a" { for_each = toset(["x"]) }
mix "b" { for_each = { x = 1 } }
mix "c" { for_each = toset(["x", "y"]) }
mix "d" { for_each = {} }`, "1 single-for-each: This for_each makes one step.\n2 single-for-each: This for_each makes one step.\n4 single-for-each: This for_each makes no step at all."},
		{"a function that nothing calls", `function "f" {
  params = [a]
  result = g(a)
}
function "g" {
  params = [a]
  result = a
}`, "1 unused-function: Nothing calls the function f."},
		{"an absolute path", `file "a" { path = "/tmp/a" }
file "b" { path = "~/a" }
file "c" { path = "C:\\a" }
file "d" { path = "../a" }`, "1 absolute-path: \"/tmp/a\" is a path of this machine.\n2 absolute-path: \"~/a\" is a path of this machine.\n3 absolute-path: \"C:\\\\a\" is a path of this machine."},
		{"the environment", `mix "a" { text = env("HOME") }
variable "b" { default = env("HOME") }
mix "c" { text = var.b }`, "1 environment-value: This value is that of the machine which reads the recipe."},
		{"a name that is hidden", `mix "a" { text = join("", [for mix in ["x"] : mix]) }
mix "b" { text = join("", [for x in ["x"] : x]) }`, "1 shadowed-name: In this for, mix is its element: mix.… refers to something else."},
		{"what is meant is ignored", `# lint:ignore unused-variable it is for a script
variable "a" { default = 1 }
locals { b = 1 } # lint:ignore unused-local,unused-variable
locals { c = 1 }`, "4 unused-local: Nothing refers to the local local.c."},
		{"what is ignored is misspelled", `# lint:ignore unused-varible
locals { }`, "1 unknown-check: There is no check \"unused-varible\"; there are "},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, _ := check(t, c.text)
			var said []string
			for _, f := range found {
				said = append(said, fmt.Sprintf("%d %s: %s", f.Range.Start.Line, f.ID, f.What))
			}
			got := strings.Join(said, "\n")
			if got != c.want && (!strings.HasPrefix(got, c.want) || !strings.HasSuffix(c.want, "there are ")) {
				t.Errorf("Check of\n%s\nfound\n%s\nwant\n%s", c.text, got, c.want)
			}
		})
	}
}

func TestApply(t *testing.T) {
	text := `locals { a = { b = "x" } }
mix "b" { text = "${local.a["${"b"}"]}" }
mix "c" { text = "${upper("${local.a.b}")}" }
`
	const want = `locals { a = { b = "x" } }
mix "b" { text = local.a["b"] }
mix "c" { text = upper(local.a.b) }
`
	for range 3 {
		found, f := check(t, text)
		text = string(lint.Apply(f, found))
	}
	if text != want {
		t.Errorf("Apply gives\n%s\nwant\n%s", text, want)
	}
}

// A recipe with a mistake is not looked at: what refers to what is not known.
func TestCheckOfAMistake(t *testing.T) {
	found, survey, diags := lint.Check([]recipes.File{{Name: "a.hcl", Bytes: []byte(`locals { a = var.b }`)}}, recipes.Options{})
	if len(found) > 0 || !diags.HasErrors() || survey == nil {
		t.Errorf("found %v, with %v", found, diags)
	}
}

func TestRules(t *testing.T) {
	var names []string
	for _, r := range lint.Rules() {
		names = append(names, r.ID)
		if !strings.HasSuffix(r.Why, ".") {
			t.Errorf("%s: why is %q", r.ID, r.Why)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the checks are %v; want them in order", names)
	}
}

// Expressions in JSON are not looked into, so that nothing is called unused which may be
// used there.
func TestCheckBesideJSON(t *testing.T) {
	files := []recipes.File{
		{Name: "a.hcl", Bytes: []byte("function \"f\" {\n  params = []\n  result = \"x\"\n}\nvariable \"v\" { default = 1 }")},
		{Name: "b.hcl.json", Bytes: []byte(`{"locals": {"a": "${f()}"}}`)},
	}
	found, _, diags := lint.Check(files, recipes.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, f := range found {
		if f.ID == "unused-function" || f.ID == "unused-variable" {
			t.Errorf("found %s: %s", f.ID, f.What)
		}
	}
}
