package record

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

const (
	// slowRead is how long a source must take to be in a record: to look at one that was
	// hashed before takes microseconds, and there may be a hundred thousand.
	slowRead = 10 * time.Millisecond

	// mostReads and mostWarnings bound what a record holds of either.
	mostReads, mostWarnings = 1000, 100

	// mostSamples is how many samples of memory a record holds: more than a screen has
	// columns. When there are more, every other one is dropped and they come half as often.
	mostSamples = 2048

	// firstPace is how far apart the first samples are.
	firstPace = 50 * time.Millisecond
)

// A Recorder listens to a build and makes a Run of it. It is used by one goroutine at a
// time, as events are.
type Recorder struct {
	now    func() time.Time
	memory func() int64
	run    Run

	open    map[cache.Key]int // index in run.Actions of what runs
	lanes   []bool            // taken
	waiting map[string]Wait   // by action
	reading map[string]time.Duration
	pace    time.Duration // between samples
}

// NewRecorder returns the recorder of a build that begins now. What is known of it
// beforehand is in head: Command, Words, Recipe, Targets, Version and Backend. memory
// says how many bytes the process holds; nil leaves that out.
func NewRecorder(now func() time.Time, head Head, memory func() int64) *Recorder {
	began := now().Round(0) // what is written down has no monotonic clock
	head.ID = newID(began)
	head.Began = began
	return &Recorder{
		now: now, memory: memory, run: Run{Head: head}, open: map[cache.Key]int{},
		waiting: map[string]Wait{}, reading: map[string]time.Duration{}, pace: firstPace,
	}
}

// newID returns a name that sorts by time, and that no other run has.
func newID(t time.Time) string {
	return t.UTC().Format("20060102-150405.000") + "-" + strings.ToLower(rand.Text()[:6])
}

// ID returns the id that the run will have.
func (r *Recorder) ID() string { return r.run.ID }

// since returns the time of an event since the run began; a zero time is now.
func (r *Recorder) since(t time.Time) time.Duration {
	if t.IsZero() {
		t = r.now()
	}
	return max(0, t.Round(0).Sub(r.run.Began))
}

// Event takes an event of the build.
func (r *Recorder) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.Planned:
		r.run.Sources = e.Sources
	case engine.Hashing:
		r.hashing(e)
	case engine.Started:
		r.started(e)
	case engine.Waiting:
		r.waits(e)
	case engine.Finished:
		r.finished(e)
	case engine.Failed:
		r.failed(e)
	case engine.Retried:
		if a := r.end(e.Key, Retried, e.Time); a != nil {
			a.Error = e.Err.Error()
		}
	case engine.Warned:
		if len(r.run.Warnings) < mostWarnings {
			w := Warning{Step: e.Step, Name: e.Name, Text: e.Err.Error(), At: r.since(time.Time{})}
			r.run.Warnings = append(r.run.Warnings, w)
		}
	case engine.Progress:
		r.sample()
	}
}

func (r *Recorder) hashing(e engine.Hashing) {
	if !e.Done {
		r.reading[e.Path] = r.since(time.Time{})
		return
	}
	read := Read{Path: e.Path, Size: e.Size, From: r.reading[e.Path], To: r.since(time.Time{})}
	delete(r.reading, e.Path)
	if read.To-read.From >= slowRead && len(r.run.Reads) < mostReads {
		r.run.Reads = append(r.run.Reads, read)
	}
}

func (r *Recorder) started(e engine.Started) {
	a := Action{
		Step: e.Step, Name: e.Name, Key: e.Key, Outcome: Interrupted,
		Reasons: Reasons(e.Reasons), From: r.since(e.Time), Estimate: e.Estimate, Pool: e.Pool, Lane: r.takeLane(),
	}
	r.endWait(&a, a.From)
	r.open[e.Key] = len(r.run.Actions)
	r.run.Actions = append(r.run.Actions, a)
	r.sample()
}

// takeLane returns the first lane that is free, and takes it.
func (r *Recorder) takeLane() int {
	for i, taken := range r.lanes {
		if !taken {
			r.lanes[i] = true
			return i
		}
	}
	r.lanes = append(r.lanes, true)
	return len(r.lanes) - 1
}

func (r *Recorder) waits(e engine.Waiting) {
	name := engine.Action{Step: e.Step, Name: e.Name}.String()
	if _, already := r.waiting[name]; !already {
		r.waiting[name] = Wait{Holder: e.Holder, From: r.since(e.Time)}
	}
}

