package tokenizer

import (
	"math"
	"unicode/utf8"
)

// A bpe is the model of a tokenizer: which neighbours become one token, the lowest rank
// first and the leftmost on ties.
type bpe struct {
	vocab        map[string]int32  // without added tokens
	ranks        map[uint64]uint32 // by left id << 32 | right id
	merges       []merge           // by rank
	ignoreMerges bool              // a piece in the vocabulary is one token

	byteLevel bool
	bytes     [256]int32 // the token of each byte, if byteLevel or byteFallback
	fallback  bool       // characters not in the vocabulary become bytes
	unk       int32      // what else they become; -1 never happens then
	fuseUnk   bool       // a run of them becomes one
}

// A merge makes one token of two neighbours.
type merge struct{ left, right, id int32 }

const noRank = math.MaxUint32

func pair(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// appendPiece appends the tokens of one piece of text to ids.
func (m *bpe) appendPiece(ids []int32, piece string, s *scratch) []int32 {
	if m.ignoreMerges {
		if id, ok := m.whole(piece, s); ok {
			return append(ids, id)
		}
	}
	start := len(ids)
	ids = m.appendSymbols(ids, piece)
	kept := m.merge(ids[start:], s)
	return ids[:start+kept]
}

// whole returns the token that is all of piece.
func (m *bpe) whole(piece string, s *scratch) (int32, bool) {
	if !m.byteLevel {
		id, ok := m.vocab[piece]
		return id, ok
	}
	s.text = appendByteLevel(s.text[:0], piece)
	id, ok := m.vocab[string(s.text)]
	return id, ok
}

// appendSymbols appends what merging begins with: a token for each byte or character.
func (m *bpe) appendSymbols(ids []int32, piece string) []int32 {
	if m.byteLevel {
		for i := range len(piece) {
			ids = append(ids, m.bytes[piece[i]])
		}
		return ids
	}
	unknown := false // the last character was
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRuneInString(piece[i:])
		id, ok := m.vocab[piece[i:i+n]]
		switch {
		case ok:
			ids = append(ids, id)
		case m.fallback:
			for _, c := range []byte(piece[i : i+n]) {
				ids = append(ids, m.bytes[c])
			}
		case !unknown || !m.fuseUnk:
			ids = append(ids, m.unk)
		}
		unknown = !ok && !m.fallback
		i += n
	}
	return ids
}

// shortWord is the number of symbols up to which looking at all pairs before each merge is
// faster than a heap: measured, they meet between 60 and 100.
const shortWord = 48

// scratch is memory that merging uses again and again.
type scratch struct {
	ranks []uint32
	heap  []uint64
	links []link
	text  []byte
}

// merge merges within word until no pair is left, in place, and returns the new length.
func (m *bpe) merge(word []int32, s *scratch) int {
	if len(word) <= shortWord {
		return m.mergeShort(word, s)
	}
	return m.mergeLong(word, s)
}

// mergeShort is the reference: quadratic, and fast for the words of a text.
func (m *bpe) mergeShort(word []int32, s *scratch) int {
	ranks := s.ranks[:0]
	for i := 1; i < len(word); i++ {
		ranks = append(ranks, m.rank(word[i-1], word[i]))
	}
	s.ranks = ranks
	for len(ranks) > 0 {
		at, low := 0, uint32(noRank)
		for i, r := range ranks {
			if r < low {
				at, low = i, r
			}
		}
		if low == noRank {
			break
		}
		word[at] = m.merges[low].id
		word = append(word[:at+1], word[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at > 0 {
			ranks[at-1] = m.rank(word[at-1], word[at])
		}
		if at < len(ranks) {
			ranks[at] = m.rank(word[at], word[at+1])
		}
	}
	return len(word)
}

// rank returns the rank of merging two neighbours, noRank if they stay apart.
func (m *bpe) rank(left, right int32) uint32 {
	if r, ok := m.ranks[pair(left, right)]; ok {
		return r
	}
	return noRank
}

// A link is a symbol in a list of those not yet merged into the one before.
type link struct {
	prev, next int32  // indices; -1 at the ends
	rank       uint32 // of merging with the next
}

// mergeLong is mergeShort in n log n, for text without white space and for tokenizers that
// cut nothing. The heap holds rank << 32 | index of each pair, also of pairs that are gone.
func (m *bpe) mergeLong(word []int32, s *scratch) int {
	links, heap := s.links[:0], s.heap[:0]
	for i := range word {
		l := link{prev: int32(i) - 1, next: int32(i) + 1, rank: noRank}
		if i+1 < len(word) {
			l.rank = m.rank(word[i], word[i+1])
		} else {
			l.next = -1
		}
		links = append(links, l)
		if l.rank != noRank {
			heap = push(heap, uint64(l.rank)<<32|uint64(i))
		}
	}
	renew := func(i int32) {
		r := uint32(noRank)
		if n := links[i].next; n >= 0 {
			r = m.rank(word[i], word[n])
		}
		links[i].rank = r
		if r != noRank {
			heap = push(heap, uint64(r)<<32|uint64(i))
		}
	}
	for len(heap) > 0 {
		var top uint64
		top, heap = pop(heap)
		i, rank := int32(uint32(top)), uint32(top>>32)
		if links[i].rank != rank {
			continue // merged since
		}
		gone := links[i].next
		word[i] = m.merges[rank].id
		links[i].next, links[gone].rank = links[gone].next, noRank
		if n := links[i].next; n >= 0 {
			links[n].prev = i
		}
		renew(i)
		if p := links[i].prev; p >= 0 {
			renew(p)
		}
	}
	s.links, s.heap = links, heap
	kept := 0
	for i := int32(0); i >= 0 && len(links) > 0; i = links[i].next {
		word[kept] = word[i]
		kept++
	}
	return kept
}

// push adds x to a heap whose least is first.
func push(h []uint64, x uint64) []uint64 {
	h = append(h, x)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= x {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
	return h
}

// pop takes the least off a heap that is not empty.
func pop(h []uint64) (uint64, []uint64) {
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	for i := 0; len(h) > 0; {
		down := 2*i + 1
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if down >= len(h) || x <= h[down] {
			h[i] = x
			break
		}
		h[i] = h[down]
		i = down
	}
	return top, h
}
