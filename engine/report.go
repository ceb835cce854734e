package engine

import (
	"math"
	"sync"
)

// progressStep is the least change of Progress.Done that is worth an event.
const progressStep = 0.001

// A reporter takes the reports of one run. However often an op reports, the loop has
// at most one to look at.
type reporter struct {
	id int
	to chan<- *reporter

	log *transcript

	mu      sync.Mutex
	closed  bool
	waiting bool // the loop has not looked yet
	done    float64
	note    string
	shown   struct {
		done float64
		note string
	}
	last string // the note that is kept with the result
}

// report is what an op is given to report with.
func (r *reporter) report(done float64, note string) {
	if r.keep(done, cleanNote(note)) {
		r.to <- r
	}
}

// keep takes over a report, and says whether the loop must be told.
func (r *reporter) keep(done float64, note string) (tell bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || math.IsNaN(done) {
		return false
	}
	r.done, r.note = min(max(done, 0), 1), note
	if r.done == 1 {
		r.last = note
	}
	r.log.report(r.done, note)
	if r.waiting || r.note == r.shown.note && math.Abs(r.done-r.shown.done) < progressStep {
		return false
	}
	r.waiting = true
	return true
}

// take returns what is to be shown; ok is false once the run has ended.
func (r *reporter) take() (done float64, note string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = false
	r.shown.done, r.shown.note = r.done, r.note
	return r.done, r.note, !r.closed
}

func (r *reporter) lastNote() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// close ends the reports: an op that goes on reporting after Run is not heard.
func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// progress emits what an action last reported.
func (b *build) progress(r *reporter) {
	done, note, ok := r.take()
	if !ok || b.actions[r.id].state != running {
		return
	}
	step, name := b.who(r.id)
	b.opt.Emit(Progress{Step: step, Name: name, Key: b.actions[r.id].key, Done: done, Note: note})
}
