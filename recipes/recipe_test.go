package recipes_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"bonsai/recipes"
	"bonsai/rules"
)

// load loads one file with the toys; it has to be right.
func load(t testing.TB, text string) *recipes.Recipe {
	t.Helper()
	files := []recipes.File{{Name: "a.hcl", Bytes: []byte(text)}}
	r, diags := recipes.Load(files, recipes.Options{Catalogue: toys()})
	if diags.HasErrors() {
		t.Fatalf("Load(%s):\n%s", text, diagnosticText(r, diags))
	}
	return r
}

const bees = `
word "bee" {
  for_each = toset(["a", "b"])
  text     = each.key
}
word "sea" { text = "c" }
join "all" { of = word.bee }
target "main" { steps = [join.all, word.bee] }
`

func TestEveryAddressIsATarget(t *testing.T) {
	r := load(t, bees)
	for name, want := range map[string][]string{
		"main":          {"join.all", `word.bee["a"]`, `word.bee["b"]`},
		"join.all":      {"join.all"},
		"word.bee":      {`word.bee["a"]`, `word.bee["b"]`},
		`word.bee["b"]`: {`word.bee["b"]`},
		"word.sea":      {"word.sea"},
	} {
		target, err := r.Target(name)
		if err != nil {
			t.Errorf("Target(%s): %v", name, err)
			continue
		}
		var got []string
		for _, a := range target.Artifacts() {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("Target(%s).Artifacts() = %v, want %v", name, got, want)
		}
	}
	if len(r.Targets) != 6 {
		t.Errorf("%d targets, want 6: %v", len(r.Targets), r.Targets)
	}
}

func TestTargetErrorNamesTheNearest(t *testing.T) {
	r := load(t, bees)
	for name, nearest := range map[string]string{
		"mian":      "main",
		"word.seaa": "word.sea",
		"word.bea":  "word.bee",
		"galaxy":    "",
		"":          "",
	} {
		_, err := r.Target(name)
		var target *recipes.TargetError
		if !errors.As(err, &target) || target.Name != name || target.Nearest != nearest {
			t.Errorf("Target(%q) = %v, want a TargetError that suggests %q", name, err, nearest)
		}
	}
	_, err := r.Target("mian")
	if want := `no target "mian"; did you mean "main"?`; err == nil || err.Error() != want {
		t.Errorf("Target(mian) = %v, want %s", err, want)
	}
}

func TestStepValues(t *testing.T) {
	r := load(t, bees)
	if got := r.Steps[0].FileName(); got != "toy.txt" {
		t.Errorf("FileName() = %q, want what the step's value says", got)
	}
	var nothing recipes.Step
	if nothing.FileName() != "" || nothing.Artifacts() != nil {
		t.Errorf("a step without a value has FileName %q and Artifacts %v", nothing.FileName(), nothing.Artifacts())
	}
}

// noting is a rule that keeps where it was expanded and warns.
type noting struct{ seen map[string]rules.Expansion }

func (n noting) Expand(x *rules.Expansion, _ hcl.Body, _ *hcl.EvalContext) (any, hcl.Diagnostics) {
	n.seen[x.Step] = *x
	return nil, hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: "Noted", Subject: &x.Range}}
}

func TestRulesAreToldWhereTheyAre(t *testing.T) {
	n := noting{seen: map[string]rules.Expansion{}}
	text := "note \"a\" {}\nnote \"b\" { for_each = { k = 1 } }"
	r, diags := recipes.Load([]recipes.File{{Name: "a.hcl", Bytes: []byte(text)}},
		recipes.Options{Catalogue: rules.Catalogue{"note": n}, Dir: "some/folder"})
	if len(diags) != 2 || diags.HasErrors() {
		t.Errorf("diagnostics %v, want the rule's two warnings", diags)
	}
	for step, line := range map[string]int{"note.a": 1, `note.b["k"]`: 2} {
		x := n.seen[step]
		if x.Step != step || x.Dir != "some/folder" || x.Graph != r.Graph || x.Range.Start.Line != line {
			t.Errorf("%s was expanded with %+v", step, x)
		}
	}
}

func TestLoadOfNothing(t *testing.T) {
	r, diags := recipes.Load(nil, recipes.Options{})
	if len(diags) > 0 || r.Graph == nil || r.Numerics != "shared" || len(r.Steps) > 0 {
		t.Errorf("Load(nil) = %+v, %v", r, diags)
	}
}

func TestLimitsOfDepth(t *testing.T) {
	for name, text := range map[string]string{
		"brackets":       "locals { a = " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + " }",
		"open brackets":  strings.Repeat("(", 2000),
		"negations":      "locals { a = " + strings.Repeat("!", 2_000_000) + "true }",
		"a sum":          "locals { a = 1" + strings.Repeat("+1", 200_000) + " }",
		"json":           `{"locals": ` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}",
		"json negations": `{"locals": {"a": "${` + strings.Repeat("!", 2_000_000) + `true}"}}`,
	} {
		file := recipes.File{Name: "a.hcl", Bytes: []byte(text)}
		if strings.HasPrefix(name, "json") {
			file.Name = "a.hcl.json"
		}
		_, diags := recipes.Load([]recipes.File{file}, recipes.Options{})
		if len(diags) != 1 || diags[0].Summary != "File too deep" {
			t.Errorf("Load(%s) gives %v", name, diags)
		}
	}
	_, diags := recipes.Load([]recipes.File{{Name: "a.hcl", Bytes: []byte(`variable "n" { type = any }`)}},
		recipes.Options{Vars: map[string]string{"n": strings.Repeat("!", 2_000_000) + "true"}})
	if len(diags) != 1 {
		t.Errorf("Load with a value too deep gives %d diagnostics", len(diags))
	}
	rulers := strings.Repeat("# "+strings.Repeat("-", 78)+"\n", 2000)
	if r := load(t, rulers+`word "a" { text = "a" }`); len(r.Steps) != 1 {
		t.Errorf("a file with rulers in comments has %d steps, want 1", len(r.Steps))
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.hcl", "a.hcl", "c.hcl.json", ".hidden.hcl", "x.hclvars", "notes.txt", "d.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub.hcl"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, base, err := recipes.Read(dir)
	if err != nil || base != dir {
		t.Errorf("Read(%s) is relative to %s, %v", dir, base, err)
	}
	want := []recipes.File{
		{Name: filepath.Join(dir, "a.hcl"), Bytes: []byte("a.hcl")},
		{Name: filepath.Join(dir, "b.hcl"), Bytes: []byte("b.hcl")},
		{Name: filepath.Join(dir, "c.hcl.json"), Bytes: []byte("c.hcl.json")},
	}
	if !reflect.DeepEqual(files, want) {
		t.Errorf("Read(%s) = %v, want %v", dir, files, want)
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd.name")
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, base, err := recipes.Read(path)
	if err != nil || base != filepath.Dir(path) || len(files) != 1 || files[0].Name != path {
		t.Errorf("Read(%s) = %v, %s, %v", path, files, base, err)
	}
}

func TestReadNothing(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := recipes.Read(dir); err == nil {
		t.Error("Read of an empty folder succeeds")
	}
	if _, _, err := recipes.Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of no file: %v, want fs.ErrNotExist", err)
	}
}

func TestNoSuchBuiltin(t *testing.T) {
	if _, err := recipes.Builtin("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Builtin(none): %v, want fs.ErrNotExist", err)
	}
}
