package recipes_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"bonsai/recipes"
	"bonsai/rules"
)

// blocks are the parts of a recipe whose order must not matter.
var blocks = []string{
	`variable "n" { default = 2 }`,
	`variable "m" { default = 3 }`,
	`locals { sum = var.n + local.more }`,
	`locals { more = var.m * 2 }`,
	`word "a" { text = "a${local.sum}" }`,
	`word "b" {
  for_each = { x = "1", y = "2" }
  text     = each.value
}`,
	`join "ab" { of = [word.a, word.b["x"]] }`,
	`join "all" { of = [join.ab, word.b["y"], word.a] }`,
	`target "t" { steps = [join.all] }`,
}

// manifests returns the actions of a recipe as text, sorted: what its keys follow from.
func manifests(t *testing.T, files []recipes.File) string {
	t.Helper()
	r, diags := recipes.Load(files, recipes.Options{Catalogue: toys()})
	if diags.HasErrors() {
		t.Fatalf("Load(%s): %v", files, diags)
	}
	var all []string
	for a := range r.Graph.Actions() {
		text, err := a.Op.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %v", a, text, a.In))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestOrderNeverMatters shuffles the blocks of a recipe over any number of files.
func TestOrderNeverMatters(t *testing.T) {
	want := manifests(t, []recipes.File{{Name: "all.hcl", Bytes: []byte(strings.Join(blocks, "\n"))}})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		files := make([]recipes.File, 1+rng.IntN(4))
		for i := range files {
			files[i].Name = fmt.Sprintf("%d.hcl", i)
		}
		for _, b := range rng.Perm(len(blocks)) {
			f := &files[rng.IntN(len(files))]
			f.Bytes = append(append(f.Bytes, blocks[b]...), "\n# a comment\n"...)
		}
		if got := manifests(t, files); got != want {
			t.Fatalf("%s\ngives\n%s\nwant\n%s", files, got, want)
		}
	}
}

// FuzzLoad checks that no text makes Load panic, and that one without an error has a
// target for each step.
func FuzzLoad(f *testing.F) {
	for _, b := range blocks {
		f.Add(b)
	}
	f.Add(strings.Join(blocks, "\n"))
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, ".hcl") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := []recipes.File{{Name: "fuzz.hcl", Bytes: []byte(text)}}
		r, diags := recipes.Load(files, recipes.Options{Catalogue: toys(), Dir: t.TempDir()})
		if diags.HasErrors() {
			return
		}
		for _, s := range r.Steps {
			if r.Targets[s.Address] == nil {
				t.Errorf("no target for step %s", s.Address)
			}
		}
	})
}

// TestShipped holds that each shipped recipe reads without a diagnostic.
func TestShipped(t *testing.T) {
	names := recipes.BuiltinNames()
	if !slices.Contains(names, "tiny") {
		t.Errorf("the shipped recipes are %v", names)
	}
	for _, name := range names {
		files, err := recipes.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		_, diags := recipes.Load(files, recipes.Options{
			Catalogue: rules.Standard(rules.Settings{}), Dir: ".", Version: "0.1.0",
		})
		if len(diags) > 0 {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "word \"w%d\" {\n  text  = \"t\"\n  times = 1 + %d\n}\n", i, i)
	}
	var keys []string
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("layer_%d", i))
	}
	// Not toset() of a list: its conversion, in cty, is quadratic and takes seconds.
	each := `word "w" {
  for_each = { for k in split(",", "` + strings.Join(keys, ",") + `") : k => length(k) }
  text     = each.key
  times    = 1 + each.value
}
join "all" { of = word.w }`
	for _, c := range []struct{ name, text string }{
		{"form=blocks/n=1000", many.String()},
		{"form=for_each/n=10000", each},
	} {
		b.Run(c.name, func(b *testing.B) {
			files := []recipes.File{{Name: "bench.hcl", Bytes: []byte(c.text)}}
			for b.Loop() {
				if _, diags := recipes.Load(files, recipes.Options{Catalogue: toys()}); diags.HasErrors() {
					b.Fatal(diags)
				}
			}
		})
	}
}

// TestIncludeChangesNothing holds that the actions of a recipe do not depend on whether
// it is asked for itself or included.
func TestIncludeChangesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{strings.Join(blocks, "\n"), bees} {
		whole := []recipes.File{{Name: "a.hcl", Bytes: []byte(text)}}
		if err := os.WriteFile(filepath.Join(dir, "lib.hcl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		includes := []recipes.File{{Name: "a.hcl", Bytes: fmt.Appendf(nil, "include \"lib\" { from = %q }", filepath.Join(dir, "lib.hcl"))}}
		if got, want := manifests(t, includes), manifests(t, whole); got != want {
			t.Errorf("included, the actions of %s are\n%s\nwant\n%s", text, got, want)
		}
	}
}
