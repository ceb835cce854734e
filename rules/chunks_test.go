package rules_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/engine"
	"bonsai/ops/model/modeltest"
)

// smallRecipe makes a GGUF of a small model by all steps but evaluation.
const smallRecipe = `
checkpoint "base" { from = "model" }
dataset "stories" {
  kind      = "text"
  path      = "text.txt"
  separator = "<|endoftext|>"
}
calibration "mix" {
  model  = checkpoint.base
  length = 64
  take "stories" {
    from = dataset.stories
    n    = 12
  }
}
rotation "signs" {
  model = checkpoint.base
  seed  = 7
}
codes "body" {
  model       = checkpoint.base
  calibration = calibration.mix
  rotation    = rotation.signs
}
endpoints "ends" { codes = codes.body }
gguf "model" {
  weights = endpoints.ends
  format  = "PTQ1_0"
  name    = "small"
}
`

// A chopping store is one that cuts transient blobs as well, and counts the blobs that
// are opened and are no file.
type chopping struct {
	*cache.Dir
	chunked atomic.Int64
}

func (c *chopping) CreateTransient() (cache.Writer, error) { return c.Create() }

func (c *chopping) Open(d cache.Digest) (cache.Blob, error) {
	b, err := c.Dir.Open(d)
	if _, ok := b.(interface{ File() *os.File }); err == nil && !ok {
		c.chunked.Add(1)
	}
	return b, err
}

// smallFolder returns a folder with what smallRecipe reads.
func smallFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c := modeltest.Tiny("qwen3")
	c.Vocab = 2048
	folder := filepath.Join(dir, "model")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	modeltest.Write(t, folder, c, modeltest.Random(c, 1))
	text, err := os.ReadFile("../testdata/texts/calibration.txt")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{filepath.Join(dir, "text.txt"): text[:20000]}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "generation_config.json"} {
		if files[filepath.Join(folder, name)], err = os.ReadFile(filepath.Join("../testdata/models/tiny-qwen3", name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Ops read inputs that are stored in chunks, which cannot be mapped, as they read files.
func TestInputsInChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("two builds of a small model take seconds; the whole test run has them")
	}
	dir := smallFolder(t)
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	build := func(store engine.Store) []cache.Output {
		r, said := load(t, dir, smallRecipe)
		if said != "" {
			t.Fatal(said)
		}
		outs, err := engine.Build(t.Context(), r.Graph, r.Targets["gguf.model"].Artifacts(), engine.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		return outs
	}
	d, err := cache.OpenWith(filepath.Join(t.TempDir(), "cache"), now, cache.Options{ChunkAbove: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	store := &chopping{Dir: d}
	chunked := build(store)
	plain, err := cache.OpenDir(filepath.Join(t.TempDir(), "cache"), now)
	if err != nil {
		t.Fatal(err)
	}
	if whole := build(plain); !slices.Equal(whole, chunked) {
		t.Errorf("in chunks %v, as a whole %v", chunked, whole)
	}
	if n := store.chunked.Load(); n < 10 {
		t.Errorf("only %d inputs were in chunks", n)
	}
}
