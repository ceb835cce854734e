package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
)

// runExport writes what a target needs as a bundle.
func runExport(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	to, target, all, recipe := w.text("to", ""), w.text("target", ""), w.flag("all"), readRecipeArgs(w)
	switch {
	case w.err != nil:
		return 0, w.err
	case to == "":
		return 0, misused("export where? to=FILE, or to=- for standard output")
	}
	bundle, err := p.bundleOf(ctx, dir, target, recipe, all)
	if err != nil {
		return 0, err
	}
	store, err := p.openStore(dir, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	defer hold(store, "bonsai cache export", p.warn)()
	bar := view.NewProgress(p.stderr, p.style("auto", p.stderr), "exporting", p.now)
	size, err := p.writeTo(to, func(w io.Writer) error { return store.Pack(ctx, w, bundle, bar.Report) })
	bar.Close()
	if err != nil {
		return 0, fmt.Errorf("export %s: %w", to, err)
	}
	said := io.Writer(p.stdout)
	if to == "-" {
		said = p.stderr
	}
	return exitBuilt, view.WriteBundle(said, to, bundle, size, opt)
}

// bundleOf returns what a target that is up to date needs, with the blobs of all that it
// is made of if all is set.
func (p *program) bundleOf(ctx context.Context, dir, target string, a recipeArgs, all bool) (cache.Bundle, error) {
	r, _, err := p.load(a, "auto")
	if err != nil {
		return cache.Bundle{}, err
	}
	var names []string
	if target != "" {
		names = []string{target}
	}
	targets, err := r.targets(names)
	if err != nil {
		return cache.Bundle{}, err
	}
	store, opt, err := p.openCache(cacheArgs{dir: dir}, r, cache.OpenReadOnly)
	if err != nil {
		return cache.Bundle{}, err
	}
	plan, err := engine.MakePlan(ctx, r.Graph, artifacts(targets), opt)
	if err != nil {
		return cache.Bundle{}, err
	}
	if n := plan.Total(engine.Run).Actions + plan.Total(engine.Maybe).Actions; n > 0 {
		return cache.Bundle{}, fmt.Errorf("export target %s: it is not up to date, %d of its actions may run", target, n)
	}
	wanted := map[[2]string]bool{}
	for _, action := range makers(targets, all) {
		wanted[[2]string{action.Step, action.Name}] = true
	}
	bundle := cache.Bundle{Note: "target " + target}
	for _, e := range plan.Entries {
		res, err := store.Lookup(e.Key)
		if err != nil {
			continue // nothing needs the result of a transient artifact
		}
		bundle.Results = append(bundle.Results, e.Key)
		if wanted[[2]string{e.Step, e.Name}] {
			bundle.Blobs = append(bundle.Blobs, there(store, res)...)
		}
	}
	return bundle, nil
}

// there returns the outputs of a result whose blobs are in the store.
func there(store *cache.Dir, res cache.Result) (outs []cache.Output) {
	for _, o := range res.Outputs {
		if size, err := store.Stat(o.Digest); err == nil && size == o.Size {
			outs = append(outs, o)
		}
	}
	return outs
}

// writeTo lets write fill the file path, which is there as a whole or not at all, or
// standard output if path is "-". It returns the bytes written.
func (p *program) writeTo(path string, write func(io.Writer) error) (int64, error) {
	c := new(counted)
	fill := func(w io.Writer) error {
		c.w = w
		return write(c)
	}
	var err error
	if path == "-" {
		err = fill(p.stdout)
	} else if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
		err = writeWhole(path, fill)
	}
	return c.n, err
}

// warn tells of something that went wrong and stops nothing.
func (p *program) warn(text string) { fmt.Fprintf(p.stderr, "warning: %s\n", text) }

// A counted writer counts bytes.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// runImport reads a bundle into the cache.
func runImport(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	from := w.text("from", "")
	switch {
	case w.err != nil:
		return 0, w.err
	case from == "":
		return 0, misused("import what? from=FILE, or from=- for standard input")
	}
	in := p.stdin
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		in = f
	}
	store, err := p.openStore(dir, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	defer hold(store, "bonsai cache import", p.warn)()
	bar := view.NewProgress(p.stderr, p.style("auto", p.stderr), "importing", p.now)
	u, err := store.Unpack(ctx, in, bar.Report)
	bar.Close()
	if err != nil {
		return 0, fmt.Errorf("import %s: %w", from, err)
	}
	return exitBuilt, view.WriteUnpacked(p.stdout, from, u, opt)
}
