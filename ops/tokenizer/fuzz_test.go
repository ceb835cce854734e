package tokenizer_test

import (
	"slices"
	"strings"
	"testing"

	"bonsai/ops/tokenizer"

	"golang.org/x/text/unicode/norm"
)

// seeds are texts that go wrong somewhere.
var seeds = []string{
	"", " ", "  two  blanks ", "Hello, world!\n", "a\r\nb\r\n\r\n c", "I'LL we've 'ſ",
	"<|im_start|>user\nhi<|im_end|>", "<|im_start|<|im_end|>|>", "<|endoftext|>\u0338", "e\u0301\u0323", "Å",
	"1234567", "中文字符 ไทย हिन्दी", "👩‍👩‍👧‍👦", "\x00\x01\xff\xfe\xc3", "▁x▁▁y ▁", "<s>a</s>", "<0x41>A", "\u1112\u1161\u11ab",
	strings.Repeat("ab", 100), strings.Repeat(" ", 70) + "x",
}

// FuzzQwen3 checks that decoding gives the text back, but for NFC and for bytes that are no
// text.
func FuzzQwen3(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	tok := tiny(f)
	f.Fuzz(func(t *testing.T, s string) {
		ids := tok.Encode(s)
		got := tok.Decode(ids)
		// NFC is applied between added tokens, so that what is decoded may compose again.
		if want := string([]rune(s)); norm.NFC.String(got) != norm.NFC.String(want) {
			t.Errorf("Decode(Encode(%q)) = %q", s, got)
		}
		checkInVocabulary(t, tok, ids)
	})
}

// FuzzStories checks the same of SentencePiece, which knows no difference between a blank and
// its own sign for it.
func FuzzStories(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	tok := stories(f)
	f.Fuzz(func(t *testing.T, s string) {
		ids := tok.Encode(s)
		checkInVocabulary(t, tok, ids)
		for _, special := range []string{"<s>", "</s>", "<unk>"} {
			if strings.Contains(s, special) {
				return // the text after it gets a blank of its own
			}
		}
		want := strings.ReplaceAll(string([]rune(s)), "▁", " ")
		if got := tok.Decode(ids); got != want {
			t.Errorf("Decode(Encode(%q)) = %q, want %q", s, got, want)
		}
	})
}

// FuzzParse checks that no file makes Parse or what it returns panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(read(f, storiesDir+"tokenizer.json")), []byte(read(f, storiesDir+"tokenizer_config.json")), "Once upon <s> a time")
	f.Add([]byte(`{"model":{"type":"BPE","unk_token":"a","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`), []byte(`{"eos_token":"a"}`), "abé")
	f.Fuzz(func(t *testing.T, file, config []byte, text string) {
		tok, err := tokenizer.Parse(file, config)
		if err != nil {
			return
		}
		ids := tok.EncodeWithBOS(text)
		checkInVocabulary(t, tok, ids)
		tok.Decode(ids)
		if n := tok.VocabSize(); len(tok.Tokens()) != n || len(tok.Types()) != n || len(tok.Scores()) != n {
			t.Errorf("%d tokens, %d types, %d scores for %d ids", len(tok.Tokens()), len(tok.Types()), len(tok.Scores()), n)
		}
	})
}

func checkInVocabulary(t *testing.T, tok *tokenizer.Tokenizer, ids []int32) {
	t.Helper()
	if i := slices.IndexFunc(ids, func(id int32) bool { return tok.Token(id) == "" }); i >= 0 {
		t.Errorf("id %d has no token", ids[i])
	}
}

// tiny is the tokenizer of the small Qwen3 model.
func tiny(tb testing.TB) *tokenizer.Tokenizer {
	tb.Helper()
	const dir = "../../testdata/models/tiny-qwen3/"
	tok, err := tokenizer.Parse([]byte(read(tb, dir+"tokenizer.json")), []byte(read(tb, dir+"tokenizer_config.json")))
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}
