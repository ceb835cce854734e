package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// An addedToken is an entry of added_tokens: text that is one token wherever it occurs.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not inside a word
	LStrip     bool   `json:"lstrip"`      // takes the white space before it along
	RStrip     bool   `json:"rstrip"`      // and that after it
	Normalized bool   `json:"normalized"`  // looked for after the normalizer
	Special    bool   `json:"special"`
}

// A matcher finds added tokens in text, leftmost first, the longest of those that begin at
// the same place. The zero value finds none.
type matcher struct {
	first [256]bool        // bytes that a token begins with
	next  map[uint64]int32 // state<<8 | byte → state; 0 is the start
	ends  map[int32]addedToken
	last  int32 // the newest state
}

// add makes m find tok where its text is content.
func (m *matcher) add(content string, tok addedToken) {
	if content == "" {
		return
	}
	if m.next == nil {
		m.next, m.ends = map[uint64]int32{}, map[int32]addedToken{}
	}
	m.first[content[0]] = true
	state := int32(0)
	for _, c := range []byte(content) {
		key := uint64(state)<<8 | uint64(c)
		to, ok := m.next[key]
		if !ok {
			m.last++
			to = m.last
			m.next[key] = to
		}
		state = to
	}
	m.ends[state] = tok
}

// at returns the longest token at the beginning of s and its length, or 0.
func (m *matcher) at(s string) (tok addedToken, n int) {
	state := int32(0)
	for i := range len(s) {
		to, ok := m.next[uint64(state)<<8|uint64(s[i])]
		if !ok {
			break
		}
		state = to
		if e, ok := m.ends[state]; ok {
			tok, n = e, i+1
		}
	}
	return tok, n
}

// split calls text for each stretch of s between tokens and token for each token, in order.
// offset is where the stretch begins in s.
func (m *matcher) split(s string, text func(s string, offset int), token func(id int32)) {
	done := 0 // s[:done] has been given out
	for i := 0; i < len(s); {
		if !m.first[s[i]] {
			i++
			continue
		}
		tok, n := m.at(s[i:])
		if n == 0 {
			i++
			continue
		}
		start, stop := i, i+n
		i = stop
		if start < done || tok.SingleWord && insideWord(s[:start], s[stop:]) {
			continue
		}
		if tok.LStrip {
			start = max(done, len(strings.TrimRightFunc(s[:start], unicode.IsSpace)))
		}
		if tok.RStrip {
			stop = len(s) - len(strings.TrimLeftFunc(s[stop:], unicode.IsSpace))
		}
		if done < start {
			text(s[done:start], done)
		}
		token(tok.ID)
		done = stop
	}
	if done < len(s) {
		text(s[done:], done)
	}
}

// insideWord reports whether a token between before and after touches a word.
func insideWord(before, after string) bool {
	l, _ := utf8.DecodeLastRuneInString(before)
	r, _ := utf8.DecodeRuneInString(after)
	return before != "" && isWord(l) || after != "" && isWord(r)
}

// isWord is the regular expression \w.
func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.Is(unicode.Nd, r) ||
		unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Pc, r) || unicode.Is(unicode.Join_Control, r)
}
