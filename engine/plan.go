package engine

import (
	"context"
	"slices"
	"strings"
	"time"

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

// An Entry is what a plan says of one action.
type Entry struct {
	Step, Name string
	Status     Status
	Reasons    []Reason // why it is not a hit
	Cause      bool     // it is not a hit for a reason of its own: it does not only follow others
	Root       int      // index in Plan.Entries of the cause that it follows, itself if it is one; -1 of a hit

	Key      cache.Key    // zero as long as an input has no name
	Manifest string       // text whose hash is the key; "" as long as there is no key
	Result   cache.Result // of a hit

	Pool    string
	Size    int64   // bytes of the outputs: those stored, or the estimate
	Peak    int64   // bytes of memory
	Seconds float64 // what the last run took, or the estimate; of a hit, what it saves

	Critical bool      // on the longest chain: Plan.Critical
	Dropped  int64     // transient bytes that nothing needs after it, and that go then
	Evicted  time.Time // when a gc dropped its bytes; zero if it did not
}

// A Plan is what a build would do. Actions whose outputs are transient are in it only
// if something needs their bytes.
type Plan struct {
	Entries []Entry  // each after those it depends on
	Sources []Source // files of the user's that it was made with, by path
}

// A Source is a file of the user's as a plan found it.
type Source struct {
	Path string
	cache.Output
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

// MakePlan says what Build would do with the same arguments. It runs nothing and
// writes nothing. It returns all errors of sources, joined.
//
// It walks the graph as Build does, by the same decisions, and leaves out the runs. So
// an action of status Hit does not run, unless its stored bytes go away after the plan
// was made; one of status Run runs, unless another action with the same key runs
// first.
func MakePlan(ctx context.Context, g *Graph, want []*Artifact, opt Options) (*Plan, error) {
	opt.KeepGoing = true
	b := newBuild(ctx, g, want, opt)
	b.dry = true
	defer b.end()
	b.loop()
	if err := b.failure(false); err != nil {
		return nil, err
	}
	status := b.guess()
	b.recall(status)
	b.drain()
	if err := b.failure(false); err != nil {
		return nil, err
	}
	return b.plan(status), nil
}

// unlisted is the status of an action that is not in a plan.
const unlisted Status = 255

// guess gives every action its status after a dry walk. Those without a key may run,
// and then read bytes, whose makers may have to run too: from the last action to the
// first.
func (b *build) guess() []Status {
	status := make([]Status, len(b.actions))
	asked := make([]int, len(b.artifacts)) // 1 + an action that may run and reads it
	for id := range slices.Backward(b.actions) {
		status[id] = b.guessOne(id, asked)
		if status[id] != Maybe {
			continue
		}
		for _, in := range b.graph.actions[id].In {
			asked[in.id] = id + 1
		}
	}
	return status
}

func (b *build) guessOne(id int, asked []int) Status {
	r := &b.actions[id]
	first, end := b.graph.made(id)
	needed := slices.Max(asked[first:end]) > 0
	if r.state == keyed && needed {
		b.peek(id)
	}
	switch {
	case r.state.mustRun():
		return Run
	case r.state == naming && (r.digests || needed):
		return Maybe
	case r.state == done:
		if r.reasons = b.missing(id, asked); len(r.reasons) > 0 {
			return Maybe
		}
		return Hit
	case r.state == keyed && needed:
		return Maybe
	default:
		return unlisted
	}
}

// peek looks up an action that has only a key so far.
func (b *build) peek(id int) {
	r := &b.actions[id]
	q := query{action: &b.graph.actions[id], opt: &b.opt, dry: true, key: r.key, text: r.manifest, look: true}
	f := q.answer()
	r.reasons, r.earlier = f.reasons, f.earlier
	if f.hit {
		r.hit, r.result, r.earlier = yes, f.result, estimateOf(f.result)
		b.set(id, done)
	}
}

// missing says which bytes that are asked for are not in the store.
func (b *build) missing(id int, asked []int) (reasons []Reason) {
	q := query{opt: &b.opt}
	first, _ := b.graph.made(id)
	for i, out := range b.actions[id].result.Outputs {
		a := b.graph.artifacts[first+i]
		if asked[a.id] == 0 || b.artifacts[a.id].there == yes || q.present(out) {
			continue
		}
		reason := Reason{Kind: Missing, Name: a.String()}
		if at := b.actions[id].result.Evicted; !at.IsZero() {
			reason = b.dropped(at, a)
		}
		if a.Output().Transient {
			reason = Reason{Kind: Needed, Name: b.graph.actions[asked[a.id]-1].String()}
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// recall asks workers what settings changed in the actions that have no key yet, and
// what their last run took.
func (b *build) recall(status []Status) {
	for id := range b.actions {
		r := &b.actions[id]
		if status[id] != Maybe || r.keyed {
			continue
		}
		q := query{action: &b.graph.actions[id], opt: &b.opt}
		b.asks.queue = append(b.asks.queue, func() func() {
			reasons, earlier := q.settings()
			return func() {
				r.reasons, r.earlier = reasons, earlier
				b.learn(id, seconds(earlier.seconds))
			}
		})
	}
}

// plan makes the entries.
func (b *build) plan(status []Status) *Plan {
	p := &Plan{}
	place, cause := make([]int, len(b.actions)), make([]bool, len(b.actions))
	for id := range b.actions {
		place[id] = none
		if status[id] != unlisted {
			place[id] = len(p.Entries)
			p.Entries = append(p.Entries, b.entry(id, status))
			cause[id] = p.Entries[place[id]].Cause
		}
	}
	for id, root := range b.roots(status, cause) {
		if place[id] == none {
			continue
		}
		p.Entries[place[id]].Root = none
		if root != none {
			p.Entries[place[id]].Root = place[root]
		}
	}
	b.forecast(p, place)
	p.Sources = b.sources()
	return p
}

// sources returns the files that are read, by path.
func (b *build) sources() (list []Source) {
	for path, a := range b.graph.sources {
		if h := &b.artifacts[a.id]; h.reached {
			list = append(list, Source{path, h.bytes})
		}
	}
	slices.SortFunc(list, func(x, y Source) int { return strings.Compare(x.Path, y.Path) })
	return list
}

func (b *build) entry(id int, status []Status) Entry {
	r, action := &b.actions[id], &b.graph.actions[id]
	e := Entry{
		Step: action.Step, Name: action.Name, Status: status[id],
		Key: r.key, Manifest: r.manifest, Pool: action.Pool, Peak: action.Peak, Seconds: b.seconds(id),
	}
	if e.Status == Hit {
		e.Result = r.result
		e.Seconds = r.result.Duration.Seconds()
		for _, out := range r.result.Outputs {
			e.Size += out.Size
		}
		return e
	}
	for i := range action.Outputs {
		e.Size += b.outputSize(id, i)
	}
	e.Reasons, e.Cause = b.causes(id, status)
	if slices.ContainsFunc(e.Reasons, func(r Reason) bool { return r.Kind == Evicted }) {
		e.Evicted = r.earlier.evicted
	}
	return e
}

// causes returns why an action is not a hit, and whether a reason is its own: not only
// that something before it runs.
func (b *build) causes(id int, status []Status) (reasons []Reason, own bool) {
	var first string                  // of the actions before it that are not hits
	followed := make(map[string]bool) // inputs that such actions make
	for _, in := range b.graph.actions[id].In {
		if in.maker < 0 || status[in.maker] != Run && status[in.maker] != Maybe || b.onlyNeeded(in.maker) {
			continue
		}
		if first == "" {
			first = b.graph.actions[in.maker].String()
		}
		followed[in.String()] = true
	}
	reasons = b.actions[id].reasons
	if !b.actions[id].keyed && first != "" {
		reasons = append(slices.Clone(reasons), Reason{Kind: Follows, Name: first})
	}
	own = slices.ContainsFunc(reasons, func(r Reason) bool {
		switch r.Kind {
		case NoResult:
			return first == ""
		case Input:
			return !followed[r.Name]
		case Needed, Follows:
			return false
		default:
			return true
		}
	})
	return reasons, own
}

// onlyNeeded reports whether an action runs because something after it does.
func (b *build) onlyNeeded(id int) bool {
	reasons := b.actions[id].reasons
	return len(reasons) > 0 && !slices.ContainsFunc(reasons, func(r Reason) bool { return r.Kind != Needed })
}
