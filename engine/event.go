package engine

import (
	"time"

	"bonsai/cache"
)

// An Event is something that a build reports. The types that implement it are those
// of this file, and no others.
//
// Every Started is followed by one Finished, Failed or Retried of the same action. An
// action that is a hit has only a Finished. Time is that of Options.Now, zero without it.
type Event interface{ event() }

// Planned reports what a build looks at, before it looks: most of it may be a hit.
type Planned struct {
	Actions int // actions that the wanted artifacts are made by, directly or not
	Sources int // files of the user's that they read
}

// Hashing reports that a source is read to find its digest, and then, with Done, that
// its digest is known.
type Hashing struct {
	Path string
	Size int64 // bytes; 0 until Done
	Done bool
}

// Started reports that an action runs.
type Started struct {
	Step, Name string
	Key        cache.Key
	Reasons    []Reason // why it is not a hit
	Estimate   float64  // seconds it is expected to take; 0 if unknown
	Pool       string   // that it runs in; "" for none
	Try        int      // 1 for the first
	Time       time.Time
}

// Progress reports how far an action is.
type Progress struct {
	Step, Name string
	Key        cache.Key
	Done       float64 // in [0, 1]
	Note       string  // what the op says, such as "loss 2.31"
}

// Waiting reports that another process runs the action, or is about to.
type Waiting struct {
	Step, Name string
	Key        cache.Key
	Holder     string // who, such as "process 4711 on host since 12:04"
	Time       time.Time
}

// Finished reports that an action's outputs are in the cache.
type Finished struct {
	Step, Name string
	Key        cache.Key
	Hit        bool // the outputs were there already
	Result     cache.Result
	Time       time.Time
}

// Failed reports that an action did not finish. Err wraps context.Canceled if it was
// interrupted.
type Failed struct {
	Step, Name string
	Key        cache.Key
	Err        error
	Time       time.Time
}

// Retried reports that a run of an action failed for a reason that may pass, and that it
// is tried again after a while. It holds nothing until then.
type Retried struct {
	Step, Name string
	Key        cache.Key
	Err        error
	Wait       time.Duration // until the next try
	Time       time.Time
}

// Skipped reports, at the end of a build that failed or was interrupted, that an action did
// not run, or was not looked at, which had to.
type Skipped struct {
	Step, Name string
	Key        cache.Key // zero if it has none yet
	Because    string    // the action, or the file, that failed before it; "" if the build had ended before
	Time       time.Time
}

// Warned reports something that costs work or comfort, and does not fail the build.
type Warned struct {
	Step, Name string
	Key        cache.Key
	Err        error
}

func (Planned) event()  {}
func (Hashing) event()  {}
func (Started) event()  {}
func (Progress) event() {}
func (Waiting) event()  {}
func (Finished) event() {}
func (Failed) event()   {}
func (Retried) event()  {}
func (Skipped) event()  {}
func (Warned) event()   {}
