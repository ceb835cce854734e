package engine

import "bonsai/cache"

// A state says how far a build is with one action. An action climbs this ladder and
// steps back only when bytes that were there are gone, or an input's name changes.
type state uint8

const (
	idle    state = iota // nothing that is wanted depends on it
	naming               // an input has no name yet, so there is no key
	asking               // a worker finds its key, its result, or whether bytes are there
	keyed                // has a key, and nothing needs more of it
	missed               // must run; an input's bytes are not there yet
	ready                // must run; waits for a worker, its pool and memory
	twinned              // must run; another action with the same key is at it
	locking              // must run; asks whether another process is at it
	pausing              // must run; a try failed, and the next is in a while
	running              // a worker runs its op
	done                 // its result is known, and so are the bytes that anyone needs
	failed               // its op failed
)

// mustRun reports whether an action in state s needs the bytes of its inputs.
func (s state) mustRun() bool { return missed <= s && s <= running }

// An answer is what asking the store came to.
type answer uint8

const (
	unknown answer = iota
	no
	yes
)

// A record is what a build knows of one action. Its state changes in build.set alone.
type record struct {
	state state

	digests bool // an ordinary output is named by its digest, so the result is needed
	unnamed int  // inputs without a name
	absent  int  // inputs, not sources, whose bytes are not known to be there

	keyed    bool // key and manifest are set
	stale    bool // an input got another name since the key was made
	key      cache.Key
	manifest string

	hit    answer // whether result is known
	result cache.Result
	runs   int // runs that ended well in this build
	losses int // times that it found an input gone
	tries  int // tries that failed for a reason that may pass

	reasons  []Reason // why it must run
	earlier  estimate // of its last run, in any build
	reported bool     // Finished was emitted
	settled  bool     // it needs its inputs no more, whatever happens
	slot     bool     // holds a worker, a place in its pool, and memory
	deaf     bool     // its op was given up and still runs
	logged   bool     // the log of its last run is kept
	log      *transcript
	shared   bool   // its lock cannot be had: another process may run it too
	unlock   func() // gives the lock back, if it holds one
}

// A holding is what a build knows of one artifact.
type holding struct {
	reached bool // something that is wanted depends on it
	wanted  bool // it was asked for: its bytes must be there in the end

	named bool
	name  name         // valid if named
	bytes cache.Output // digest and size, once known

	there   answer // whether its bytes are in the store; of a source, yes
	readers int    // actions that must run and read it
	open    int    // actions that are not settled and read it, and one more if it is wanted
	held    bool   // counted in build.holders
}

// set moves an action to state s. Nothing else changes a state, so that the number of
// readers of an artifact is always true.
func (b *build) set(id int, s state) {
	r := &b.actions[id]
	was := r.state
	r.state = s
	switch {
	case s.mustRun() && !was.mustRun():
		for _, in := range b.graph.actions[id].In {
			b.artifacts[in.id].readers++
		}
	case was.mustRun() && !s.mustRun():
		for _, in := range b.graph.actions[id].In {
			b.artifacts[in.id].readers--
			b.drop(in)
		}
	}
	b.settle(id)
}

// setName gives an artifact its name, or another one. An action whose last input gets
// a name is decided on; one that used the old name for its key is outdated.
func (b *build) setName(a int, n name) {
	h := &b.artifacts[a]
	if h.named && h.name == n {
		return
	}
	first := !h.named
	h.named, h.name = true, n
	for _, reader := range b.readers(a) {
		if !first {
			b.outdate(reader)
			continue
		}
		r := &b.actions[reader]
		if r.unnamed--; r.unnamed == 0 {
			b.decide(reader)
		}
	}
}

// outdate makes an action that used an old name for its key find its key again. What it
// read in a run of this build had the old name, so that one stays as it is.
func (b *build) outdate(id int) {
	r := &b.actions[id]
	if r.state == naming {
		return
	}
	r.stale = true
	switch {
	case r.state == done && r.runs == 0:
		r.hit = unknown
		b.decide(id)
	case r.state == keyed, r.state == missed, r.state == ready, r.state == twinned:
		b.release(id)
		b.decide(id)
	default: // it is seen when the action is decided on next
	}
}

// setThere says whether the bytes of an artifact are in the store. An action that
// must run and has all its inputs now is ready; one that lost an input is not.
func (b *build) setThere(a int, there answer) {
	h := &b.artifacts[a]
	was := h.there == yes
	h.there = there
	if there == yes {
		b.hold(a)
	}
	if was == (there == yes) {
		return
	}
	for _, reader := range b.readers(a) {
		r := &b.actions[reader]
		if was {
			r.absent++
		} else {
			r.absent--
		}
		switch {
		case r.state == ready && r.absent > 0:
			b.set(reader, missed)
		case r.state == missed && r.absent == 0:
			b.enqueue(reader)
		}
	}
	if !was {
		b.settle(b.graph.artifacts[a].maker)
	}
}
