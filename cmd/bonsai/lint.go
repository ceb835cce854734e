package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bonsai/cmd/bonsai/view"
	"bonsai/ops/mlx"
	"bonsai/recipes"
	"bonsai/recipes/lint"
)

// lintKeys are the keys of lint alone.
var lintKeys = []string{"fix"}

// A linting is a recipe with what is found in it.
type linting struct {
	files  []recipes.File
	opt    recipes.Options
	found  []lint.Finding
	survey *recipes.Survey
}

// runLint looks for what is allowed in a recipe and is still not what its author wants.
func runLint(_ context.Context, p *program, w *words) (int, error) {
	a, fix := readRecipeArgs(w), w.flag("fix")
	opt := view.LintOptions{Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w), JSON: w.flag("json")}
	if w.err != nil {
		return 0, w.err
	}
	files, dir, id, err := readRecipe(a.path)
	if err != nil {
		return 0, err
	}
	l := &linting{files: files}
	if l.opt, err = p.recipeOptions(a, dir, mlx.New("auto")); err != nil {
		return 0, err
	}
	if err := l.check(); err != nil {
		return 0, err
	}
	if fix && strings.HasPrefix(id, "builtin ") {
		return 0, misused("%s is built in: it cannot be fixed", a.path)
	}
	before := len(l.found)
	if fix {
		if err := l.fix(); err != nil {
			return 0, err
		}
	}
	return l.write(p, before-len(l.found), opt)
}

func (l *linting) write(p *program, fixed int, opt view.LintOptions) (int, error) {
	status := exitBuilt
	if len(l.found) > 0 {
		status = exitFailed
	}
	return status, view.WriteFindings(p.stdout, l.found, fixed, l.survey.Files, opt)
}

// check looks for findings in the files as they are in memory.
func (l *linting) check() error {
	found, survey, diags := lint.Check(l.files, l.opt)
	if diags.HasErrors() {
		return &view.MistakesError{Diagnostics: diags, Files: survey.Files}
	}
	l.found, l.survey = found, survey
	return nil
}

// fix puts right what can be until nothing is left that can, and writes the files then.
func (l *linting) fix() error {
	fixable := func(f lint.Finding) bool { return f.Fix != nil }
	changed := map[int]bool{}
	for slices.ContainsFunc(l.found, fixable) {
		before := len(l.found)
		for i, f := range l.files {
			text := lint.Apply(f, l.found)
			changed[i] = changed[i] || !bytes.Equal(text, f.Bytes)
			l.files[i].Bytes = text
		}
		if err := l.check(); err != nil {
			return fmt.Errorf("nothing is fixed: with its fixes the recipe has mistakes: %w", err)
		}
		if len(l.found) >= before {
			return errors.New("nothing is fixed: fixes make new findings")
		}
	}
	for i, f := range l.files {
		if changed[i] {
			if err := replaceFile(f.Name, f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}
