package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/engine/record"
	"bonsai/ops/compare"
	"bonsai/recipes"
)

// diffKeys are the keys of diff alone.
var diffKeys = []string{"all", "cache", "var.", "vars"}

// exitDiffers is the status of diff if the two are not the same. All that goes wrong is
// exitMisused then, as of the command diff.
const exitDiffers = 1

// A diffError is why two things could not be compared.
type diffError struct{ err error }

// Error implements error.
func (e *diffError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *diffError) Unwrap() error { return e.err }

// runDiff compares two runs, two recipes or two artifacts.
func runDiff(ctx context.Context, p *program, w *words) (int, error) {
	status, err := p.diff(ctx, w)
	if err != nil && ctx.Err() == nil {
		err = &diffError{err}
	}
	return status, err
}

func (p *program) diff(ctx context.Context, w *words) (int, error) {
	dir, vars := w.text("cache", ""), recipeArgs{vars: w.prefixed("var."), varFiles: w.list("vars")}
	opt := view.DiffOptions{
		Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w), JSON: w.flag("json"), All: w.flag("all"),
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case len(w.bare) != 2:
		return 0, misused("diff takes two words: runs (last, last-1), recipes (a path or a built-in name) or artifacts (a file, a digest or a key)")
	}
	store, err := p.openStore(dir, cache.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	f := &finder{p: p, store: store, vars: vars}
	defer f.close()
	var sides [2]side
	for i := range sides {
		if sides[i], err = f.find(w.word(i)); err != nil {
			return 0, err
		}
	}
	d, err := f.compare(ctx, sides)
	if err != nil {
		return 0, err
	}
	status := exitBuilt
	if !d.Same {
		status = exitDiffers
	}
	return status, view.WriteDiff(p.stdout, d, opt)
}

// A side is one of the two things that are compared: the one that is not nil.
type side struct {
	word   string
	run    *record.Run
	recipe *loaded
	file   *compare.File
}

func (s side) kind() string {
	switch {
	case s.run != nil:
		return "run"
	case s.recipe != nil:
		return "recipe"
	default:
		return "artifact"
	}
}

// A finder finds what words mean.
type finder struct {
	p       *program
	store   *cache.Dir
	vars    recipeArgs
	closers []func() error
}

func (f *finder) close() {
	for _, c := range f.closers {
		_ = c() // nothing was written
	}
}

