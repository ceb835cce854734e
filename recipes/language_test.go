package recipes_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/tools/txtar"

	"bonsai/recipes"
)

var update = flag.Bool("update", false, "write what comes out into testdata/*.txtar")

// TestLanguage is a table in files: the text of a recipe in; its graph, or diagnostics,
// as text out. In an archive
//
//	args             lines var.x=text, BONSAI_VAR_x=text, env NAME=text, version=number
//	*.hcl *.json     the recipe, unless .hclvars is in the name: files of values, in order
//	graph            what must come out, or
//	diagnostics      what must come out instead
//
// and any other file is there for the recipe to read, those in folders as recipes to
// include.
func TestLanguage(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { tryArchive(t, path) })
	}
}

func tryArchive(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files, opt, want := unpack(t, a)
	recipe, diags := recipes.Load(files, opt)
	got := txtar.File{Name: "graph"}
	if len(diags) > 0 {
		got = txtar.File{Name: "diagnostics", Data: []byte(strings.ReplaceAll(diagnosticText(recipe, diags), opt.Dir, "DIR"))}
	} else {
		got.Data = []byte(graphText(t, recipe))
	}
	if *update {
		a.Files = append(slices.DeleteFunc(a.Files, isExpected), got)
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.Name != want.Name || string(got.Data) != string(want.Data) {
		t.Errorf("Load(%s) gives %s\n%s\nwant %s\n%s", path, got.Name, got.Data, want.Name, want.Data)
	}
}

func isExpected(f txtar.File) bool { return f.Name == "graph" || f.Name == "diagnostics" }

// unpack splits an archive into what a recipe is loaded from and what must come out.
func unpack(t testing.TB, a *txtar.Archive) (files []recipes.File, opt recipes.Options, want txtar.File) {
	opt = recipes.Options{Catalogue: toys(), Dir: t.TempDir(), Vars: map[string]string{}}
	env := map[string]string{}
	opt.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for _, f := range a.Files {
		switch {
		case isExpected(f):
			want = f
		case f.Name == "args":
			readArgs(t, &opt, env, string(f.Data))
		case strings.Contains(f.Name, "/"): // of another recipe
			path := filepath.Join(opt.Dir, f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		case strings.Contains(f.Name, ".hclvars"):
			opt.VarFiles = append(opt.VarFiles, recipes.File{Name: f.Name, Bytes: f.Data})
		case strings.HasSuffix(f.Name, ".hcl") || strings.HasSuffix(f.Name, ".hcl.json"):
			files = append(files, recipes.File{Name: f.Name, Bytes: f.Data})
		default:
			if err := os.WriteFile(filepath.Join(opt.Dir, f.Name), f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files, opt, want
}

func readArgs(t testing.TB, opt *recipes.Options, env map[string]string, args string) {
	for line := range strings.Lines(args) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch name, isVar := strings.CutPrefix(key, "var."); {
		case isVar:
			opt.Vars[name] = value
		case key == "version":
			opt.Version = value
		case strings.ToUpper(key[:1]) == key[:1]:
			env[key] = value
		default:
			t.Fatalf("unknown argument %q", line)
		}
	}
}

// diagnosticText writes diagnostics as a terminal shows them.
func diagnosticText(r *recipes.Recipe, diags hcl.Diagnostics) string {
	var b strings.Builder
	if err := hcl.NewDiagnosticTextWriter(&b, r.Files, 0, false).WriteDiagnostics(diags); err != nil {
		return err.Error()
	}
	return b.String()
}

// graphText writes every action with its manifest's first lines and the names of its
// inputs, then the declared targets.
func graphText(t testing.TB, r *recipes.Recipe) string {
	var b strings.Builder
	if r.Description != "" {
		fmt.Fprintf(&b, "%s\n", r.Description)
	}
	fmt.Fprintf(&b, "numerics %s\n", r.Numerics)
	for a := range r.Graph.Actions() {
		text, err := a.Op.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n%s\n%s", a, text)
		for _, in := range a.In {
			fmt.Fprintf(&b, "in %s\n", in)
		}
	}
	for _, name := range declaredTargets(r) {
		target := r.Targets[name]
		fmt.Fprintf(&b, "\ntarget %s", name)
		if target.Description != "" {
			fmt.Fprintf(&b, ": %s", target.Description)
		}
		fmt.Fprintf(&b, "\nout %q\n", target.Out)
		for _, s := range target.Steps {
			fmt.Fprintf(&b, "step %s\n", s.Address)
		}
	}
	return b.String()
}

func declaredTargets(r *recipes.Recipe) []string {
	var names []string
	for name, t := range r.Targets {
		if t.Declared {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
