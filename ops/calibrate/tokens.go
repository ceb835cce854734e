package calibrate

import (
	"errors"
	"fmt"
	"iter"

	"bonsai/ops/tokenizer"
)

// Tokens returns the first n ids of documents joined by a separator, or fewer if there are no
// more; n 0 returns all. Special tokens in the text are tokens.
//
// The separator is the name of a token, "" for the one that the tokenizer suggests: BOS if it
// adds that to texts, else <|endoftext|> if it has that, else EOS. BOS stands before each
// document, another token between two.
//
// Errors are those of documents, and a separator that is no token.
func Tokens(t *tokenizer.Tokenizer, separator string, documents iter.Seq2[string, error], n int) ([]int32, error) {
	sep, err := newSeparator(t, separator)
	if err != nil {
		return nil, err
	}
	ids, i := []int32{}, 0
	for text, err := range documents {
		if err != nil {
			return nil, err
		}
		ids = append(append(ids, sep.ids(i)...), t.Encode(text)...)
		i++
		if n > 0 && len(ids) >= n {
			return ids[:n], nil
		}
	}
	return ids, nil
}

// A separator is what goes before documents.
type separator struct {
	id    [1]int32
	leads bool // also before the first
}

// newSeparator returns the separator of that name.
func newSeparator(t *tokenizer.Tokenizer, name string) (separator, error) {
	id, ok := t.ID(name)
	switch {
	case name != "" && !ok:
		return separator{}, fmt.Errorf("separator %q is not a token", name)
	case name != "":
	case t.AddBOS:
		id = t.BOS
	default:
		if id, ok = t.ID("<|endoftext|>"); !ok {
			id = t.EOS
		}
	}
	if id < 0 {
		return separator{}, errors.New("the tokenizer has no token to put between documents")
	}
	return separator{[1]int32{id}, id == t.BOS}, nil
}

// ids returns what goes before document i.
func (s *separator) ids(i int) []int32 {
	if i == 0 && !s.leads {
		return nil
	}
	return s.id[:]
}
