package record

import (
	"errors"
	"fmt"
	"slices"

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
