package tokenizer_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"bonsai/ops/tokenizer"
)

// The speed of one core on English text, which repeats its words, and on text that never
// does.
func BenchmarkEncode(b *testing.B) {
	wiki := read(b, "../../testdata/texts/wiki.test.head.txt")
	for _, c := range []struct {
		name string
		tok  *tokenizer.Tokenizer
		text string
	}{
		{"tok=qwen3/text=wiki", qwen3Tokenizer(), wiki},
		{"tok=qwen3/text=random", qwen3Tokenizer(), words()},
		{"tok=stories260K/text=wiki", stories(b), wiki},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				c.tok.Encode(c.text)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	wiki := read(b, "../../testdata/texts/wiki.test.head.txt")
	ids := qwen3Tokenizer().Encode(wiki)
	b.SetBytes(int64(len(wiki)))
	for b.Loop() {
		qwen3Tokenizer().Decode(ids)
	}
}

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(qwen3())))
	for b.Loop() {
		if _, err := tokenizer.Parse(qwen3(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// words returns random words, more of them than an encoder remembers.
func words() string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 0, 1<<20)
	for len(b) < cap(b)-16 {
		for range 3 + r.IntN(9) {
			b = append(b, 'a'+byte(r.IntN(26)))
		}
		b = append(b, ' ')
	}
	return string(b)
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
