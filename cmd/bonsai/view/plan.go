package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"bonsai/cache"
	"bonsai/engine"
)

// PlanOptions say how a plan is shown.
type PlanOptions struct {
	Style
	JSON bool
	All  bool // a line for each action, and those that are up to date too
}

// A Budget is what a build may use, in bytes; 0 is unknown.
type Budget struct {
	Memory int64
	Disk   int64 // free where the cache is
}

// WritePlan writes a plan: what runs and why, causes apart from what follows them, and
// what it takes.
func WritePlan(w io.Writer, p *engine.Plan, opt PlanOptions, b Budget) error {
	if opt.JSON {
		return writeJSON(w, planJSON(p, b))
	}
	var text strings.Builder
	for _, g := range groups(p, opt.All) {
		text.WriteString(g.line(opt))
	}
	writeTotals(&text, p, opt.palette(), b)
	_, err := io.WriteString(w, text.String())
	return err
}

// A group is the actions of a step that have one status, or a single action.
type group struct {
	status  engine.Status
	entries []engine.Entry
	single  bool
}

// groups returns what is shown of a plan. Without all, a group is a step's actions of
// one status, and those up to date are left out.
func groups(p *engine.Plan, all bool) (list []*group) {
	for _, e := range p.Entries {
		if all {
			list = append(list, &group{status: e.Status, entries: []engine.Entry{e}, single: true})
			continue
		}
		if e.Status == engine.Hit {
			continue
		}
		i := slices.IndexFunc(list, func(g *group) bool {
			return g.status == e.Status && g.entries[0].Step == e.Step && g.entries[0].Cause == e.Cause
		})
		if i < 0 {
			list = append(list, &group{status: e.Status, entries: []engine.Entry{e}})
			continue
		}
		list[i].entries = append(list[i].entries, e)
	}
	return list
}

// line returns the line of a group, such as
// "codes.body layers 0-3: 40 run    12.3 s  4.1 MiB  follows calibration.mix".
func (g *group) line(opt PlanOptions) string {
	p := opt.palette()
	var size int64
	var secs float64
	for _, e := range g.entries {
		size += e.Size
		secs += e.Seconds
	}
	mark, style := "=", p.faint
	switch g.status {
	case engine.Run:
		mark, style = "+", p.good
	case engine.Maybe:
		mark, style = "~", p.warm
	case engine.Hit:
	}
	name := fmt.Sprintf("%s: %d %s", g.name(), len(g.entries), g.status)
	if g.single {
		name = fmt.Sprintf("%-5s %s", g.status, g.name())
	}
	took := "?"
	if secs > 0 {
		took = seconds(secs)
	}
	line := fmt.Sprintf("%s %-44s %12s %10s  ", style.Render(mark), name, took, Bytes(size))
	return strings.TrimRight(line+g.why(p), " ") + "\n"
}

// name returns the step and, if actions are of layers, which.
func (g *group) name() string {
	first := g.entries[0]
	if g.single || len(g.entries) == 1 {
		return printable(label(first.Step, first.Name))
	}
	low, high := -1, -1
	for _, e := range g.entries {
		var n int
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
		return first.Step
	case low == high:
		return fmt.Sprintf("%s layer %d", first.Step, low)
	default:
		return fmt.Sprintf("%s layers %d-%d", first.Step, low, high)
	}
}

// mostReasons is how many reasons a line of a plan holds.
const mostReasons = 3

// why returns the reasons of a group, each once: those of its own before what it
// follows.
func (g *group) why(p palette) string {
	var own, follows []string
	for _, e := range g.entries {
		for _, r := range e.Reasons {
			list := &own
			if r.Kind == engine.Follows || r.Kind == engine.Needed {
				list = &follows
			}
			if t := printable(r.String()); !slices.Contains(*list, t) {
				*list = append(*list, t)
			}
		}
	}
	list, style := own, p.strong
	if len(own) == 0 || !g.entries[0].Cause {
		list, style = append(follows, own...), p.faint
		list = list[:min(len(list), 1)]
	}
	more := ""
	if n := len(list) - mostReasons; n > 0 {
		list, more = list[:mostReasons], fmt.Sprintf("; %d more", n)
	}
	return style.Render(strings.Join(list, "; ") + more)
}