// endWait adds to an action the wait that ends at a time, if there was one.
func (r *Recorder) endWait(a *Action, at time.Duration) {
	w, ok := r.waiting[a.String()]
	if !ok {
		return
	}
	delete(r.waiting, a.String())
	w.To = max(at, w.From)
	a.Waits = append(a.Waits, w)
}

func (r *Recorder) finished(e engine.Finished) {
	if e.Hit {
		r.run.Head.Hits++
		r.run.Saved += e.Result.Duration.Seconds()
		r.run.Hits = append(r.run.Hits, Hit{e.Step, e.Name, e.Key})
		a := Action{Step: e.Step, Name: e.Name}
		r.endWait(&a, r.since(e.Time))
		for _, w := range a.Waits {
			r.run.Waits = append(r.run.Waits, HitWait{e.Step, e.Name, w})
		}
		return
	}
	a := r.end(e.Key, Built, e.Time)
	if a == nil {
		return
	}
	a.Peak, a.Note = e.Result.PeakMemory, e.Result.Note
	for _, o := range e.Result.Outputs {
		a.Bytes += o.Size
	}
	r.run.Ran++
	r.run.Written += a.Bytes
	r.run.Busy += a.Took().Seconds()
}

func (r *Recorder) failed(e engine.Failed) {
	outcome := Failed
	if errors.Is(e.Err, context.Canceled) {
		outcome = Interrupted
	}
	a := r.end(e.Key, outcome, e.Time)
	if a == nil { // it could not start
		at := r.since(e.Time)
		r.run.Actions = append(r.run.Actions, Action{Step: e.Step, Name: e.Name, Key: e.Key, Outcome: outcome, From: at, To: at})
		a = &r.run.Actions[len(r.run.Actions)-1]
	}
	a.Error = e.Err.Error()
	if outcome == Failed {
		r.run.Failed++
	}
}

// end closes the action that runs under a key; nil if there is none.
func (r *Recorder) end(k cache.Key, how Outcome, at time.Time) *Action {
	i, ok := r.open[k]
	if !ok {
		return nil
	}
	delete(r.open, k)
	a := &r.run.Actions[i]
	a.Outcome, a.To = how, max(a.From, r.since(at))
	r.lanes[a.Lane] = false
	r.sample()
	return a
}

// sample looks at the memory, if the last time is long enough ago.
func (r *Recorder) sample() {
	if r.memory == nil {
		return
	}
	at := r.since(time.Time{})
	if n := len(r.run.Memory); n > 0 && at-r.run.Memory[n-1].At < r.pace {
		return
	}
	if len(r.run.Memory) == mostSamples {
		for i := range mostSamples / 2 {
			r.run.Memory[i] = r.run.Memory[2*i]
		}
		r.run.Memory = r.run.Memory[:mostSamples/2]
		r.pace *= 2
	}
	r.run.Memory = append(r.run.Memory, Sample{at, r.memory()})
}

// Finish ends the record of a build of g that ended with err.
func (r *Recorder) Finish(g *engine.Graph, err error) *Run {
	run := &r.run
	run.Ended = r.now().Round(0)
	switch {
	case err == nil:
		run.Outcome = Built
	case errors.Is(err, context.Canceled):
		run.Outcome, run.Error = Interrupted, err.Error()
	default:
		run.Outcome, run.Error = Failed, err.Error()
	}
	for k := range r.open {
		r.end(k, Interrupted, run.Ended)
	}
	if g != nil && len(run.Actions) > 0 {
		relate(run, g)
	}
	return run
}

// ReasonKinds returns how the kinds of reasons are spelled.
func ReasonKinds() map[engine.ReasonKind]string {
	return map[engine.ReasonKind]string{
		engine.NoResult: "no_result", engine.Evicted: "evicted", engine.Setting: "setting", engine.Input: "input",
		engine.Missing: "missing", engine.Needed: "needed", engine.Follows: "follows",
	}
}

// Reasons returns reasons with their kinds spelled out.
func Reasons(list []engine.Reason) (out []Reason) {
	kinds := ReasonKinds()
	for _, r := range list {
		out = append(out, Reason{Kind: kinds[r.Kind], Name: r.Name, Old: r.Old, New: r.New, Text: r.String()})
	}
	return out
}
