package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"bonsai/cache"
)

// maxLosses is how often an action tries again because an input that was in the store
// is gone when it is opened. Twice can be other builds that clean up after themselves;
// after that the store does not keep what it is given.
const maxLosses = 2

// asksAtOnce is how many workers ask the store at once. They wait for a disk or a
// server rather than compute, so it does not depend on the number of CPUs.
const asksAtOnce = 16

// Build brings want up to date and returns their digests and sizes, in order. Their
// bytes are then in opt.Store.
//
// What is finished when it fails or ctx is done stays recorded, so that a later Build
// goes on from there. The error joins *ActionError, *SourceError and *MemoryError
// values, and wraps ctx.Err() if the build was interrupted. A build that does not fit
// opt.Memory is refused before anything runs.
func Build(ctx context.Context, g *Graph, want []*Artifact, opt Options) ([]cache.Output, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if err := refuse(ctx, g, want, opt); err != nil {
		return nil, err
	}
	b := newBuild(ctx, g, want, opt)
	defer close(b.over)
	defer b.end()
	b.opt.Emit(b.reached())
	b.loop()
	outs, err := b.outcome(want)
	if err == nil && opt.Current != nil {
		if c, ok := b.current(outs); ok {
			opt.Current(c)
		}
	}
	return outs, err
}

// refuse returns a *MemoryError if an action that may run does not fit the budget.
func refuse(ctx context.Context, g *Graph, want []*Artifact, opt Options) error {
	tooBig := func(a Action) bool { return opt.Memory > 0 && a.Peak > opt.Memory }
	if !slices.ContainsFunc(g.actions, tooBig) {
		return nil
	}
	opt.Emit = nil
	p, err := MakePlan(ctx, g, want, opt)
	if err != nil {
		return err
	}
	return p.Fits(opt.Memory)
}

// A build is one call of Build or MakePlan. Its loop owns all of it: workers get
// copies of what they need and give back a function that the loop calls.
type build struct {
	ctx   context.Context // of ops: done when the build is interrupted
	short context.Context // of all that can be asked again: done as soon as the build stops
	quit  context.CancelFunc
	over  chan struct{} // closed when nobody reads replies any more
	opt   Options
	graph *Graph
	dry   bool // plan only: nothing runs, nothing is written

	actions   []record
	artifacts []holding
	edges     edges

	hashes, asks lane
	replies      chan reply
	reports      chan *reporter
	inFlight     int

	slots   slots
	busy    map[cache.Key]int   // which action is locking or running under a key
	twins   map[cache.Key][]int // the others with that key
	holders map[cache.Digest]int
	doubted map[cache.Digest]bool // blobs that were dropped, or found gone
	starts  atomic.Int64          // runs that ever started
	active  int                   // runs now

	stopping bool
	warned   map[string]bool // what is said once
	paces    map[reflect.Type]pace
	unread   map[int]bool // sources that could not be read, by id
	errs     []error
}

// A reply is what a worker gives back.
type reply struct {
	from  *lane
	more  bool // the worker goes on
	apply func()
}

// A lane is work for a limited number of workers.
// They stay for the next work: a new one would have to grow its stack each time.
type lane struct {
	limit, busy int
	queue       []func() (apply func())
	hired       int
	work        chan func() (apply func())
}

func newLane(limit int) lane { return lane{limit: limit, work: make(chan func() func(), limit)} }

func newBuild(ctx context.Context, g *Graph, want []*Artifact, opt Options) *build {
	opt = opt.withDefaults()
	short, quit := context.WithCancel(ctx)
	b := &build{
		ctx: ctx, short: short, quit: quit, over: make(chan struct{}), opt: opt, graph: g,
		actions:   make([]record, len(g.actions)),
		artifacts: make([]holding, len(g.artifacts)),
		hashes:    newLane(opt.Workers),
		asks:      newLane(asksAtOnce),
		replies:   make(chan reply, asksAtOnce),
		reports:   make(chan *reporter, opt.Workers),
		slots:     newSlots(opt),
		busy:      make(map[cache.Key]int),
		twins:     make(map[cache.Key][]int),
		holders:   make(map[cache.Digest]int),
		doubted:   make(map[cache.Digest]bool),
		warned:    make(map[string]bool),
		unread:    make(map[int]bool),
		paces:     make(map[reflect.Type]pace),
	}
	b.reach(want)
	return b
}

// reach marks what want depends on, from the last action to the first, and how each
// artifact is named: by digest, unless it is transient.
func (b *build) reach(want []*Artifact) {
	for _, a := range want {
		if a.graph != b.graph {
			panic("engine: a wanted artifact is not of this graph")
		}
		b.artifacts[a.id].wanted = true
		b.artifacts[a.id].open = 1
		b.need(a, true)
	}
	for id, action := range slices.Backward(b.graph.actions) {
		if b.actions[id].state == idle {
			continue
		}
		b.actions[id].unnamed = len(action.In)
		for _, in := range action.In {
			b.artifacts[in.id].open++
			b.need(in, !in.Output().Transient)
			if in.maker >= 0 {
				b.actions[id].absent++
			}
		}
	}
	b.edges = b.graph.edges(func(id int) bool { return b.actions[id].state != idle })
}

func (b *build) need(a *Artifact, digest bool) {
	b.artifacts[a.id].reached = true
	if a.maker < 0 {
		b.artifacts[a.id].there = yes
		return
	}
	b.actions[a.maker].state = naming
	b.actions[a.maker].digests = b.actions[a.maker].digests || digest
}

