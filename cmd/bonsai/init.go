package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bonsai/cmd/bonsai/view"
	"bonsai/ops/model"
	"bonsai/ops/prism"
	"bonsai/recipes"
	"bonsai/rules"
)

// initKeys are the keys of init alone.
var initKeys = []string{"model", "out", "text"}

// runInit looks at a checkpoint and writes a recipe for it. Nothing is written that does
// not work: the recipe is read, as validate does, before it is there.
func runInit(_ context.Context, p *program, w *words) (int, error) {
	dir, out, text := w.text("model", ""), w.text("out", "recipe.hcl"), w.text("text", "")
	asJSON := w.flag("json")
	switch {
	case w.err != nil:
		return 0, w.err
	case dir == "":
		return 0, misused("init needs model=: the folder of the checkpoint to write a recipe for")
	case exists(out):
		return 0, fmt.Errorf("%s is there already and is not written over: give another with out=, or remove it", out)
	}
	c, err := readyCheckpoint(dir)
	if err != nil {
		return 0, err
	}
	d, err := draftOf(c, dir, out, text)
	if err != nil {
		return 0, err
	}
	recipe, err := d.text()
	if err != nil {
		return 0, err
	}
	report, err := p.tryOut(d, recipe, out)
	if err != nil {
		return 0, err
	}
	if err := createFile(out, recipe); err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteInit(p.stdout, report, asJSON)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readyCheckpoint returns what is in a folder, or why no ternary file can be made of it.
func readyCheckpoint(dir string) (*view.Checkpoint, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("model= is the folder of a checkpoint: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err := model.CheckFiles(names); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	c, err := inspectCheckpoint(dir)
	if err != nil {
		return nil, err
	}
	if c.Refused != "" {
		return nil, fmt.Errorf("%s cannot be made ternary: %s", dir, c.Refused)
	}
	for _, name := range []string{prism.TokenizerFile, prism.TokenizerConfigFile} {
		if !exists(filepath.Join(dir, name)) {
			return nil, fmt.Errorf("%s has no %s: text becomes tokens with the checkpoint's own tokenizer", dir, name)
		}
	}
	return c, nil
}

// tryOut reads the recipe as if it were there, and returns what it would take and give.
func (p *program) tryOut(d *draft, recipe []byte, out string) (view.Init, error) {
	a := recipeArgs{vars: map[string]string{}}
	if d.Text == "" {
		full, err := filepath.Abs(filepath.Join(d.checkpoint.Dir, prism.ConfigFile)) // any file stands in for the text
		if err != nil {
			return view.Init{}, err
		}
		a.vars["text"] = full
	}
	r, _, err := p.loadFiles([]recipes.File{{Name: out, Bytes: recipe}}, filepath.Dir(out), "", a, "auto")
	if err != nil {
		return view.Init{}, err
	}
	report := view.Init{File: out, Choices: d.choices(), NeedsText: d.Text == "", Warnings: d.Warnings, Available: availableMemory()}
	for action := range r.Graph.Actions() {
		report.Peak = max(report.Peak, action.Peak)
		report.Seconds += action.Cost
	}
	for _, s := range r.Steps {
		if file, ok := s.Value.(*rules.GGUF); ok {
			report.Bytes = file.Layout.Bytes
		}
	}
	return report, nil
}

// createFile writes a file that must not be there.
func createFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the recipe: there is no folder %s", filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write the recipe: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
