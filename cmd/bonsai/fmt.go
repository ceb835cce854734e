package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"bonsai/cmd/bonsai/view"
	"bonsai/recipes"
)

// formatKeys are the keys of fmt alone.
var formatKeys = []string{"check", "diff", "path", "recursive", "write"}

// formatArgs are the arguments of fmt.
type formatArgs struct {
	paths     []string // files and folders; - for standard input
	recursive bool     // folders in folders too
	check     bool     // write nothing, and exit 1 if something would change
	write     bool
	view      view.FormatOptions
}

func (p *program) readFormatArgs(w *words) (formatArgs, error) {
	a := formatArgs{
		paths: append(w.list("path"), w.bare...), recursive: w.flag("recursive"), check: w.flag("check"),
		write: w.choice("write", "true", "false") == "true",
	}
	a.view = view.FormatOptions{
		Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w), JSON: w.flag("json"), Diff: w.flag("diff"),
	}
	if len(a.paths) == 0 {
		a.paths = []string{"."}
	}
	if slices.Contains(a.paths, "-") && len(a.paths) > 1 {
		return a, misused("fmt takes standard input, -, or files and folders, not both")
	}
	return a, w.err
}

// runFormat brings files into the one layout. A file with a mistake stays as it is, and does not
// keep others from being formatted.
func runFormat(_ context.Context, p *program, w *words) (int, error) {
	a, err := p.readFormatArgs(w)
	if err != nil {
		return 0, err
	}
	if a.paths[0] == "-" {
		return p.formatInput(a)
	}
	names, err := formattable(a.paths, a.recursive)
	if err != nil {
		return 0, err
	}
	var list []view.Formatted
	var failed []error
	for _, name := range names {
		f, err := formatFile(name, a.write && !a.check)
		if failed = append(failed, err); err == nil {
			list = append(list, f)
		}
	}
	status := exitBuilt
	if a.check && slices.ContainsFunc(list, func(f view.Formatted) bool { return f.Changed() }) {
		status = exitFailed
	}
	return status, errors.Join(append(failed, view.WriteFormatted(p.stdout, list, a.view))...)
}

// formatInput formats standard input to standard output.
func (p *program) formatInput(a formatArgs) (int, error) {
	before, err := io.ReadAll(p.stdin)
	if err != nil {
		return 0, err
	}
	after, err := format("standard input", before)
	if err != nil {
		return 0, err
	}
	status := exitBuilt
	if a.check && !bytes.Equal(before, after) {
		status = exitFailed
	}
	if a.view.Diff || a.view.JSON {
		return status, view.WriteFormatted(p.stdout, []view.Formatted{{File: "standard input", Before: before, After: after}}, a.view)
	}
	if a.check {
		return status, nil
	}
	_, err = p.stdout.Write(after)
	return status, err
}

// formatFile formats one file, in place if write is true.
func formatFile(name string, write bool) (view.Formatted, error) {
	before, err := recipes.ReadText(name)
	if err != nil {
		return view.Formatted{}, err
	}
	after, err := format(name, before)
	if err != nil {
		return view.Formatted{}, err
	}
	f := view.Formatted{File: name, Before: before, After: after}
	if write && f.Changed() {
		err = replaceFile(name, after)
	}
	return f, err
}

// format returns a text in the one layout, or its mistakes as a *view.MistakesError.
func format(name string, text []byte) ([]byte, error) {
	after, diags := recipes.Format(recipes.File{Name: name, Bytes: text})
	if diags.HasErrors() {
		return nil, &view.MistakesError{Diagnostics: diags, Files: map[string]*hcl.File{name: {Bytes: text}}}
	}
	return after, nil
}

// formattable returns the files that paths name: each file, and of each folder the files
// of a recipe and of values. Names that start with a dot are left out.
func formattable(paths []string, recursive bool) (names []string, err error) {
	for _, path := range paths {
		stat, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !stat.IsDir() {
			if !isFormattable(path) {
				return nil, misused("%s is not formatted: the names of recipes end in .hcl, those of values in .hclvars and those of tests in .hcltest", path)
			}
			names = append(names, path)
			continue
		}
		err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil || name == path:
				return err
			case e.IsDir() && (!recursive || strings.HasPrefix(e.Name(), ".")):
				return fs.SkipDir
			case !e.IsDir() && isFormattable(name) && !strings.HasPrefix(e.Name(), "."):
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for recipes: %w", err)
		}
	}
	return names, nil
}

func isFormattable(name string) bool {
	return strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hclvars") || strings.HasSuffix(name, recipes.TestSuffix)
}
