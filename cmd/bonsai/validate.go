package main

import (
	"context"
	"errors"

	"bonsai/cmd/bonsai/view"
)

// runValidate reads a recipe and reports all that is wrong with it.
func runValidate(_ context.Context, p *program, w *words) (int, error) {
	a, json := readRecipeArgs(w), w.flag("json")
	if w.err != nil {
		return 0, w.err
	}
	r, found, err := p.load(a, "auto")
	if mistakes, ok := errors.AsType[*view.MistakesError](err); ok && json {
		return exitFailed, view.WriteValidation(p.stdout, mistakes, 0, true)
	}
	if err != nil {
		return 0, err
	}
	if !json {
		found.Write(p.stderr, p.style("auto", p.stderr))
	}
	return exitBuilt, view.WriteValidation(p.stdout, found, len(r.Steps), json)
}
