package tokenizer

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// toyBPE has merges over the letters a to d that make and break one another's chances.
func toyBPE(r *rand.Rand) *bpe {
	m := &bpe{ranks: map[uint64]uint32{}}
	ids := int32(4)
	for len(m.merges) < 40 {
		next := merge{left: r.Int32N(ids), right: r.Int32N(ids), id: ids}
		if r.IntN(3) == 0 {
			next.id = r.Int32N(ids) // as some other pair's
		} else {
			ids++
		}
		m.ranks[pair(next.left, next.right)] = uint32(len(m.merges))
		m.merges = append(m.merges, next)
	}
	return m
}

// The heap gives what looking at all pairs gives, at every length.
func TestMergeLongEqualsMergeShort(t *testing.T) {
	var s scratch
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := toyBPE(r)
		for n := range 120 {
			word := make([]int32, n)
			for i := range word {
				word[i] = r.Int32N(4)
			}
			short, long := slices.Clone(word), slices.Clone(word)
			short = short[:m.mergeShort(short, &s)]
			long = long[:m.mergeLong(long, &s)]
			if !slices.Equal(short, long) {
				t.Fatalf("seed %d: mergeLong(%d) = %d, want %d", seed, word, long, short)
			}
		}
	}
}

func loadStories(t testing.TB) *Tokenizer {
	t.Helper()
	b, err := os.ReadFile("../../testdata/models/stories260K/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Pieces that end before a blank give the ids of a text that is one piece.
func TestCutGivesTheSameIds(t *testing.T) {
	cut, whole := loadStories(t), loadStories(t)
	if cut.pre.cut != "▁" {
		t.Fatalf("cut is %q, want ▁", cut.pre.cut)
	}
	whole.pre.cut = ""
	r := rand.New(rand.NewPCG(3, 0))
	words := append(strings.Fields("once upon a time there was Lily the dog <s> she said"), " ", "  ", "▁", "é", "\n", "𝟘")
	for range 3000 {
		var b strings.Builder
		for range r.IntN(20) {
			b.WriteString(words[r.IntN(len(words))])
		}
		if got, want := cut.Encode(b.String()), whole.Encode(b.String()); !slices.Equal(got, want) {
			t.Fatalf("Encode(%q) = %d, want %d", b.String(), got, want)
		}
	}
}

// A cache that has been emptied, and pieces too long for it, change nothing.
func TestCacheForgets(t *testing.T) {
	var c pieceCache
	for i := range cachedPieces + 10 {
		c.put(strconv.Itoa(i), []int32{int32(i), 7})
	}
	if len(c.spans) != 10 || len(c.ids) != 20 {
		t.Errorf("%d pieces and %d ids kept, want 10 and 20", len(c.spans), len(c.ids))
	}
	last := cachedPieces + 9
	if ids, ok := c.get(strconv.Itoa(last)); !ok || !slices.Equal(ids, []int32{int32(last), 7}) {
		t.Errorf("get = %d, %t; want [%d 7], true", ids, ok, last)
	}
	long := strings.Repeat("x", cachedBytes+1)
	c.put(long, []int32{1})
	if _, ok := c.get(long); ok {
		t.Errorf("a piece of %d bytes was kept", len(long))
	}
}

func TestByteAlphabetIsABijection(t *testing.T) {
	if len(runeBytes) != 256 {
		t.Fatalf("%d characters for 256 bytes", len(runeBytes))
	}
	for c, want := range map[byte]rune{0: 'Ā', ' ': 'Ġ', '\n': 'Ċ', '!': '!', 127: 'ġ', 173: 'Ń', 255: 'ÿ'} {
		if byteRunes[c] != want {
			t.Errorf("byte %d is %q, want %q", c, byteRunes[c], want)
		}
	}
}
