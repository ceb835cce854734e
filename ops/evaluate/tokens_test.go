package evaluate_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/evaluate"
	"bonsai/ops/safetensors"
	"bonsai/ops/tokenizer"
)

const storiesDir = testdata + "/models/stories260K" // whose tokenizer has a BOS

// cut runs Tokens on documents with the tokenizer of a folder.
func cut(t *testing.T, dir string, op evaluate.Tokens, documents ...string) (ids []int32, shape []int64, facts map[string]string) {
	t.Helper()
	out, _, err := run(t.Context(), op, append([][]byte{
		read(t, dir, "tokenizer.json"), read(t, dir, "tokenizer_config.json"),
	}, []byte(strings.Join(documents, "\n")))...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(bytes.NewReader(out), int64(len(out)), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	if ids, err = f.Int32s("tokens"); err != nil {
		t.Fatal(err)
	}
	tensor, _ := f.Lookup("tokens")
	return ids, tensor.Shape, f.Metadata()
}

func TestWindowsOfText(t *testing.T) {
	tok, err := tokenizer.Parse(read(t, storiesDir, "tokenizer.json"), read(t, storiesDir, "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Repeat("One day, a girl went out to play. ", 3), "She was happy."
	text := tok.Encode(a + "\n" + b)
	documents := []string{fmt.Sprintf(`{"text":%q}`, a), fmt.Sprintf(`{"text":%q,"more":1}`, b)}
	bos := tok.BOS
	for name, test := range map[string]struct {
		op   evaluate.Tokens
		want []int32
	}{
		"all": {
			evaluate.Tokens{Window: 5, BOS: evaluate.NoBOS},
			text[:len(text)/5*5],
		},
		"the first tokens, whole windows": {
			evaluate.Tokens{Window: 5, Limit: 13, BOS: evaluate.NoBOS},
			text[:10],
		},
		"a limit beyond the text": {
			evaluate.Tokens{Window: len(text), Limit: 1000, BOS: evaluate.NoBOS},
			text,
		},
		"one BOS": {
			evaluate.Tokens{Window: 5, Limit: 14, BOS: evaluate.TextBOS},
			append([]int32{bos}, text[:14]...),
		},
		"a BOS for each window": {
			evaluate.Tokens{Window: 5, Limit: 11, BOS: evaluate.WindowBOS},
			slices.Concat([]int32{bos}, text[:4], []int32{bos}, text[4:8]),
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.op.Join = "\n"
			ids, shape, _ := cut(t, storiesDir, test.op, documents...)
			if !slices.Equal(ids, test.want) {
				t.Errorf("tokens\n%v, want\n%v", ids, test.want)
			}
			if want := []int64{int64(len(ids) / test.op.Window), int64(test.op.Window)}; !slices.Equal(shape, want) {
				t.Errorf("shape %v, want %v", shape, want)
			}
		})
	}
}

// TestTokensPinTheText: another line ending is another text, and shows.
func TestTokensPinTheText(t *testing.T) {
	op := evaluate.Tokens{Window: 2, BOS: evaluate.NoBOS, Join: "+"}
	_, _, facts := cut(t, modelDir, op, `{"text":"a b c\nd e f"}`, `{"text":"g"}`)
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("a b c\nd e f+g"))); facts["text"] != want {
		t.Errorf("text %s, want %s", facts["text"], want)
	}
	if facts["documents"] != "2" || facts["join"] != "+" || facts["bos"] != "none" || facts["limit"] != "0" {
		t.Errorf("facts %v", facts)
	}
	_, _, crlf := cut(t, modelDir, op, `{"text":"a b c\r\nd e f"}`, `{"text":"g"}`)
	if crlf["text"] == facts["text"] || crlf["ids"] == facts["ids"] {
		t.Error("another line ending does not show")
	}
}

func TestTokensRefuse(t *testing.T) {
	tokenizerFile, config := read(t, modelDir, "tokenizer.json"), read(t, modelDir, "tokenizer_config.json")
	text := []byte(`{"text":"a b c d e f g"}`)
	good := evaluate.Tokens{Window: 2, BOS: evaluate.NoBOS}
	for name, test := range map[string]struct {
		op   evaluate.Tokens
		in   [][]byte
		want string
	}{
		"a window of one":       {evaluate.Tokens{Window: 1, BOS: evaluate.NoBOS}, [][]byte{tokenizerFile, config, text}, "window of 1"},
		"a negative limit":      {evaluate.Tokens{Window: 2, Limit: -1, BOS: evaluate.NoBOS}, [][]byte{tokenizerFile, config, text}, "-1"},
		"another BOS":           {evaluate.Tokens{Window: 2, BOS: "yes"}, [][]byte{tokenizerFile, config, text}, `"yes"`},
		"a text that is short":  {evaluate.Tokens{Window: 99, BOS: evaluate.NoBOS}, [][]byte{tokenizerFile, config, text}, "window of 99"},
		"no documents":          {good, [][]byte{tokenizerFile, config}, "2 inputs"},
		"no tokenizer":          {good, [][]byte{text, config, text}, "tokenizer"},
		"a line without text":   {good, [][]byte{tokenizerFile, config, []byte(`{"text":"a b c"}` + "\n" + `{"txt":1}`)}, "document 1"},
		"a line that is broken": {good, [][]byte{tokenizerFile, config, []byte(`{"text":`)}, "document 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t.Context(), test.op, test.in...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
