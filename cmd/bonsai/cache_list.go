package main

import (
	"context"
	"fmt"
	"path"
	"slices"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
)

// survey opens the cache to be read, and looks at all of it.
func (p *program) survey(ctx context.Context, dir string) (*cache.Dir, *cache.Survey, error) {
	store, err := p.openStore(dir, cache.OpenReadOnly)
	if err != nil {
		return nil, nil, err
	}
	s, err := store.Survey(ctx)
	return store, s, err
}

// runLs lists results.
func runLs(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	glob, limit := w.text("step", ""), w.count("limit", 0, 0)
	order := w.choice("sort", "step", "size", "age", "cost")
	if _, err := path.Match(glob, ""); err != nil {
		w.fail("step=%s: not a pattern, such as codes.*", glob)
	}
	if w.err != nil {
		return 0, w.err
	}
	_, s, err := p.survey(ctx, dir)
	if err != nil {
		return 0, err
	}
	rows := slices.DeleteFunc(slices.Clone(s.Results), func(r cache.Stored) bool { return !matches(glob, r) })
	view.SortStored(rows, order)
	return exitBuilt, view.WriteStored(p.stdout, rows, limit, s, opt)
}

// matches reports whether a result is of a step that glob means; "" means all.
func matches(glob string, r cache.Stored) bool {
	for _, name := range []string{r.Step, r.Step + " " + r.Action} {
		if ok, err := path.Match(glob, name); ok && err == nil {
			return true
		}
	}
	return glob == ""
}

// runDu says what takes how much room.
func runDu(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	by := w.choice("by", "step", "recipe")
	if w.err != nil {
		return 0, w.err
	}
	store, s, err := p.survey(ctx, dir)
	if err != nil {
		return 0, err
	}
	name := func(r *cache.Stored) string { return r.Step }
	if by == "recipe" {
		recipes := map[cache.Key]string{}
		for id, k := range store.Recent() {
			recipes[k], _, _ = engine.SplitHistoryID(id)
		}
		name = func(r *cache.Stored) string { return recipes[r.Key] }
	}
	return exitBuilt, view.WriteUsage(p.stdout, store.Path(), s, by, name, opt)
}

// runCacheInspect shows the result with a key, or what names a digest.
func runCacheInspect(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	if w.err == nil && w.word(0) == "" {
		w.fail("inspect what? As in bonsai cache inspect 0123abcd; bonsai cache ls lists the keys")
	}
	if w.err != nil {
		return 0, w.err
	}
	store, s, err := p.survey(ctx, dir)
	if err != nil {
		return 0, err
	}
	k, digest, isKey, err := meant(store, w.word(0))
	if err != nil {
		return 0, err
	}
	if !isKey {
		return exitBuilt, view.WriteBlob(p.stdout, digest, s, opt)
	}
	r, err := store.Lookup(k)
	if err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteResult(p.stdout, k, r, s, opt)
}

// meant returns the key or the digest that begins with a word.
func meant(store *cache.Dir, word string) (k cache.Key, digest cache.Digest, isKey bool, err error) {
	keys, digests, err := store.Find(word)
	switch {
	case err != nil:
		return k, digest, false, &usageError{err.Error()}
	case len(keys)+len(digests) == 0:
		return k, digest, false, fmt.Errorf("nothing in the cache has a key or a digest that begins with %s", word)
	case len(keys)+len(digests) > 1:
		return k, digest, false, fmt.Errorf("%d things in the cache have a key or a digest that begins with %s", len(keys)+len(digests), word)
	case len(keys) == 1:
		return keys[0], digest, true, nil
	default:
		return k, digests[0], false, nil
	}
}

// runRm deletes one result for good, or drops one blob.
func runRm(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	if w.err == nil && w.word(0) == "" {
		w.fail("delete what? As in bonsai cache rm 0123abcd; bonsai cache ls lists the keys")
	}
	if w.err != nil {
		return 0, w.err
	}
	store, err := p.openStore(dir, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	k, digest, isKey, err := meant(store, w.word(0))
	if err != nil {
		return 0, err
	}
	s, err := store.Survey(ctx)
	if err != nil {
		return 0, err
	}
	what := "blob " + digest.Short()
	var freed int64
	if isKey {
		what = "result " + k.Short()
		freed, err = store.Delete(s, k)
	} else {
		freed, err = store.DeleteBlob(s, digest)
	}
	if err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteDeleted(p.stdout, what, freed, opt)
}
