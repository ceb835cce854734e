package record

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bonsai/cache"
)

const (
	// kept is how many runs are kept: months of daily work, in a folder that is listed
	// in a millisecond.
	kept = 500

	// large is the size of a record from which on, in bytes, it counts against mostLarge:
	// that of a build of tens of thousands of actions.
	large = 1 << 20

	// mostLarge is how many large records are kept, about 100 MiB of them.
	mostLarge = 32
)

// A Shelf keeps small files by name, as a *cache.Dir does.
type Shelf interface {
	Keep(s cache.Shelf, name string, b []byte) error
	Kept(s cache.Shelf, name string) ([]byte, error)
	KeptNames(s cache.Shelf) ([]string, error)
	Discard(s cache.Shelf, name string) error
}

// Save keeps a run under its id, and drops the oldest ones that are too many.
func Save(s Shelf, r *Run) error {
	b, err := Encode(r)
	if err != nil {
		return err
	}
	if err := s.Keep(cache.Runs, r.ID, b); err != nil {
		return fmt.Errorf("keep the record of the run: %w", err)
	}
	ids, err := s.KeptNames(cache.Runs)
	if err != nil {
		return err
	}
	drop := ids[:max(0, len(ids)-kept)]
	if len(b) >= large {
		drop = append(slices.Clone(drop), oldLarge(s, ids[len(drop):])...)
	}
	var errs []error
	for _, id := range drop {
		errs = append(errs, s.Discard(cache.Runs, id))
	}
	return errors.Join(errs...)
}

// oldLarge returns the large ones of ids that are too many.
func oldLarge(s Shelf, ids []string) (drop []string) {
	n := 0
	for _, id := range slices.Backward(ids) {
		b, err := s.Kept(cache.Runs, id)
		if err != nil || len(b) < large {
			continue
		}
		if n++; n > mostLarge {
			drop = append(drop, id)
		}
	}
	return drop
}

// Load returns the run with an id. The error is a cache.ErrMiss if there is none.
func Load(s Shelf, id string) (*Run, error) {
	b, err := s.Kept(cache.Runs, id)
	if err != nil {
		return nil, err
	}
	r, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return r, nil
}

// LoadHead is Load of what a run was, without its actions.
func LoadHead(s Shelf, id string) (Head, error) {
	b, err := s.Kept(cache.Runs, id)
	if err != nil {
		return Head{}, err
	}
	head, err := DecodeHead(b)
	if err != nil {
		return Head{}, fmt.Errorf("run %s: %w", id, err)
	}
	return head, nil
}

// List returns the ids of all runs that are kept, the latest first.
func List(s Shelf) ([]string, error) {
	ids, err := s.KeptNames(cache.Runs)
	slices.Reverse(ids)
	return ids, err
}

// A NotFoundError says that no run, or more than one, is called by a word.
type NotFoundError struct {
	Word string
	Many int // runs that are called so; 0: none
	Kept int // runs that are kept
}

// Error implements error.
func (e *NotFoundError) Error() string {
	switch {
	case e.Many > 0:
		return fmt.Sprintf("%d runs are called %q", e.Many, e.Word)
	case e.Kept == 0:
		return "the cache has no record of a run"
	default:
		return fmt.Sprintf("no run of the %d that are kept is called %q", e.Kept, e.Word)
	}
}

// Find returns the id of the run that a word of the user's means: an id, the beginning
// of one or of its last part, "last", or "last-2" for the second before the last.
// The error is a *NotFoundError if there is none.
func Find(s Shelf, word string) (string, error) {
	ids, err := List(s)
	if err != nil {
		return "", err
	}
	if n, ok := ago(word); ok {
		if n >= len(ids) {
			return "", &NotFoundError{Word: word, Kept: len(ids)}
		}
		return ids[n], nil
	}
	var found []string
	for _, id := range ids {
		if id == word {
			return id, nil
		}
		if word != "" && (strings.HasPrefix(id, word) || strings.HasPrefix(Short(id), word)) {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		return "", &NotFoundError{Word: word, Many: len(found), Kept: len(ids)}
	}
	return found[0], nil
}

// ago reads "last" and "last-N".
func ago(word string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(word, "last")
	if !ok || rest == "" {
		return 0, ok
	}
	n, err := strconv.Atoi(rest)
	return -n, err == nil && n < 0
}

// Short returns the last part of an id, which is what people call a run by.
func Short(id string) string { return id[strings.LastIndexByte(id, '-')+1:] }
