package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/rules"
	"bonsai/rules/rulestest"
)

// A build that stored something says so if the disk is nearly full and the cache is most
// of what can be dropped; it drops nothing by itself.
func TestLowDisk(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "recipe.hcl")
	for _, c := range []struct {
		name        string
		free, total int64
		env         string
		says        string
	}{
		{"a disk with room", 50 << 30, 100 << 30, "", ""},
		{"a disk that is nearly full of something else", 5 << 20, 100 << 20, "", ""},
		{"a disk that is nearly full of the cache", 50 << 10, 1 << 20, "", "the disk has 50.0 KiB left of 1.0 MiB, and the cache takes "},
		{"a disk of which nothing is known", 0, 0, "", ""},
		{"a limit is a limit whatever the disk says", 50 << 10, 1 << 20, "50KiB", "gc dropped 0 artifacts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "mix \"a\" {\n  text = \"" + c.name + "\"\n  bytes = 100000\n}\n"
			if err := os.WriteFile(recipe, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			p := &program{
				catalogue: func(rules.Settings) rules.Catalogue { return rulestest.Catalogue() },
				lookupEnv: func(name string) (string, bool) { return c.env, name == cacheMaxEnv && c.env != "" },
				stderr:    &errs, now: time.Now,
				room: func(string) (free, total int64) { return c.free, c.total },
			}
			args := []string{"build", "target=mix.a", "recipe=" + recipe, "cache=" + filepath.Join(t.TempDir(), "cache")}
			if status := p.run(context.Background(), args, &out); status != 0 {
				t.Fatalf("status %d: %s%s", status, out.String(), errs.String())
			}
			notes := strings.Count(out.String(), "note ") - strings.Count(out.String(), "GOEXPERIMENT=simd")
			if c.says == "" && notes > 0 || c.says != "" && (notes != 1 || !strings.Contains(out.String(), c.says)) {
				t.Errorf("it says\n%s\nwant one note with %q, if any", out.String(), c.says)
			}
		})
	}
}
