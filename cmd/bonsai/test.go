package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bonsai/cmd/bonsai/view"
	"bonsai/ops/mlx"
	"bonsai/recipes"
)

// runTest runs the tests of a recipe against what would be built. Nothing is.
func runTest(_ context.Context, p *program, w *words) (int, error) {
	path, asJSON := w.text("recipe", "."), w.flag("json")
	style := p.style(w.choice("color", "auto", "never", "always"), p.stdout.w)
	if w.err != nil {
		return 0, w.err
	}
	files, dir, _, err := readRecipe(path)
	if err != nil {
		return 0, err
	}
	tests, err := testsIn(dir)
	if err != nil {
		return 0, err
	}
	opt, err := p.recipeOptions(recipeArgs{}, dir, mlx.New("auto"))
	if err != nil {
		return 0, err
	}
	outcomes, sources, diags := recipes.Test(tests, files, opt)
	if diags.HasErrors() {
		return 0, &view.MistakesError{Diagnostics: diags, Files: sources}
	}
	status := exitBuilt
	if slices.ContainsFunc(outcomes, func(o recipes.Outcome) bool { return o.Failures.HasErrors() }) {
		status = exitFailed
	}
	return status, view.WriteOutcomes(p.stdout, outcomes, sources, view.TestOptions{Style: style, JSON: asJSON})
}

// testsIn returns the tests in a folder. None is an error: a test that is not found does
// not pass.
func testsIn(dir string) (tests []recipes.File, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(name, recipes.TestSuffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		text, err := recipes.ReadText(name)
		if err != nil {
			return nil, err
		}
		tests = append(tests, recipes.File{Name: name, Bytes: text})
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("there is no test, *%s, beside the recipe in %s", recipes.TestSuffix, dir)
	}
	return tests, nil
}
