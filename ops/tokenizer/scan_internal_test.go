package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// nasty holds what the patterns treat in different ways, and what they might.
var nasty = []string{
	"a", "Z", "é", "e\u0301", "ſ", "K", "ß", "中", "文", "א", "ǅ", "ª", "ʰ", "한",
	"0", "7", "٣", "Ⅷ", "½", "²", "๕", "𝟘",
	" ", " ", " ", "\u00a0", "\u3000", "\t", "\v", "\f", "\u0085", "\u2028", "\u2029", "\u1680", "\u202f", "\u200a",
	"\n", "\n", "\r", "\r\n",
	"\u0301", "\u0308", "\u20dd", "ि", "\ufe0f", "\u0e31",
	"\u200d", "\u200b", "\ufeff", "\u00ad", "\u180e", "\x00", "\x1c", "\x1f", "\x7f",
	"'", "'", "’", "s", "S", "t", "re", "rE", "VE", "m", "ll", "lL", "d", "D", "v", "l",
	"!", "-", "_", "…", "👍", "🏽", "€", "+", "<|", "|>", "\U000e0041", "\ufffd", "\ue000", "\U0010ffff",
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		b.WriteString(nasty[r.IntN(len(nasty))])
	}
	return b.String()
}

// Each scanner cuts as regexp2 does, which has Oniguruma's lookahead and folds the long s.
func TestScannersEqualTheirPatterns(t *testing.T) {
	texts := 60_000
	if testing.Short() {
		texts = 6_000
	}
	for i, p := range patterns {
		t.Run(p.pre, func(t *testing.T) {
			re := regexp2.MustCompile(p.regex)
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for range texts {
				s := randomText(r)
				want, got := regexPieces(t, re, s), pieces(p.scan, s)
				if !slices.Equal(got, want) {
					t.Fatalf("pieces of %q = %q, want %q", s, got, want)
				}
			}
		})
	}
}

// Every character that Unicode has, alone and beside others, is cut as regexp2 does.
func TestScannersKnowEveryCharacter(t *testing.T) {
	if testing.Short() {
		t.Skip("half a million matches take seconds; the whole test run has them")
	}
	for _, p := range patterns[1:] {
		re := regexp2.MustCompile(p.regex)
		for r := rune(0); r < 0x20000; r += 16 {
			var b strings.Builder
			for c := r; c < r+16; c++ {
				if c < 0xd800 || c > 0xdfff {
					b.WriteString("a" + string(c) + " " + string(c) + "1")
				}
			}
			want, got := regexPieces(t, re, b.String()), pieces(p.scan, b.String())
			if !slices.Equal(got, want) {
				t.Fatalf("%s: pieces around U+%04X = %q, want %q", p.pre, r, got, want)
			}
		}
	}
}

func pieces(s scanner, text string) (all []string) {
	for text != "" {
		n := s.next(text)
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

func regexPieces(t *testing.T, re *regexp2.Regexp, text string) (all []string) {
	t.Helper()
	m, err := re.FindStringMatch(text)
	for ; m != nil && err == nil; m, err = re.FindNextMatch(m) {
		all = append(all, m.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}
