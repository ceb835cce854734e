package tokenizer_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/tokenizer"

	"google.golang.org/protobuf/encoding/protowire"
)

const storiesDir = "../../testdata/models/stories260K/"

func stories(tb testing.TB) *tokenizer.Tokenizer {
	tb.Helper()
	tok, err := tokenizer.Parse([]byte(read(tb, storiesDir+"tokenizer.json")), []byte(read(tb, storiesDir+"tokenizer_config.json")))
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// A spmPiece is an entry of tokenizer.model, SentencePiece's own form of the vocabulary.
type spmPiece struct {
	text  string
	score float32
	kind  int32 // numbered as in a GGUF
}

// spmPieces reads the pieces of a tokenizer.model, fields 1 of the protobuf.
func spmPieces(t *testing.T) (all []spmPiece) {
	t.Helper()
	eachField(t, []byte(read(t, storiesDir+"tokenizer.model")), func(num protowire.Number, v []byte, _ uint64) {
		if num != 1 {
			return
		}
		p := spmPiece{kind: 1}
		eachField(t, v, func(num protowire.Number, v []byte, n uint64) {
			switch num {
			case 1:
				p.text = string(v)
			case 2:
				p.score = math.Float32frombits(uint32(n))
			case 3:
				p.kind = int32(n)
			default:
			}
		})
		all = append(all, p)
	})
	return all
}

func eachField(t *testing.T, b []byte, field func(num protowire.Number, v []byte, n uint64)) {
	t.Helper()
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		b = b[n:]
		var v []byte
		var x uint64
		switch kind {
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var y uint32
			y, n = protowire.ConsumeFixed32(b)
			x = uint64(y)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		default:
			n = -1
		}
		if n < 0 {
			t.Fatal("tokenizer.model is not a protobuf as expected")
		}
		field(num, v, x)
		b = b[n:]
	}
}

func TestStoriesInGGUFEqualsItsSentencePieceModel(t *testing.T) {
	tok, pieces := stories(t), spmPieces(t)
	if tok.Model() != "llama" || tok.Pre() != "default" || !tok.SpacePrefix() {
		t.Errorf("Model, Pre, SpacePrefix = %q, %q, %t; want llama, default, true", tok.Model(), tok.Pre(), tok.SpacePrefix())
	}
	if tok.BOS != 1 || tok.EOS != 2 || tok.UNK != 0 || tok.PAD != -1 || !tok.AddBOS || tok.AddEOS {
		t.Errorf("BOS %d, EOS %d, UNK %d, PAD %d, AddBOS %t, AddEOS %t; want 1, 2, 0, -1, true, false",
			tok.BOS, tok.EOS, tok.UNK, tok.PAD, tok.AddBOS, tok.AddEOS)
	}
	if tok.VocabSize() != len(pieces) {
		t.Fatalf("%d ids, want %d", tok.VocabSize(), len(pieces))
	}
	tokens, types, scores := tok.Tokens(), tok.Types(), tok.Scores()
	for i, p := range pieces {
		if tokens[i] != p.text || types[i] != p.kind || scores[i] != p.score {
			t.Errorf("id %d is %q, type %d, score %g; want %q, %d, %g", i, tokens[i], types[i], scores[i], p.text, p.kind, p.score)
		}
	}
}

// spmEncode is SentencePiece's BPE in its plainest form: of all neighbours that form a piece,
// those of the best score become one, the leftmost on ties.
func spmEncode(pieces []spmPiece, text string) (ids []int32) {
	index := map[string]int32{}
	for i, p := range pieces {
		index[p.text] = int32(i)
	}
	parts := strings.Split("▁"+strings.ReplaceAll(text, " ", "▁"), "")
	for {
		at, best := -1, float32(math.Inf(-1))
		for i := 1; i < len(parts); i++ {
			if id, ok := index[parts[i-1]+parts[i]]; ok && pieces[id].kind == 1 && pieces[id].score > best {
				at, best = i, pieces[id].score
			}
		}
		if at < 0 {
			break
		}
		parts[at-1] += parts[at]
		parts = slices.Delete(parts, at, at+1)
	}
	for _, p := range parts {
		if id, ok := index[p]; ok {
			ids = append(ids, id)
			continue
		}
		for _, c := range []byte(p) {
			ids = append(ids, int32(c)+3)
		}
	}
	return ids
}

func TestStoriesEncodesAsSentencePiece(t *testing.T) {
	tok, pieces := stories(t), spmPieces(t)
	text := read(t, "../../testdata/texts/v2-gpt4-sample.txt") + "Ünïcödé 文字 \u200a 👍\x00 end"
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		i := r.IntN(len(text))
		s := strings.ToValidUTF8(text[i:min(len(text), i+r.IntN(300))], "")
		s = strings.ReplaceAll(s, "<|endoftext|>", "")
		if s != "" {
			checkIDs(t, tok, s, spmEncode(pieces, s))
		}
	}
}

func TestStoriesKnownIds(t *testing.T) {
	tok := stories(t)
	want := []int32{1, 403, 407, 261, 378, 432, 383, 286, 261}
	const text = "Once upon a time, there was a"
	got := tok.EncodeWithBOS(text)
	if s := tok.Decode(got[1:]); s != text {
		t.Errorf("Decode = %q, want %q", s, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("EncodeWithBOS(%q) = %d, want %d", text, got, want)
	}
	for _, c := range []struct {
		text string
		ids  []int32
	}{
		{"", []int32{}},
		{"<s>", []int32{1}},
		{"\n", []int32{410, 13}},
		{"<s></s>", []int32{1, 2}},
	} {
		checkIDs(t, tok, c.text, c.ids)
	}
}
