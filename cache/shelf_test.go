package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"bonsai/cache"
)

func TestShelfKeepsFiles(t *testing.T) {
	d := openDir(t)
	if _, err := d.Kept(cache.Runs, "a"); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("Kept before Keep: %v, want ErrMiss", err)
	}
	for _, name := range []string{"b", "a"} {
		if err := d.Keep(cache.Runs, name, []byte("text of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := d.Kept(cache.Runs, "a"); err != nil || string(b) != "text of a" {
		t.Errorf("Kept = %q, %v", b, err)
	}
	if names, err := d.KeptNames(cache.Runs); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("KeptNames = %v, %v", names, err)
	}
	if err := errors.Join(d.Discard(cache.Runs, "a"), d.Discard(cache.Runs, "a")); err != nil {
		t.Errorf("Discard twice: %v", err)
	}
	if names, err := d.KeptNames(cache.Logs); err != nil || len(names) != 0 {
		t.Errorf("KeptNames of an empty shelf = %v, %v", names, err)
	}
	for _, name := range []string{"", "..", "a/b", `a\b`} {
		if err := d.Keep(cache.Runs, name, nil); err == nil {
			t.Errorf("Keep(%q) succeeds", name)
		}
	}
}

func TestScratchStaysUntilItIsDropped(t *testing.T) {
	d, k := openDir(t), cache.KeyOf([]byte("a"))
	path, err := d.Scratch(k)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "step-7"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	again, err := reopen(t, d.Path(), clock).Scratch(k)
	if err != nil || again != path {
		t.Fatalf("Scratch again = %s, %v, want %s", again, err, path)
	}
	if _, err := os.Stat(filepath.Join(path, "step-7")); err != nil {
		t.Errorf("what was kept: %v", err)
	}
	if err := errors.Join(d.DropScratch(k), d.DropScratch(k)); err != nil {
		t.Errorf("DropScratch twice: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the folder is still there")
	}
}

func TestTrimDropsTheOldest(t *testing.T) {
	d := openDir(t)
	for i, name := range []string{"c", "a", "b"} {
		if err := d.Keep(cache.Plans, name, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(filepath.Join(d.Path(), "plans", name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		files int
		bytes int64
		want  []string
	}{{3, 30, []string{"a", "b", "c"}}, {2, 30, []string{"a", "b"}}, {2, 19, []string{"b"}}, {1, 1, []string{"b"}}} {
		if err := d.Trim(cache.Plans, c.files, c.bytes); err != nil {
			t.Fatal(err)
		}
		if got, err := d.KeptNames(cache.Plans); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("after Trim(%d files, %d bytes): %v, %v; want %v", c.files, c.bytes, got, err, c.want)
		}
	}
}
