package engine

import (
	"context"
	"errors"

	"bonsai/cache"
)

// A Status is what a plan says of an action.
type Status uint8

// What a plan says of an action.
const (
	Hit   Status = iota // its outputs are in the cache
	Run                 // it will run
	Maybe               // it follows one that will run, and runs if that gives other bytes
)

// String returns the status in lower case.
func (s Status) String() string { return [...]string{"hit", "run", "maybe"}[s] }

// MakePlan says what Build would do.
func MakePlan(ctx context.Context, g *Graph, want []*Artifact, opt Options) (*Plan, error) {
	return nil, errors.New("not yet")
}

// An Entry is what a plan says of one action.
type Entry struct {
	Step, Name string
	Status     Status
	Reasons    []Reason // why it is not a hit
	Cause      bool     // it is not a hit for a reason of its own: it does not only follow others

	Key      cache.Key    // zero as long as an input has no name
	Manifest string       // text whose hash is the key; "" as long as there is no key
	Result   cache.Result // of a hit

	Pool    string
	Size    int64   // bytes of the outputs: those stored, or the estimate
	Peak    int64   // bytes of memory
	Seconds float64 // what the last run took, or the estimate; of a hit, what it saves
}

// A Plan is what a build would do. Actions whose outputs are transient are in it only
// if something needs their bytes.
type Plan struct {
	Entries []Entry // each after those it depends on
}

// Totals add up the entries of one status.
type Totals struct {
	Actions int
	Bytes   int64   // of the outputs
	Peak    int64   // largest of any action
	Seconds float64 // one action after the other
}

// Total adds up the entries with status s.
func (p *Plan) Total(s Status) Totals {
	var t Totals
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Status == s {
			t.Actions++
			t.Bytes += e.Size
			t.Peak = max(t.Peak, e.Peak)
			t.Seconds += e.Seconds
		}
	}
	return t
}

// Fits returns a *MemoryError for the first action that runs, or may run, and needs
// more than budget bytes of memory. A budget of 0 fits all.
func (p *Plan) Fits(budget int64) error {
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Status != Hit && budget > 0 && e.Peak > budget {
			return &MemoryError{Step: e.Step, Name: e.Name, Peak: e.Peak, Budget: budget}
		}
	}
	return nil
}
