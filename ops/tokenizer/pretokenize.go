package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A preTokenizer cuts text into the pieces that merges happen within.
type preTokenizer struct {
	pattern *pattern // how to cut, or nil

	// Metaspace: blanks become replacement, which also goes before a piece that has none.
	metaspace   bool
	replacement string
	prepend     prepend

	// cut is a string that begins a new piece unless it follows itself, "" for none. It is
	// there to be fast: Parse sets it where no merge reaches across.
	cut string
}

// A prepend says which pieces get a replacement put before them.
type prepend uint8

const (
	never prepend = iota
	first         // the one at the beginning of the text
	always
)

// split calls piece for each piece of s, in order. begins tells that s is at the beginning
// of the text.
func (p *preTokenizer) split(s string, begins bool, piece func(string)) {
	if p.metaspace {
		s = strings.ReplaceAll(s, " ", p.replacement)
		if (p.prepend == always || p.prepend == first && begins) && !strings.HasPrefix(s, p.replacement) {
			s = p.replacement + s
		}
	}
	for s != "" {
		n := len(s)
		switch {
		case p.pattern != nil:
			n = p.pattern.scan.next(s)
		case p.cut != "":
			n = p.word(s)
		}
		piece(s[:n])
		s = s[n:]
	}
}

// word returns the length of the run of p.cut at the beginning of s with what follows it up
// to the next.
func (p *preTokenizer) word(s string) int {
	start := 0
	for strings.HasPrefix(s[start:], p.cut) {
		start += len(p.cut)
	}
	if i := strings.Index(s[start:], p.cut); i >= 0 {
		return start + i
	}
	return len(s)
}

// newPreTokenizer reads the pre_tokenizer of tokenizer.json. byteLevel tells that pieces are
// written in GPT-2's alphabet.
func newPreTokenizer(c *component) (p preTokenizer, byteLevel bool, err error) {
	for _, c := range c.flatten() {
		if byteLevel {
			return p, false, fmt.Errorf("pre_tokenizer: %s after ByteLevel", c.Type)
		}
		switch c.Type {
		case "Split":
			err = p.setSplit(c)
		case "ByteLevel":
			byteLevel, err = true, c.checkByteLevel()
		case "Metaspace":
			err = p.setMetaspace(c)
		default:
			err = fmt.Errorf("pre_tokenizer: unknown type %q", c.Type)
		}
		if err != nil {
			return p, false, err
		}
	}
	if (p.pattern != nil) != byteLevel || byteLevel && p.metaspace {
		return p, false, fmt.Errorf("pre_tokenizer: neither Split and ByteLevel, nor Metaspace, nor none")
	}
	return p, byteLevel, nil
}

func (p *preTokenizer) setSplit(c component) error {
	if p.pattern != nil {
		return fmt.Errorf("pre_tokenizer: more than one Split")
	}
	if c.Pattern == nil || c.Pattern.Regex == nil {
		return fmt.Errorf("pre_tokenizer: Split without a regular expression")
	}
	if c.Behavior != "Isolated" || c.Invert {
		return fmt.Errorf("pre_tokenizer: Split with behavior %q, invert %t", c.Behavior, c.Invert)
	}
	for i := range patterns {
		if patterns[i].regex == *c.Pattern.Regex {
			p.pattern = &patterns[i]
			return nil
		}
	}
	return fmt.Errorf("pre_tokenizer: unknown pattern %q", *c.Pattern.Regex)
}

func (c component) checkByteLevel() error {
	if c.AddPrefixSpace == nil || *c.AddPrefixSpace {
		return fmt.Errorf("pre_tokenizer: ByteLevel with add_prefix_space")
	}
	if c.UseRegex == nil || *c.UseRegex {
		return fmt.Errorf("pre_tokenizer: ByteLevel with use_regex, GPT-2's pattern")
	}
	return nil
}

func (p *preTokenizer) setMetaspace(c component) error {
	if p.metaspace {
		return fmt.Errorf("pre_tokenizer: more than one Metaspace")
	}
	if utf8.RuneCountInString(c.Replacement) != 1 {
		return fmt.Errorf("pre_tokenizer: Metaspace with replacement %q", c.Replacement)
	}
	if c.Split == nil || *c.Split {
		return fmt.Errorf("pre_tokenizer: Metaspace with split")
	}
	p.metaspace, p.replacement = true, c.Replacement
	switch {
	case c.PrependScheme == "always", c.PrependScheme == "" && (c.AddPrefixSpace == nil || *c.AddPrefixSpace):
		p.prepend = always
	case c.PrependScheme == "first":
		p.prepend = first
	case c.PrependScheme == "never", c.PrependScheme == "":
		p.prepend = never
	default:
		return fmt.Errorf("pre_tokenizer: Metaspace with prepend_scheme %q", c.PrependScheme)
	}
	return nil
}
