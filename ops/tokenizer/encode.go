package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Encode returns the ids of text. The text of an added token, such as <|im_end|>, becomes
// that token wherever it stands. Nothing is put before or after the text.
//
// A byte that is not UTF-8 counts as U+FFFD.
func (t *Tokenizer) Encode(text string) []int32 {
	e, _ := t.encoders.Get().(*encoder)
	if e == nil {
		e = &encoder{t: t}
	}
	defer t.encoders.Put(e)
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	e.ids = make([]int32, 0, len(text)/3+8)
	t.raw.split(text, e.segment, e.token)
	ids := e.ids
	e.ids = nil
	return ids
}

// EncodeWithBOS returns the ids of a text that begins a sequence: Encode's, after BOS where
// the tokenizer adds it.
func (t *Tokenizer) EncodeWithBOS(text string) []int32 {
	ids := t.Encode(text)
	if !t.AddBOS {
		return ids
	}
	return append([]int32{t.BOS}, ids...)
}

// An encoder encodes one text at a time and remembers the pieces it has met.
type encoder struct {
	t     *Tokenizer
	ids   []int32
	cache pieceCache
	scratch
}

func (e *encoder) token(id int32) { e.ids = append(e.ids, id) }

// segment encodes a stretch of text without added tokens of the raw kind. offset is 0 at the
// beginning of the whole text.
func (e *encoder) segment(s string, offset int) {
	for _, f := range e.t.rewrite {
		s = f(s)
	}
	e.t.normal.split(s, func(s string, inner int) {
		e.t.pre.split(s, offset+inner == 0, e.piece)
	}, e.token)
}

// piece encodes what merges happen within.
func (e *encoder) piece(s string) {
	if ids, ok := e.cache.get(s); ok {
		e.ids = append(e.ids, ids...)
		return
	}
	start := len(e.ids)
	e.ids = e.t.bpe.appendPiece(e.ids, s, &e.scratch)
	e.cache.put(s, e.ids[start:])
}

const (
	cachedPieces = 1 << 16 // about 6 MB an encoder
	cachedBytes  = 64      // the longest piece kept
)

// A pieceCache holds the tokens of pieces. It forgets all of them when it is full: the words
// of the text at hand come back at once.
type pieceCache struct {
	spans map[string]span
	ids   []int32
}

// A span is the part of a pieceCache's ids that belongs to one piece.
type span struct{ begin, end int32 }

func (c *pieceCache) get(piece string) ([]int32, bool) {
	if len(piece) > cachedBytes {
		return nil, false
	}
	s, ok := c.spans[piece]
	return c.ids[s.begin:s.end], ok
}

func (c *pieceCache) put(piece string, ids []int32) {
	if len(piece) > cachedBytes {
		return
	}
	if c.spans == nil {
		c.spans = make(map[string]span)
	}
	if len(c.spans) == cachedPieces {
		clear(c.spans)
		c.ids = c.ids[:0]
	}
	begin := int32(len(c.ids))
	c.ids = append(c.ids, ids...)
	c.spans[strings.Clone(piece)] = span{begin, int32(len(c.ids))}
}
