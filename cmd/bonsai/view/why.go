package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bonsai/cache"
	"bonsai/engine"
	"bonsai/engine/record"
)

// WhyOptions say how reasons are shown.
type WhyOptions struct {
	Style
	JSON     bool
	All      bool // each action by itself
	Manifest bool // and its manifest
	Now      time.Time
}

// A Why says why actions ran, or will.
type Why struct {
	Asked string      `json:"asked"`
	Last  *WhyRun     `json:"last"` // nil: no run had to do with them
	Next  []WhyAction `json:"next"`
}

// A WhyRun is what a run did of the actions.
type WhyRun struct {
	Run     record.Head `json:"run"`
	Since   int         `json:"unchanged_since"` // builds after it that had nothing to do
	Actions []WhyAction `json:"actions"`
}

// Unneeded is the status of an action that a plan does not list: nothing needs its bytes.
const Unneeded = "unneeded"

// A WhyAction is what became of one action, or will.
type WhyAction struct {
	Step     string          `json:"step"`
	Name     string          `json:"action,omitempty"`
	Status   string          `json:"status"` // hit, run, maybe, unneeded, or a record.Outcome
	Seconds  float64         `json:"seconds"`
	Key      *cache.Key      `json:"key,omitempty"`
	Reasons  []record.Reason `json:"reasons,omitempty"`
	Causes   []WhyCause      `json:"causes,omitempty"`
	Error    string          `json:"error,omitempty"`
	Manifest string          `json:"manifest,omitempty"`
}

// A WhyCause is an action for whose reasons another one runs, or it itself.
type WhyCause struct {
	Step    string          `json:"step"`
	Name    string          `json:"action,omitempty"`
	Reasons []record.Reason `json:"reasons"`
	Places  []string        `json:"places"` // in the recipe, of each reason; "" if there is none
	Follows bool            `json:"follows"`
	Through []string        `json:"through,omitempty"` // the actions between the two, in order
}

// WriteWhy writes why actions ran in the last run, and what the next would do.
func WriteWhy(w io.Writer, y Why, opt WhyOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"why", y})
	}
	p := opt.palette()
	var b strings.Builder
	if y.Last == nil {
		b.WriteString(p.strong.Render("last build") + "  no run of this recipe is recorded that had to do with it\n")
	} else {
		h := y.Last.Run
		fmt.Fprintf(&b, "%s  run %s, %s: %s\n", p.strong.Render("last build"), record.Short(h.ID),
			ago(opt.Now.Sub(h.Ended)), outcomeStyle(p, h.Outcome).Render(outcomeWord(h.Outcome)))
		if y.Last.Since > 0 {
			fmt.Fprintf(&b, "            %s since then found nothing changed\n", count(y.Last.Since, "build"))
		}
		writeWhyActions(&b, y.Last.Actions, opt)
	}
	fmt.Fprintf(&b, "%s\n", p.strong.Render("next build"))
	writeWhyActions(&b, y.Next, opt)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeWhyActions writes actions, those of a step with one status and one cause together.
func writeWhyActions(b *strings.Builder, actions []WhyAction, opt WhyOptions) {
	var groups [][]WhyAction
	for _, a := range actions {
		i := slices.IndexFunc(groups, func(g []WhyAction) bool { return !opt.All && !opt.Manifest && together(g[0], a) })
		if i < 0 {
			groups = append(groups, []WhyAction{a})
			continue
		}
		groups[i] = append(groups[i], a)
	}
	for _, g := range groups {
		writeWhyGroup(b, g, opt)
	}
}

// ago says how long ago something was.
func ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return duration(d.Truncate(time.Second)) + " ago"
}

// family returns the address of a step without the instance of a for_each.
func family(step string) string {
	base, _, _ := strings.Cut(step, "[")
	return base
}

// together reports whether two actions are shown as one.
func together(a, b WhyAction) bool {
	if family(a.Step) != family(b.Step) || a.Error != b.Error || a.Status != b.Status || len(a.Causes) != len(b.Causes) {
		return false
	}
	for i := range a.Causes {
		c, d := a.Causes[i], b.Causes[i]
		sameCause := c.Step == d.Step && c.Name == d.Name && c.Follows == d.Follows
		sameReason := !c.Follows && !d.Follows && becauseText(c.Reasons) == becauseText(d.Reasons)
		if !sameCause && !sameReason {
			return false
		}
	}
	return true
}

