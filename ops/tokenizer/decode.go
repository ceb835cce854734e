package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids. Added tokens, the special ones among them, give their own
// text; an id without a token gives none; bytes that do not form UTF-8 give U+FFFD.
func (t *Tokenizer) Decode(ids []int32) string {
	if t.bpe.byteLevel {
		return t.decodeByteLevel(ids)
	}
	return t.decodePieces(ids)
}

func (t *Tokenizer) decodeByteLevel(ids []int32) string {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		if t.added[id] {
			b = append(b, t.Token(id)...)
			continue
		}
		b = appendBytes(b, t.Token(id))
	}
	return string([]rune(string(b)))
}

// A postDecoder turns tokens that are not byte-level into text.
type postDecoder struct {
	blank string // stands for a space in tokens, "" for none
	strip string // is taken off the beginning of the text,
	count int    // at most so often
}

func (t *Tokenizer) decodePieces(ids []int32) string {
	var b, run []byte // text, and bytes of characters that had no token
	flush := func() {
		if utf8.Valid(run) {
			b = append(b, run...)
		} else {
			b = append(b, strings.Repeat(string(utf8.RuneError), len(run))...)
		}
		run = run[:0]
	}
	for _, id := range ids {
		if c, ok := t.byteOf(id); ok {
			run = append(run, c)
			continue
		}
		flush()
		s := t.Token(id)
		if t.post.blank != "" && !t.added[id] {
			s = strings.ReplaceAll(s, t.post.blank, " ")
		}
		b = append(b, s...)
	}
	flush()
	s := string(b)
	for range t.post.count {
		s = strings.TrimPrefix(s, t.post.strip)
	}
	return s
}

// byteOf returns the byte that a token such as <0x0A> stands for.
func (t *Tokenizer) byteOf(id int32) (byte, bool) {
	if !t.bpe.fallback || t.added[id] {
		return 0, false
	}
	return parseByteToken(t.Token(id))
}

// parseByteToken returns the byte that a token spelled <0x0A> stands for.
func parseByteToken(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	c, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(c), err == nil
}

// newPostDecoder reads the decoder of tokenizer.json of a tokenizer that is not byte-level.
func newPostDecoder(c *component) (p postDecoder, err error) {
	fused := false
	for _, c := range c.flatten() {
		switch {
		case c.Type == "Replace" && c.Pattern != nil && c.Pattern.String != nil && c.Content == " " && p.blank == "":
			p.blank = *c.Pattern.String
		case c.Type == "Metaspace" && p.blank == "":
			p.blank = c.Replacement
			if c.PrependScheme != "never" {
				p.strip, p.count = " ", 1
			}
		case c.Type == "ByteFallback":
		case c.Type == "Fuse":
			fused = true
		case c.Type == "Strip" && fused && c.Stop == 0 && c.Start >= 0 && c.Start < 1024:
			p.strip, p.count = c.Content, c.Start
		default:
			return p, fmt.Errorf("decoder: %s with these settings or at this place", c.Type)
		}
	}
	return p, nil
}
