package record

import (
	"slices"

	"bonsai/engine"
)

// An Act is what a plan or a run says of one action.
type Act struct {
	Step, Name string
	Status     string // of a plan: run or maybe; of a run: its Outcome
	Cause      bool   // it has a reason of its own: it does not only follow others
	Reasons    []Reason

	after []string // the actions that it only follows, or that need it
}

// A Story is the actions of a plan or a run that were not up to date, by step and name.
type Story map[string]*Act

// OfPlan returns the story of a plan of actions of g.
func OfPlan(p *engine.Plan, g *engine.Graph) Story {
	s := Story{}
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Status == engine.Hit {
			continue
		}
		a := &Act{Step: e.Step, Name: e.Name, Status: e.Status.String(), Cause: e.Cause, Reasons: Reasons(e.Reasons)}
		s[actLabel(e.Step, e.Name)] = a
	}
	for a := range g.Actions() {
		if act := s[a.String()]; act != nil {
			act.after = s.behind(act, a.In)
		}
	}
	return s
}

// behind returns the actions of the story that act follows or that need it.
func (s Story) behind(act *Act, in []*engine.Artifact) (labels []string) {
	needed := ReasonKinds()[engine.Needed]
	for _, r := range act.Reasons {
		if r.Kind == needed {
			labels = append(labels, r.Name)
		}
	}
	for _, a := range in {
		maker, ok := a.Action()
		if !ok {
			continue
		}
		if before := s[maker.String()]; before != nil && !before.only(needed) {
			labels = append(labels, maker.String())
		}
	}
	return labels
}

// only reports whether all reasons are of one kind.
func (a *Act) only(kind string) bool {
	return len(a.Reasons) > 0 && !slices.ContainsFunc(a.Reasons, func(r Reason) bool { return r.Kind != kind })
}

// OfRun returns the story of what a run started.
func OfRun(r *Run) Story {
	s := Story{}
	needed := ReasonKinds()[engine.Needed]
	for i := range r.Actions {
		a := &r.Actions[i]
		act := &Act{Step: a.Step, Name: a.Name, Status: string(a.Outcome), Reasons: a.Reasons}
		if a.Follows > 0 {
			act.after = append(act.after, r.Actions[a.Follows-1].String())
		}
		for _, reason := range a.Reasons {
			if reason.Kind == needed {
				act.after = append(act.after, reason.Name)
			}
		}
		act.Cause = len(act.after) == 0
		s[a.String()] = act
	}
	return s
}

// A Chain leads from an action to the one that is the reason for it: the first is the
// action, the last the cause. They are the same if the action has a reason of its own.
type Chain []string

// Chains returns the shortest chain from an action to each cause of it, the nearest cause
// first, and at most that many.
func (s Story) Chains(label string, most int) (chains []Chain) {
	if s[label] == nil {
		return nil
	}
	from := map[string]string{label: ""}
	queue := []string{label}
	for len(queue) > 0 && len(chains) < most {
		at := queue[0]
		queue = queue[1:]
		if s[at].Cause {
			chains = append(chains, path(from, at))
			continue
		}
		for _, next := range s[at].after {
			if _, seen := from[next]; !seen && s[next] != nil {
				from[next] = at
				queue = append(queue, next)
			}
		}
	}
	return chains
}

// path returns the way to an action from the first.
func path(from map[string]string, at string) (c Chain) {
	for ; at != ""; at = from[at] {
		c = append(c, at)
	}
	slices.Reverse(c)
	return c
}

func actLabel(step, name string) string { return engine.Action{Step: step, Name: name}.String() }