// find finds what a word means: what is on disk comes first, then what the cache has.
func (f *finder) find(word string) (side, error) {
	s := side{word: word}
	stat, err := os.Stat(word)
	switch {
	case err == nil && (stat.IsDir() || isRecipe(word)):
		s.recipe, err = f.recipe(word)
	case err == nil && !stat.Mode().IsRegular():
		err = &notFileError{word}
	case err == nil:
		s.file, err = f.onDisk(word, stat.Size())
	case isHash(word):
		s.file, err = f.stored(word)
	case slices.Contains(recipes.BuiltinNames(), word):
		s.recipe, err = f.recipe(word)
	case strings.ContainsAny(word, `/\`):
	default:
		if s.run, err = findRun(f.store, word); isNotFound(err) {
			err = fmt.Errorf("no file or folder is called %q, and %w", word, err)
		}
	}
	return s, err
}

// A notFileError says that a path is a pipe or a device, of which nothing can be read
// twice or from the middle.
type notFileError struct{ path string }

// Error implements error.
func (e *notFileError) Error() string {
	return e.path + " is a pipe or a device: save what it gives in a file first"
}

func isRecipe(path string) bool {
	return filepath.Ext(path) == ".hcl" || strings.HasSuffix(path, ".hcl.json")
}

// isHash reports whether a word is a digest or a key, or an output of a key such as
// KEY.1.
func isHash(word string) bool {
	hash, _, _ := strings.Cut(word, ".")
	_, err := cache.ParseDigest(hash)
	return err == nil
}

func (f *finder) recipe(path string) (*loaded, error) {
	a := f.vars
	a.path = path
	r, _, err := f.p.load(a, "auto")
	return r, err
}

func (f *finder) onDisk(path string, size int64) (*compare.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, file.Close)
	return &compare.File{Name: path, R: file, Size: size}, nil
}

// stored opens the blob with a digest, or an output of the action with a key.
func (f *finder) stored(word string) (*compare.File, error) {
	hash, part, isPart := strings.Cut(word, ".")
	digest, err := cache.ParseDigest(hash)
	if err != nil {
		return nil, err
	}
	if res, err := f.store.Lookup(cache.Key(digest)); err == nil {
		n := 0
		if isPart {
			n, err = strconv.Atoi(part)
		}
		switch {
		case err != nil || n < 0 || n >= len(res.Outputs):
			return nil, misused("%s: the action has %d outputs, from 0 on", word, len(res.Outputs))
		case !isPart && len(res.Outputs) > 1:
			return nil, misused("%s is the key of an action with %d outputs: say which, as in %s.0", word, len(res.Outputs), hash)
		}
		digest = res.Outputs[n].Digest
	}
	blob, err := f.store.Open(digest)
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, blob.Close)
	return &compare.File{Name: "blob " + digest.Short(), R: blob, Size: blob.Size()}, nil
}

// compare compares two things of one kind.
func (f *finder) compare(ctx context.Context, sides [2]side) (view.Diff, error) {
	a, b := sides[0], sides[1]
	d := view.Diff{Kind: a.kind(), Old: a.word, New: b.word}
	if b.kind() != a.kind() {
		return d, misused("%s is one %s and %s one %s: only two of a kind can be compared", a.word, a.kind(), b.word, b.kind())
	}
	var err error
	switch {
	case a.run != nil:
		d.Runs = []record.Head{a.run.Head, b.run.Head}
		d.Actions, d.Equal = diffActions(f.ofRun(a.run), f.ofRun(b.run))
	case a.recipe != nil:
		before, err := ofRecipe(a.recipe)
		if err != nil {
			return d, err
		}
		after, err := ofRecipe(b.recipe)
		if err != nil {
			return d, err
		}
		d.Actions, d.Equal = diffActions(before, after)
	default:
		d.Files, err = compare.Files(ctx, *a.file, *b.file)
	}
	d.Same = err == nil && len(d.Actions) == 0 && (d.Files == nil || d.Files.Same)
	return d, err
}

// A resolved is one action of a run or a recipe, with what decides its result.
type resolved struct {
	step, name string
	key        cache.Key     // of a run; else zero
	text       func() string // what decides its result, as a manifest
	inputs     []string      // as users know them
	seconds    float64       // that it took; 0 if it did not run
}

// ofRun returns the actions of a run.
func (f *finder) ofRun(r *record.Run) (list []resolved) {
	manifest := func(k cache.Key) func() string {
		return func() string {
			res, err := f.store.Lookup(k)
			if err != nil {
				return "" // it is known that the keys differ, and not why
			}
			return res.Manifest
		}
	}
	for i := range r.Actions {
		a := &r.Actions[i]
		list = append(list, resolved{step: a.Step, name: a.Name, key: a.Key, text: manifest(a.Key), seconds: a.Took().Seconds()})
	}
	for _, h := range r.Hits {
		list = append(list, resolved{step: h.Step, name: h.Name, key: h.Key, text: manifest(h.Key)})
	}
	return list
}

// ofRecipe returns the actions of a recipe, inputs by their names.
func ofRecipe(r *loaded) (list []resolved, err error) {
	for a := range r.Graph.Actions() {
		text, err := a.Op.AppendText(nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		d := resolved{step: a.Step, name: a.Name}
		for i, in := range a.In {
			name := in.String()
			if path, ok := in.Source(); ok {
				if full, err := filepath.Abs(path); err == nil {
					name = full
				}
			}
			d.inputs = append(d.inputs, in.String())
			text = fmt.Appendf(text, "in %d name %s\n", i, strconv.Quote(name))
		}
		d.text = func() string { return string(text) }
		list = append(list, d)
	}
	return list, nil
}

// diffActions compares actions by step and name. It returns those that are not the same,
// and how many are.
func diffActions(a, b []resolved) (list []view.ActionDiff, equal int) {
	type place struct{ step, name string }
	before := map[place]*resolved{}
	for i := range a {
		before[place{a[i].step, a[i].name}] = &a[i]
	}
	seen := map[place]bool{}
	for i := range b {
		now := &b[i]
		at := place{now.step, now.name}
		seen[at] = true
		was := before[at]
		if was == nil {
			list = append(list, view.ActionDiff{Step: at.step, Name: at.name, Status: compare.Added, New: now.seconds})
			continue
		}
		if d := changes(was, now); d != nil {
			list = append(list, *d)
			continue
		}
		equal++
	}
	for i := range a {
		if at := (place{a[i].step, a[i].name}); !seen[at] {
			list = append(list, view.ActionDiff{Step: at.step, Name: at.name, Status: compare.Removed, Old: a[i].seconds})
		}
	}
	return list, equal
}

// changes returns how two actions of one name differ, nil if they do not.
func changes(was, now *resolved) *view.ActionDiff {
	d := &view.ActionDiff{Step: now.step, Name: now.name, Status: compare.Differs, Old: was.seconds, New: now.seconds}
	if was.key != now.key {
		before, after := was.text(), now.text()
		if before != "" && after != "" {
			d.Reasons = record.Reasons(engine.Changes(before, after, inputNames(after, now.inputs)))
		}
		return d
	}
	if now.key != (cache.Key{}) {
		return nil
	}
	before, after := was.text(), now.text()
	if before == after {
		return nil
	}
	d.Reasons = record.Reasons(engine.Changes(before, after, inputNames(after, now.inputs)))
	return d
}

// inputNames returns the names of a manifest's inputs, or their numbers if they are not
// known.
func inputNames(manifest string, known []string) []string {
	for i := len(known); i < strings.Count(manifest, "\nin "); i++ {
		known = append(known, strconv.Itoa(i))
	}
	return known
}

// isNotFound reports whether an error says that no run has a name.
func isNotFound(err error) bool {
	_, ok := errors.AsType[*record.NotFoundError](err)
	return ok
}

// isDiffError reports whether an error is of diff, whose status 1 has another meaning.
func isDiffError(err error) bool {
	_, ok := errors.AsType[*diffError](err)
	return ok
}
