package view

import (
	"fmt"
	"slices"
	"strings"

	"bonsai/engine"
)

// A group is actions of a block that have one status, or a single action.
type group struct {
	status  engine.Status
	cause   bool
	entries []*engine.Entry
	single  bool // it has a line of its own because all have
	follow  int  // followers of its causes
	size    int64
	seconds float64
}

// sections are what is shown of a plan.
type sections struct {
	causes, followers, current []*group
	actions                    [3]int // in each of them, shown or not
}

// newSections sorts the entries of a plan. Without all, a group is the actions of a block
// that have one status, and those up to date are left out.
func newSections(p *engine.Plan, all bool) *sections {
	type kind struct {
		block  string
		status engine.Status
		cause  bool
	}
	s, known := &sections{}, map[kind]*group{}
	owner := make([]*group, len(p.Entries))
	for i := range p.Entries {
		e := &p.Entries[i]
		list, n := &s.followers, 1
		switch {
		case e.Status == engine.Hit:
			list, n = &s.current, 2
		case e.Cause:
			list, n = &s.causes, 0
		}
		s.actions[n]++
		if e.Status == engine.Hit && !all {
			continue
		}
		block, _ := instanceOf(e.Step)
		k := kind{block, e.Status, e.Cause}
		if known[k] == nil || all {
			known[k] = &group{status: e.Status, cause: e.Cause, single: all}
			*list = append(*list, known[k])
		}
		known[k].add(e)
		owner[i] = known[k]
	}
	for i, e := range p.Entries {
		if e.Root >= 0 && e.Root != i && owner[e.Root] != nil {
			owner[e.Root].follow++
		}
	}
	return s
}

func (g *group) add(e *engine.Entry) {
	g.entries = append(g.entries, e)
	g.size += e.Size
	g.seconds += e.Seconds
}

// instanceOf splits the address of a step into that of its block and, of a block with
// for_each, the key with its brackets.
func instanceOf(step string) (block, key string) {
	if at := strings.Index(step, `["`); at > 0 {
		return step[:at], step[at:]
	}
	return step, ""
}

// title returns the first column of a group, such as "codes.body layers 0-3: 40 run".
func (g *group) title() string {
	title := fmt.Sprintf("%s: %d %s", g.name(), len(g.entries), g.status)
	if g.single {
		title = fmt.Sprintf("%-5s %s", g.status, g.name())
	}
	if g.cause && g.follow > 0 {
		title += fmt.Sprintf(", %d follow", g.follow)
	}
	return title
}

// name returns the step or steps and, if the actions are of layers, which.
func (g *group) name() string {
	first, last := g.entries[0], g.entries[len(g.entries)-1]
	if len(g.entries) == 1 {
		return printable(label(first.Step, first.Name))
	}
	step := first.Step
	if last.Step != first.Step {
		_, key := instanceOf(last.Step)
		step += " … " + key
	}
	return printable(step + g.layers())
}

// layers returns " layers 0-31" if the names of actions say so.
func (g *group) layers() string {
	low, high := -1, -1
	for _, e := range g.entries {
		var n int
		if !strings.HasPrefix(e.Name, "layer ") {
			continue
		}
		if _, err := fmt.Sscanf(e.Name, "layer %d", &n); err != nil {
			continue
		}
		if low < 0 {
			low = n
		}
		low, high = min(low, n), max(high, n)
	}
	switch {
	case low < 0:
		return ""
	case low == high:
		return fmt.Sprintf(" layer %d", low)
	default:
		return fmt.Sprintf(" layers %d-%d", low, high)
	}
}

const (
	mostReasons  = 3  // that a line of a plan holds unless all are asked for
	longestValue = 48 // bytes of a value that are shown unless all are asked for
)

// why returns the reasons of a group, each once: those of its own before what it follows.
// faint says that they only lead to others.
func (g *group) why(all bool) (text string, faint bool) {
	if g.status == engine.Hit {
		return "local", true
	}
	var own, follows []string
	for _, e := range g.entries {
		for _, r := range e.Reasons {
			list := &own
			if r.Kind == engine.Follows || r.Kind == engine.Needed {
				list = &follows
			}
			if !all && len(*list) > 100*mostReasons {
				continue
			}
			if t := reasonText(r, all); !slices.Contains(*list, t) {
				*list = append(*list, t)
			}
		}
	}
	list, faint := own, !g.cause
	if !g.cause || len(own) == 0 {
		list = append(follows, own...)
		list = list[:min(len(list), 1)]
	}
	more := ""
	if n := len(list) - mostReasons; n > 0 && !all {
		list, more = list[:mostReasons], fmt.Sprintf("; %d more", n)
	}
	return strings.Join(list, "; ") + more, faint
}

// reasonText returns a reason, with long values cut unless all is asked for.
func reasonText(r engine.Reason, all bool) string {
	if !all {
		r.Old, r.New = cutValue(r.Old), cutValue(r.New)
	}
	return printable(strings.ReplaceAll(r.String(), "\n", " "))
}

func cutValue(v string) string {
	if len(v) <= longestValue {
		return v
	}
	return strings.ToValidUTF8(v[:longestValue], "") + "…"
}