// reached counts what want depends on.
func (b *build) reached() Planned {
	var p Planned
	for i := range b.actions {
		if b.actions[i].state != idle {
			p.Actions++
		}
	}
	for _, a := range b.graph.sources {
		if b.artifacts[a.id].reached {
			p.Sources++
		}
	}
	return p
}

// loop decides until nothing is in flight and nothing can start.
func (b *build) loop() {
	b.begin()
	b.drain()
}

// begin hashes the sources and decides on the actions that read nothing.
func (b *build) begin() {
	for _, a := range b.graph.artifacts {
		if a.maker < 0 && b.artifacts[a.id].reached {
			b.hash(a)
		}
	}
	for id := range b.actions {
		if r := &b.actions[id]; r.state == naming && r.unnamed == 0 {
			b.decide(id)
		}
	}
}

func (b *build) drain() {
	interrupted := b.ctx.Done()
	for b.dispatch(); b.inFlight > 0; b.dispatch() {
		select {
		case m := <-b.replies:
			b.receive(m)
		case r := <-b.reports:
			b.progress(r)
		case <-interrupted:
			interrupted = nil
			b.stop()
		}
	}
}

func (b *build) receive(m reply) {
	if !m.more {
		b.inFlight--
	}
	if m.from != nil {
		m.from.busy--
	}
	m.apply()
}

// dispatch starts what can start.
func (b *build) dispatch() {
	for _, l := range []*lane{&b.hashes, &b.asks} {
		for !b.stopping && l.busy < l.limit && len(l.queue) > 0 {
			work := l.queue[0]
			l.queue = l.queue[1:]
			l.busy++
			b.hand(l, work)
		}
	}
	for !b.stopping && !b.dry {
		id, ok := b.slots.next(b)
		if !ok {
			return
		}
		b.start(id)
	}
}

// send lets a goroutine do work; the loop then calls what it returns.
func (b *build) send(work func() (apply func())) {
	b.inFlight++
	go func() { b.replies <- reply{apply: work()} }()
}

// hand gives work to a worker of a lane, which has one that is free or can hire one.
func (b *build) hand(l *lane, work func() (apply func())) {
	b.inFlight++
	if l.hired < l.busy {
		l.hired++
		go func() {
			for work := range l.work {
				b.replies <- reply{from: l, apply: work()}
			}
		}()
	}
	l.work <- work
}

// end lets all workers go. Nothing is in flight.
func (b *build) end() {
	b.quit()
	close(b.hashes.work)
	close(b.asks.work)
}

func (b *build) now() time.Time {
	if b.opt.Now == nil {
		return time.Time{}
	}
	return b.opt.Now()
}

// stop starts nothing any more. What runs goes on.
func (b *build) stop() {
	b.stopping = true
	b.quit()
}

// outcome returns what was built, once nothing is in flight.
func (b *build) outcome(want []*Artifact) ([]cache.Output, error) {
	outs := make([]cache.Output, len(want))
	complete := true
	for i, a := range want {
		h := &b.artifacts[a.id]
		outs[i] = h.bytes
		complete = complete && h.named && h.there == yes
	}
	if err := b.failure(complete); err != nil {
		b.sayNotRun()
		return nil, err
	}
	if !complete {
		panic("engine: nothing is left to do, and what is wanted is not there")
	}
	return outs, nil
}

// failure joins the errors of a build.
func (b *build) failure(complete bool) error {
	for i := range b.actions {
		b.release(i)
	}
	errs := b.errs
	if err := b.ctx.Err(); err != nil && !complete {
		errs = append(errs, fmt.Errorf("interrupted: %w", err))
	}
	return errors.Join(errs...)
}

// readers returns the actions that read an artifact, an action once for each time.
func (b *build) readers(a int) []int { return b.edges.of(a) }

// edges holds the readers of every artifact in one slice.
type edges struct {
	first   []int // where the readers of an artifact begin; one longer than the artifacts
	readers []int
}

func (e edges) of(a int) []int { return e.readers[e.first[a]:e.first[a+1]] }

// edges returns the readers of every artifact, of the actions that count.
func (g *Graph) edges(counts func(action int) bool) edges {
	e := edges{first: make([]int, len(g.artifacts)+1)}
	each := func(f func(action int, in *Artifact)) {
		for id := range g.actions {
			if !counts(id) {
				continue
			}
			for _, in := range g.actions[id].In {
				f(id, in)
			}
		}
	}
	each(func(_ int, in *Artifact) { e.first[in.id+1]++ })
	for i := range g.artifacts {
		e.first[i+1] += e.first[i]
	}
	e.readers = make([]int, e.first[len(g.artifacts)])
	next := slices.Clone(e.first)
	each(func(id int, in *Artifact) {
		e.readers[next[in.id]] = id
		next[in.id]++
	})
	return e
}

// check returns an error for options that no build can keep to.
func (o Options) check() error {
	for name, depth := range o.Pools {
		if depth < 1 {
			return fmt.Errorf("pool %q runs %d actions at once: it must be at least 1", name, depth)
		}
	}
	if o.Memory < 0 {
		return fmt.Errorf("memory budget of %d bytes", o.Memory)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Emit == nil {
		o.Emit = func(Event) {}
	}
	if o.Sources == nil {
		o.Sources = rehash{}
	}
	return o
}
