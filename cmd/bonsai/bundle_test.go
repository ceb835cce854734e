package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/rules"
	"bonsai/rules/rulestest"
)

// toyProgram returns bonsai with the toys, and a function that runs it on a recipe of one
// step whose target is built, with a cache of its own.
func toyProgram(t *testing.T) (p *program, store string, run func(out *writer, args ...string) int) {
	t.Helper()
	dir := t.TempDir()
	recipe := filepath.Join(dir, "recipe.hcl")
	if err := os.WriteFile(recipe, []byte("mix \"a\" { bytes = 100000 }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	store = filepath.Join(dir, "cache")
	p = &program{
		catalogue: func(rules.Settings) rules.Catalogue { return rulestest.Catalogue() },
		lookupEnv: func(string) (string, bool) { return "", false },
		stderr:    &bytes.Buffer{}, now: time.Now,
		room: func(string) (free, total int64) { return 0, 0 },
	}
	run = func(out *writer, args ...string) int {
		return p.run(context.Background(), append(args, "target=mix.a", "recipe="+recipe, "cache="+store), out)
	}
	if status := run(&writer{}, "build"); status != 0 {
		t.Fatalf("build: status %d: %s", status, p.stderr)
	}
	return p, store, run
}

// A writer calls before with the first write, if it is set.
type writer struct {
	bytes.Buffer
	before func()
}

func (w *writer) Write(b []byte) (int, error) {
	if w.before != nil {
		w.before()
		w.before = nil
	}
	return w.Buffer.Write(b)
}

// While a bundle is written no gc drops what goes into it.
func TestExportBesideAGC(t *testing.T) {
	p, path, run := toyProgram(t)
	out := &writer{before: func() {
		store, err := cache.OpenDir(path, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		c, err := store.GC(t.Context(), cache.Limits{Max: 1})
		if err != nil || len(c.Dropped) > 0 || c.InUse < 100_000 {
			t.Errorf("GC = %+v, %v; want all in use", c, err)
		}
	}}
	if status := run(out, "cache", "export", "to=-"); status != 0 || out.before != nil || out.Len() < 100_000 {
		t.Errorf("status %d, %d bytes: %s", status, out.Len(), p.stderr)
	}
}
