package rules_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/safetensors"
	"bonsai/recipes"
	"bonsai/rules"
)

// readings are recipes whose outcome depends on files, each in a folder of its own.
var readings = map[string]string{
	"a checkpoint in one file": strings.ReplaceAll(base, "{model}", "whole"),
	"a checkpoint in shards":   strings.ReplaceAll(base, "{model}", "shards"),
	"no checkpoint":            strings.ReplaceAll(base, "{model}", "later"),
	"a GGUF file":              `checkpoint "base" { from = "model.gguf" }`,
	"functions": `
checkpoint "base" { from = fileexists("later/config.json") ? "later" : trimspace(file("note.txt")) }
dataset "text" {
  kind = "text"
  path = env("TEXT", "text.txt")
}`,
}

// TestReadsAreReported holds that what comes of a recipe depends on nothing that was not
// reported: it makes, changes and removes one file after the other, and where the recipe
// comes out otherwise, some read must have been of that file or its folder.
func TestReadsAreReported(t *testing.T) {
	for name, text := range readings {
		t.Run(name, func(t *testing.T) {
			dir := readingFolder(t)
			before, reads := outcome(dir, text)
			noticed := 0
			for _, path := range touchable(t, dir) {
				for change, undo := range changes(t, path) {
					if after, _ := outcome(dir, text); after != before {
						noticed++
						if !covered(reads, path, change) {
							t.Errorf("%s of %s changes what comes of the recipe, and no read of it was reported:\n%s\nbefore\n%s\nafter\n%s",
								change, path, readsText(reads), before, after)
						}
					}
					undo()
				}
			}
			if noticed == 0 {
				t.Errorf("no change of a file changed anything")
			}
		})
	}
}

// readingFolder returns a folder with a checkpoint in one file and one in two shards, a
// text, and room for what is not there yet.
func readingFolder(t *testing.T) string {
	dir := t.TempDir()
	c := modeltest.Tiny("qwen3")
	for _, name := range []string{"whole", "shards"} {
		modeltest.Write(t, filepath.Join(dir, name), c, modeltest.Random(c, 1))
		addTokenizer(t, filepath.Join(dir, name))
	}
	split(t, filepath.Join(dir, "shards"))
	write(t, filepath.Join(dir, "text.txt"), "some text")
	write(t, filepath.Join(dir, "note.txt"), "whole\n")
	write(t, filepath.Join(dir, "model.gguf"), "GGUF")
	return dir
}

// touchable returns the files under dir, and some more that could be there.
func touchable(t *testing.T, dir string) []string {
	t.Helper()
	paths := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths[path] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"whole", "shards", "later"} {
		for _, name := range []string{
			"config.json", "generation_config.json", "chat_template.jinja", "tokenizer.json", "tokenizer_config.json",
			"adapter_config.json", "model.safetensors", "model.safetensors.index.json", "model-00003-of-00003.safetensors",
		} {
			paths[filepath.Join(dir, folder, name)] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// changes makes one change after the other to a file, and yields what it was and how to
// undo it.
func changes(t *testing.T, path string) func(yield func(string, func()) bool) {
	return func(yield func(string, func()) bool) {
		old, err := os.ReadFile(path)
		if err != nil {
			write(t, path, "{}")
			yield("making", func() {
				os.Remove(path)
				os.Remove(filepath.Dir(path)) // if it is empty: it was made too
			})
			return
		}
		restore := func() { write(t, path, string(old)) }
		for _, c := range []struct{ change, text string }{
			{"growth", string(old) + "\n"}, {"change", strings.Repeat("?", len(old))},
		} {
			write(t, path, c.text)
			if !yield(c.change, restore) {
				return
			}
		}
		os.Remove(path)
		yield("removal", restore)
	}
}

// covered says whether a read was of path in a way that tells of the change.
func covered(reads map[rules.Read]bool, path, change string) bool {
	stat := reads[rules.Read{Kind: rules.FileStat, Name: path}]
	list := reads[rules.Read{Kind: rules.FolderList, Name: filepath.Dir(path)}]
	switch change {
	case "change": // the size is as before
		stat, list = false, false
	case "growth":
		list = false
	}
	return stat || list || reads[rules.Read{Kind: rules.FileRead, Name: path}]
}

// outcome returns all that comes of a recipe as text, and what was read for it.
func outcome(dir, text string) (string, map[rules.Read]bool) {
	reads := map[rules.Read]bool{}
	r, diags := recipes.Load([]recipes.File{{Name: "recipe.hcl", Bytes: []byte(text)}}, recipes.Options{
		Catalogue: rules.Standard(rules.Settings{Engine: mlx.New("go"), Rate: 1e9}), Dir: dir,
		Saw:       func(r rules.Read) { reads[r] = true },
		LookupEnv: func(string) (string, bool) { return "", false },
	})
	var b strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&b, "%s\n", d)
	}
	for a := range r.Graph.Actions() {
		op, _ := a.Op.AppendText(nil)
		fmt.Fprintf(&b, "%s %v %v %d %g\n%s", a, a.In, a.Outputs, a.Peak, a.Cost, op)
	}
	return b.String(), reads
}

func readsText(reads map[rules.Read]bool) string {
	var lines []string
	for r := range reads {
		lines = append(lines, fmt.Sprintf("%v %s", r.Kind, r.Name))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestEnvironmentIsReported(t *testing.T) {
	_, reads := outcome(t.TempDir(), readings["functions"])
	if !reads[rules.Read{Kind: rules.EnvRead, Name: "TEXT"}] {
		t.Errorf("env() was called, and the reads are\n%s", readsText(reads))
	}
}

// split makes two shards and an index of the one file of a checkpoint.
func split(t *testing.T, dir string) {
	t.Helper()
	_, set := modeltest.Open(t, dir)
	var halves [2][]safetensors.Spec
	index := map[string]string{}
	for i, tensor := range set.Tensors() {
		halves[i%2] = append(halves[i%2], safetensors.Spec{Name: tensor.Name, DType: tensor.DType, Shape: tensor.Shape})
	}
	for i, specs := range halves {
		name := fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)
		writeShard(t, filepath.Join(dir, name), specs, set)
		for _, s := range specs {
			index[s.Name] = name
		}
	}
	text, err := json.Marshal(map[string]any{"weight_map": index})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "model.safetensors.index.json"), string(text))
	if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
}

func writeShard(t *testing.T, path string, specs []safetensors.Spec, from *safetensors.Set) {
	t.Helper()
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, specs, nil)
	for _, s := range specs {
		tensor, _ := from.Bytes(s.Name)
		if err == nil {
			err = w.Write(s.Name, tensor)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, b.String())
}
