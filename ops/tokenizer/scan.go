package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// A pattern is a regular expression that cuts text into pieces, with its name in a GGUF and
// a scanner that does what it says. Go's regexp has no lookahead, and a scanner is some ten
// times as fast as the packages that have it.
type pattern struct {
	regex string
	pre   string // tokenizer.ggml.pre
	scan  scanner
}

// patterns are the Split patterns of the models that bonsai compresses.
var patterns = []pattern{
	{
		regex: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		pre:   "qwen2",
		scan:  scanner{digits: 1},
	},
	{
		regex: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		pre:   "llama-bpe",
		scan:  scanner{digits: 3},
	},
	{
		regex: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		pre:   "qwen35",
		scan:  scanner{digits: 1, marks: true},
	},
}

// A scanner is what differs between the patterns.
type scanner struct {
	digits int  // the longest run of numbers in a piece
	marks  bool // combining marks belong to words
}

// A class is what the patterns tell apart in a character.
type class uint8

const (
	other class = iota
	letter
	number
	mark
	space   // White_Space but CR and LF
	newline // CR, LF
)

// ascii holds the classes of the first 128 characters, where nearly all text is.
var ascii = func() (t [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = classify(r)
	}
	return t
}()

func classify(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	case unicode.IsMark(r):
		return mark
	default:
		return other
	}
}

// at returns the class of the character at the beginning of s and its length, 0 if s is
// empty.
func (c scanner) at(s string) (class, int) {
	if s == "" {
		return other, 0
	}
	if s[0] < utf8.RuneSelf {
		return ascii[s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	k := classify(r)
	if k == mark {
		k = other
		if c.marks {
			k = letter
		}
	}
	return k, n
}

// run returns the length of the longest run of class k at the beginning of s, of at most
// limit characters.
func (c scanner) run(s string, k class, limit int) int {
	i := 0
	for ; limit > 0; limit-- {
		got, n := c.at(s[i:])
		if n == 0 || got != k {
			break
		}
		i += n
	}
	return i
}

// next returns the length of the first piece of s, which is not empty. The alternatives of
// the pattern are tried in its order.
func (c scanner) next(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	k, n := c.at(s)
	switch k {
	case letter:
		return n + c.run(s[n:], letter, len(s))
	case number:
		return c.run(s, number, c.digits)
	case newline:
		return c.blank(s)
	default:
	}
	if m := c.run(s[n:], letter, len(s)); m > 0 {
		return n + m
	}
	if k == other {
		return c.symbols(s, 0)
	}
	if s[0] == ' ' {
		if k, _ := c.at(s[1:]); len(s) > 1 && k == other {
			return c.symbols(s, 1)
		}
	}
	return c.blank(s)
}

// symbols returns the end of a run of symbols from i on and of the line ends after it.
func (c scanner) symbols(s string, i int) int {
	i += c.run(s[i:], other, len(s))
	return i + c.run(s[i:], newline, len(s))
}

// blank returns the length of a piece of the white space that s begins with: up to the last
// line end of the run; else all of it but the last character, which goes to what follows.
func (c scanner) blank(s string) int {
	end, last, lines := 0, 0, 0
	for end < len(s) {
		k, n := c.at(s[end:])
		if k != space && k != newline {
			break
		}
		last = end
		end += n
		if k == newline {
			lines = end
		}
	}
	switch {
	case lines > 0:
		return lines
	case end == len(s) || last == 0:
		return end
	default:
		return last
	}
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd in any case at the
// beginning of s. The long s (U+017F) is an s in another case.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	if r, n := utf8.DecodeRuneInString(s[1:]); r == 'ſ' {
		return 1 + n
	}
	return 0
}
