package calibrate

import (
	"errors"
	"fmt"

	"bonsai/ops/tokenizer"
)

// A separator is what goes before documents.
type separator struct {
	id    [1]int32
	leads bool // also before the first
}

// newSeparator returns the separator of that name: a token, or "" for the one that the
// tokenizer suggests, see Calibrate.Separator.
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
