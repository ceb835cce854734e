// Package record keeps what a build did, to be asked later: why an action ran, how long
// it took, what a run saved.
//
// It knows events and results, and not how anything is drawn. Start at Recorder, which
// listens to a build and makes a Run; Save and Load keep it on a shelf of the cache.
package record

import (
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// An Outcome says how a run, or an action of it, ended.
type Outcome string

// How runs and actions end. An action that was up to date is a Hit and has no outcome.
const (
	Built       Outcome = "built"
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted"
	Retried     Outcome = "retried" // of an action alone: it failed, and was tried again
)

// A Head says what a run was and what came of it. It is read without the rest.
type Head struct {
	ID      string    `json:"id"`      // sorts by the time it began; unique
	Command string    `json:"command"` // such as build or eval
	Words   []string  `json:"words,omitempty"`
	Recipe  string    `json:"recipe"`            // what the cache's history knows the recipe by
	Targets []string  `json:"targets,omitempty"` // as they were asked for
	Version string    `json:"bonsai,omitempty"`  // of bonsai
	Backend string    `json:"backend,omitempty"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Outcome Outcome   `json:"outcome"`
	Error   string    `json:"error,omitempty"`

	Ran     int     `json:"ran"`  // actions that ran to their end
	Hits    int     `json:"hits"` // actions that were up to date
	Failed  int     `json:"failed,omitempty"`
	Sources int     `json:"sources"`         // files of the user's that were looked at
	Written int64   `json:"written_bytes"`   // outputs of the actions that ran
	Busy    float64 `json:"busy_s"`          // seconds of all actions that ran, one after the other
	Saved   float64 `json:"saved_s"`         // seconds that the hits took when they ran
	Quick   bool    `json:"quick,omitempty"` // nothing had changed, so no action was looked at
}

// Took returns how long the run was at it.
func (h *Head) Took() time.Duration { return max(0, h.Ended.Sub(h.Began)) }

// A Run is the record of one build.
type Run struct {
	Head
	Actions  []Action  // that ran, or began to, in the order they started: each try by itself
	Hits     []Hit     // that were up to date, in the order they were found
	Waits    []HitWait // for other processes, which made them hits
	Reads    []Read    // sources that took long to hash
	Warnings []Warning // in order
	Memory   []Sample  // of the process, in order of time

	// Critical holds the indexes in Actions of the chain that took longest: no number
	// of workers makes the run shorter than it.
	Critical []int
}

// An Action is one that a run started. Times are since Head.Began.
type Action struct {
	Step     string        `json:"step"`
	Name     string        `json:"action,omitempty"`
	Key      cache.Key     `json:"key"`
	Outcome  Outcome       `json:"outcome"`
	Error    string        `json:"error,omitempty"`
	Reasons  []Reason      `json:"reasons,omitempty"`
	Follows  int           `json:"follows,omitempty"` // 1 + index of an action that ran and that this one reads; 0: none
	From     time.Duration `json:"from_ns"`
	To       time.Duration `json:"to_ns"`
	Waits    []Wait        `json:"waits,omitempty"`
	Estimate float64       `json:"estimate_s,omitempty"` // seconds it was expected to take
	Pool     string        `json:"pool,omitempty"`
	Lane     int           `json:"lane"`                        // which of the actions that ran at once: from 0
	Peak     int64         `json:"peak_memory_bytes,omitempty"` // 0 if not measured
	Bytes    int64         `json:"bytes,omitempty"`             // of its outputs
	Note     string        `json:"note,omitempty"`              // what the op said at the end
}

// String returns the step and the name.
func (a *Action) String() string { return engine.Action{Step: a.Step, Name: a.Name}.String() }

// Took returns how long the action was at it.
func (a *Action) Took() time.Duration { return max(0, a.To-a.From) }

// A Reason is an engine.Reason with its kind spelled out.
type Reason struct {
	Kind string `json:"kind"` // as ReasonKinds
	Name string `json:"name,omitempty"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
	Text string `json:"text"`
}

// A Wait is a time in which another process was at the action.
type Wait struct {
	Holder string        `json:"holder"`
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
}

// A HitWait is a wait for another process that made the action a hit.
type HitWait struct {
	Step string `json:"step"`
	Name string `json:"action,omitempty"`
	Wait
}

// A Hit is an action that was up to date.
type Hit struct {
	Step, Name string
	Key        cache.Key
}

// A Read is a source that was hashed.
type Read struct {
	Path string        `json:"path"`
	Size int64         `json:"size"`
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
}

// A Warning is what the build warned of.
type Warning struct {
	Step string        `json:"step,omitempty"`
	Name string        `json:"action,omitempty"`
	Text string        `json:"text"`
	At   time.Duration `json:"at_ns"`
}

// A Sample is how much memory the process held.
type Sample struct {
	At    time.Duration `json:"at_ns"`
	Bytes int64         `json:"bytes"`
}