// statusWords are what statuses are in a sentence, and how they are coloured.
func statusWord(p palette, status string) string {
	words := map[string]string{
		engine.Hit.String(): "up to date", engine.Run.String(): "will run", engine.Maybe.String(): "may run",
		Unneeded: "not needed", string(record.Built): "ran", string(record.Failed): "failed", string(record.Interrupted): "stopped",
		string(record.Retried): "retried",
	}
	text := fmt.Sprintf("%-10s", words[status])
	switch status {
	case engine.Run.String(), string(record.Built):
		return p.good.Render(text)
	case string(record.Failed):
		return p.bad.Render(text)
	case engine.Maybe.String(), string(record.Interrupted):
		return p.warm.Render(text)
	default:
		return p.faint.Render(text)
	}
}

func writeWhyGroup(b *strings.Builder, g []WhyAction, opt WhyOptions) {
	p := opt.palette()
	first := g[0]
	total := 0.0
	names := &group{}
	mixed := slices.ContainsFunc(g, func(a WhyAction) bool { return a.Step != first.Step })
	for _, a := range g {
		total += a.Seconds
		step := a.Step
		if mixed {
			step = family(step)
		}
		names.entries = append(names.entries, &engine.Entry{Step: step, Name: a.Name})
	}
	line := printable(names.name())
	if len(g) > 1 {
		line += fmt.Sprintf(": %d actions", len(g))
	}
	if total > 0 && first.Status != engine.Hit.String() {
		line += ", " + seconds(total)
	}
	fmt.Fprintf(b, "  %s  %s\n", statusWord(p, first.Status), clip(line, opt.Width-14))
	const indent = "              "
	if first.Error != "" {
		b.WriteString(wrap(printable(first.Error), indent, opt.prose()))
	}
	for _, c := range first.Causes {
		b.WriteString(wrap(printable("because "+c.text()), indent, opt.prose()))
		if len(c.Through) > 0 {
			b.WriteString(wrap(printable("through "+throughText(c.Through, opt.All)), indent, opt.prose()))
		}
	}
	if opt.Manifest && first.Key != nil {
		fmt.Fprintf(b, "%skey %s\n", indent, first.Key)
		for line := range strings.Lines(first.Manifest) {
			b.WriteString(indent + printable(strings.TrimRight(line, "\n")) + "\n")
		}
	}
}

// text returns the reasons of a cause, each with its place, after the action if that is
// another one.
func (c *WhyCause) text() string {
	var texts []string
	for i, r := range c.Reasons {
		text := r.Text
		if was, is := inputName(r.Old), inputName(r.New); r.Kind == record.ReasonKinds()[engine.Input] && was != "" && is != "" {
			text += ": " + was + " → " + is
		}
		if i < len(c.Places) && c.Places[i] != "" {
			text += " (" + c.Places[i] + ")"
		}
		texts = append(texts, text)
	}
	more := ""
	if n := len(texts) - mostReasons; n > 0 {
		texts, more = texts[:mostReasons], fmt.Sprintf("; %d more", n)
	}
	text := strings.Join(texts, "; ") + more
	if c.Follows {
		text = label(c.Step, c.Name) + ": " + text
	}
	return text
}

// inputName shortens the name of an input in a manifest: 12 digits of its hash. It
// returns "" for any other value.
func inputName(value string) string {
	hash, ok := strings.CutPrefix(value, "digest ")
	if !ok {
		hash, ok = strings.CutPrefix(value, "key ")
	}
	if !ok {
		return ""
	}
	return hash[:min(12, len(hash))]
}

// mostThrough is how many actions of a chain are told, from its ends.
const mostThrough = 4

func throughText(chain []string, all bool) string {
	if !all && len(chain) > mostThrough {
		half := mostThrough / 2
		left := len(chain) - mostThrough
		chain = slices.Concat(chain[:half], []string{fmt.Sprintf("… %d more …", left)}, chain[len(chain)-half:])
	}
	return strings.Join(chain, ", ")
}
