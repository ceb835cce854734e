package record

import (
	"slices"
	"time"

	"bonsai/engine"
)

// A place finds the action of a graph in a run.
type place struct{ step, name string }

// relate fills in what a run does not hear of from events: which action an action
// followed, and which chain took longest.
func relate(run *Run, g *engine.Graph) {
	ran := make(map[place]int, len(run.Actions))
	for i := range run.Actions {
		ran[place{run.Actions[i].Step, run.Actions[i].Name}] = i
	}
	c := chains{end: map[place]time.Duration{}, before: map[place]place{}}
	for a := range g.Actions() {
		at := place{a.Step, a.Name}
		i, ok := ran[at]
		if ok {
			run.Actions[i].Follows = followed(&run.Actions[i], a, ran)
		}
		took := time.Duration(0)
		if ok {
			took = run.Actions[i].Took()
		}
		c.add(at, took, a.In)
	}
	run.Critical = c.longest(ran)
}

// followed returns 1 + the index of an action that ran and that a reads: one whose
// output was another than before, if the reasons name one.
func followed(recorded *Action, a engine.Action, ran map[place]int) int {
	first := 0
	for _, in := range a.In {
		maker, ok := in.Action()
		if !ok {
			continue
		}
		i, ok := ran[place{maker.Step, maker.Name}]
		if !ok {
			continue
		}
		if recorded.names(in.String()) {
			return i + 1
		}
		if first == 0 {
			first = i + 1
		}
	}
	if recorded.ownReason() {
		return 0
	}
	return first
}

// names reports whether a reason is that an input with this name changed.
func (a *Action) names(input string) bool {
	kinds := ReasonKinds()
	return slices.ContainsFunc(a.Reasons, func(r Reason) bool {
		return r.Name == input && (r.Kind == kinds[engine.Input] || r.Kind == kinds[engine.Follows])
	})
}

// ownReason reports whether an action had a reason of its own to run: not only that
// there was no result yet, or that an input changed.
func (a *Action) ownReason() bool {
	kinds := ReasonKinds()
	return slices.ContainsFunc(a.Reasons, func(r Reason) bool {
		return r.Kind != kinds[engine.NoResult] && r.Kind != kinds[engine.Input] && r.Kind != kinds[engine.Follows]
	})
}

// chains finds the longest chain of a graph whose actions come in order.
type chains struct {
	end    map[place]time.Duration // of the longest chain that ends in an action
	before map[place]place         // of an action, in that chain
	last   place
}

func (c *chains) add(at place, took time.Duration, in []*engine.Artifact) {
	var longest time.Duration
	for _, a := range in {
		maker, ok := a.Action()
		if !ok {
			continue
		}
		from := place{maker.Step, maker.Name}
		if c.end[from] > longest {
			longest = c.end[from]
			c.before[at] = from
		}
	}
	c.end[at] = longest + took
	if c.end[at] > c.end[c.last] {
		c.last = at
	}
}

// longest returns the actions that ran of the longest chain, in order.
func (c *chains) longest(ran map[place]int) (chain []int) {
	for at, ok := c.last, c.end[c.last] > 0; ok; at, ok = c.before[at], c.before[at] != (place{}) {
		if i, ran := ran[at]; ran {
			chain = append(chain, i)
		}
	}
	slices.Reverse(chain)
	return chain
}