// writeTotals writes what all of it takes.
func writeTotals(w io.Writer, p *engine.Plan, colors palette, b Budget) {
	run, maybe, hit := p.Total(engine.Run), p.Total(engine.Maybe), p.Total(engine.Hit)
	if run.Actions+maybe.Actions == 0 {
		fmt.Fprintf(w, "%s: %s up to date\n", colors.good.Render("nothing to do"), count(hit.Actions, "action"))
		return
	}
	causes, followers := causesOf(p)
	fmt.Fprintf(w, "\n%d to run, %d maybe, %d up to date: %s, %s\n", run.Actions, maybe.Actions, hit.Actions,
		count(causes, "cause"), count(followers, "follower"))
	fmt.Fprintf(w, "takes about %s", seconds(run.Seconds))
	if maybe.Actions > 0 {
		fmt.Fprintf(w, ", and %s if all runs that may", seconds(run.Seconds+maybe.Seconds))
	}
	fmt.Fprintf(w, "\nwrites %s", Bytes(run.Bytes+maybe.Bytes))
	if b.Disk > 0 {
		fmt.Fprintf(w, " of %s free on the cache's disk", Bytes(b.Disk))
		if run.Bytes+maybe.Bytes > b.Disk {
			fmt.Fprint(w, colors.bad.Render(": too little"))
		}
	}
	fmt.Fprintf(w, "\nneeds %s of memory", Bytes(max(run.Peak, maybe.Peak)))
	if b.Memory > 0 {
		fmt.Fprintf(w, " of %s", Bytes(b.Memory))
	}
	fmt.Fprintln(w)
}

// causesOf counts the actions that are no hits by whether the reason is their own.
func causesOf(p *engine.Plan) (causes, followers int) {
	for _, e := range p.Entries {
		switch {
		case e.Status == engine.Hit:
		case e.Cause:
			causes++
		default:
			followers++
		}
	}
	return causes, followers
}

type entryJSON struct {
	Step    string       `json:"step"`
	Action  string       `json:"action,omitempty"`
	Status  string       `json:"status"`
	Cause   bool         `json:"cause"`
	Reasons []reasonJSON `json:"reasons"`
	Key     *cache.Key   `json:"key,omitempty"`
	Bytes   int64        `json:"bytes"`
	Peak    int64        `json:"peak_bytes"`
	Seconds float64      `json:"seconds"`
}

type reasonJSON struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
	Text string `json:"text"`
}

type totalsJSON struct {
	Actions int     `json:"actions"`
	Bytes   int64   `json:"bytes"`
	Peak    int64   `json:"peak_bytes"`
	Seconds float64 `json:"seconds"`
}

func planJSON(p *engine.Plan, b Budget) headed {
	entries := []entryJSON{}
	for _, e := range p.Entries {
		a := actionOf(e.Step, e.Name, e.Key)
		entries = append(entries, entryJSON{
			e.Step, e.Name, e.Status.String(), e.Cause, reasonsJSON(e.Reasons), a.Key, e.Size, e.Peak, e.Seconds,
		})
	}
	totals := map[string]totalsJSON{}
	for _, s := range []engine.Status{engine.Run, engine.Maybe, engine.Hit} {
		totals[s.String()] = totalsJSON(p.Total(s))
	}
	causes, followers := causesOf(p)
	return headed{"plan", struct {
		Entries   []entryJSON           `json:"entries"`
		Totals    map[string]totalsJSON `json:"totals"`
		Causes    int                   `json:"causes"`
		Followers int                   `json:"followers"`
		Memory    int64                 `json:"memory_bytes"`
		Disk      int64                 `json:"disk_bytes"`
	}{entries, totals, causes, followers, b.Memory, b.Disk}}
}

func reasonsJSON(reasons []engine.Reason) []reasonJSON {
	kinds := map[engine.ReasonKind]string{
		engine.NoResult: "no_result", engine.Evicted: "evicted", engine.Setting: "setting", engine.Input: "input",
		engine.Missing: "missing", engine.Needed: "needed", engine.Follows: "follows",
	}
	list := []reasonJSON{}
	for _, r := range reasons {
		list = append(list, reasonJSON{kinds[r.Kind], r.Name, r.Old, r.New, r.String()})
	}
	return list
}
