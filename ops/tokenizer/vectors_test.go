package tokenizer_test

import (
	"bytes"
	"compress/bzip2"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"bonsai/ops/tokenizer"
)

// The patterns of Qwen2 to Qwen3, and of Qwen3.5.
const (
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// qwen3 is the text of the real tokenizer.json of Qwen3.
var qwen3 = sync.OnceValue(func() []byte {
	f, err := os.Open("testdata/qwen3-tokenizer.json.bz2")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	b, err := io.ReadAll(bzip2.NewReader(f))
	if err != nil {
		panic(err)
	}
	return b
})

// qwen3Tokenizer is parsed once for all tests: that takes most of a second.
var qwen3Tokenizer = sync.OnceValue(func() *tokenizer.Tokenizer {
	config, err := os.ReadFile("testdata/qwen3-tokenizer_config.json")
	if err != nil {
		panic(err)
	}
	tok, err := tokenizer.Parse(qwen3(), config)
	if err != nil {
		panic(err)
	}
	return tok
})

func TestQwen3GivesTheIdsOfHuggingFace(t *testing.T) {
	b, err := os.ReadFile("testdata/qwen3-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) != 59 {
		t.Fatalf("%d vectors, want 59", len(vectors))
	}
	for _, v := range vectors {
		checkIDs(t, qwen3Tokenizer(), v.Text, v.IDs)
	}
}

func TestQwen2GivesTheIdsOfLlamaCpp(t *testing.T) {
	texts, ids := ggmlVectors(t, "qwen2")
	if len(texts) != 46 {
		t.Fatalf("%d texts, want 46", len(texts))
	}
	for i, text := range texts {
		checkIDs(t, qwen3Tokenizer(), text, ids[i])
	}
}

// The ids of llama.cpp for Qwen3.5's pattern are in the vocabulary of Qwen3, and llama.cpp
// does not normalize.
func TestQwen35GivesTheIdsOfLlamaCpp(t *testing.T) {
	file := replaceOnce(t, qwen3(), quote(qwen2Pattern), quote(qwen35Pattern))
	raw, err := tokenizer.Parse(replaceOnce(t, file, `{"type":"NFC"}`, "null"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if raw.Pre() != "qwen35" {
		t.Errorf("Pre() = %q, want qwen35", raw.Pre())
	}
	texts, ids := ggmlVectors(t, "qwen35")
	if len(texts) != 50 {
		t.Fatalf("%d texts, want 50", len(texts))
	}
	for i, text := range texts {
		checkIDs(t, raw, text, ids[i])
	}
	if testing.Short() {
		return
	}
	nfc, err := tokenizer.Parse(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal := 0
	for i, text := range texts {
		if slices.Equal(nfc.Encode(text), ids[i]) {
			equal++
		}
	}
	if equal != 47 {
		t.Errorf("with NFC %d of 50 texts have llama.cpp's ids, want 47", equal)
	}
}

func TestQwen3InGGUF(t *testing.T) {
	tok := qwen3Tokenizer()
	if tok.Model() != "gpt2" || tok.Pre() != "qwen2" || tok.SpacePrefix() {
		t.Errorf("Model, Pre, SpacePrefix = %q, %q, %t; want gpt2, qwen2, false", tok.Model(), tok.Pre(), tok.SpacePrefix())
	}
	if tok.VocabSize() != 151669 || len(tok.Merges()) != 151387 || tok.Merges()[0] != "Ġ Ġ" {
		t.Errorf("%d ids, %d merges, the first %q; want 151669, 151387, %q", tok.VocabSize(), len(tok.Merges()), tok.Merges()[0], "Ġ Ġ")
	}
	if tok.BOS != -1 || tok.EOS != 151645 || tok.PAD != 151643 || tok.AddBOS || tok.AddEOS {
		t.Errorf("BOS %d, EOS %d, PAD %d, AddBOS %t, AddEOS %t; want -1, 151645, 151643, false, false", tok.BOS, tok.EOS, tok.PAD, tok.AddBOS, tok.AddEOS)
	}
	if !strings.HasPrefix(tok.ChatTemplate, "{%- if tools %}") {
		t.Errorf("ChatTemplate begins %.20q", tok.ChatTemplate)
	}
	tokens, types, err := tok.Padded(151936)
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int32{"<|im_end|>": 3, "<think>": 4, "Ġthe": 1, "[PAD151935]": 5} {
		if i := slices.Index(tokens, token); i < 0 || types[i] != want {
			t.Errorf("token %q is number %d, want one of type %d", token, i, want)
		}
	}
	if _, _, err := tok.Padded(151668); err == nil || !strings.Contains(err.Error(), "151669 ids") {
		t.Errorf("Padded(151668): error %v, want one that tells 151669 ids", err)
	}
}

func checkIDs(t *testing.T, tok *tokenizer.Tokenizer, text string, want []int32) {
	t.Helper()
	if got := tok.Encode(text); !slices.Equal(got, want) {
		t.Errorf("Encode(%.60q) = %d, want %d", text, got, want)
	}
}

// ggmlVectors reads a pair of llama.cpp's test files.
func ggmlVectors(t *testing.T, name string) (texts []string, ids [][]int32) {
	t.Helper()
	in, err := os.ReadFile("testdata/ggml-vocab-" + name + ".inp")
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile("testdata/ggml-vocab-" + name + ".out")
	if err != nil {
		t.Fatal(err)
	}
	texts = strings.Split(string(in), "\n__ggml_vocab_test__\n")
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(texts) == len(lines)+1 && strings.TrimSpace(texts[len(lines)]) == "" {
		texts = texts[:len(lines)]
	}
	if len(texts) != len(lines) {
		t.Fatalf("%s: %d texts and %d lines of ids", name, len(texts), len(lines))
	}
	for _, line := range lines {
		row := []int32{}
		for _, f := range strings.Fields(line) {
			id, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, int32(id))
		}
		ids = append(ids, row)
	}
	return texts, ids
}

func replaceOnce(t *testing.T, b []byte, old, with string) []byte {
	t.Helper()
	if bytes.Count(b, []byte(old)) != 1 {
		b = compact(b)
	}
	if n := bytes.Count(b, []byte(old)); n != 1 {
		t.Fatalf("%d times %.40s in the file", n, old)
	}
	return bytes.Replace(b, []byte(old), []byte(with), 1)
}

// quote writes a pattern as JSON does.
func quote(s string) string { return `"` + strings.ReplaceAll(s, `\`, `\\`) + `"` }

func compact(b []byte) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		panic(err)
	}
	return out.Bytes()
}
