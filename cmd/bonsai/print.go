package main

import (
	"context"

	"bonsai/cmd/bonsai/view"
	"bonsai/ops/mlx"
	"bonsai/recipes"
)

// runPrint writes a recipe with a value in the place of every expression.
func runPrint(_ context.Context, p *program, w *words) (int, error) {
	a, json := readRecipeArgs(w), w.flag("json")
	if w.err != nil {
		return 0, w.err
	}
	files, opt, err := p.recipeToLookAt(a)
	if err != nil {
		return 0, err
	}
	r, diags := recipes.Resolve(files, opt)
	mistakes := &view.MistakesError{Diagnostics: diags, Files: r.Files}
	if diags.HasErrors() {
		return 0, mistakes
	}
	mistakes.Write(p.stderr, p.style("auto", p.stderr))
	return exitBuilt, view.WriteResolved(p.stdout, r, json)
}

// recipeToLookAt returns the files of a recipe and what it is read with, for a command
// that builds nothing.
func (p *program) recipeToLookAt(a recipeArgs) ([]recipes.File, recipes.Options, error) {
	files, dir, _, err := readRecipe(a.path)
	if err != nil {
		return nil, recipes.Options{}, err
	}
	opt, err := p.recipeOptions(a, dir, mlx.New("auto"))
	return files, opt, err
}
