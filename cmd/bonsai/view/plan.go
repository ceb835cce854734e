package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

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

// A Planning is a plan with what a reader of it asks next.
type Planning struct {
	*engine.Plan
	Budget   Budget
	Saved    string // file that it was saved to, or ""
	Compared string // which build reasons compare with, such as "of 12:04"; "" if there is none
}

// WritePlan writes a plan: what runs and why, causes apart from what follows them, and
// what it takes.
func WritePlan(w io.Writer, p *Planning, opt PlanOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"plan", newPlanJSON(p)})
	}
	var text strings.Builder
	colors := opt.palette()
	s := newSections(p.Plan, opt.All)
	wide := nameWidth(s.causes, s.followers, s.current)
	for _, part := range []struct {
		title  string
		groups []*group
	}{
		{count(s.actions[0], "cause"), s.causes},
		{count(s.actions[1], "follower"), s.followers},
		{fmt.Sprintf("%d up to date", s.actions[2]), s.current},
	} {
		if len(part.groups) == 0 {
			continue
		}
		text.WriteString(colors.strong.Render(part.title) + "\n")
		for _, g := range part.groups {
			g.write(&text, opt, colors, wide)
		}
	}
	writeTotals(&text, p, opt, colors, s)
	if p.Saved != "" {
		fmt.Fprint(&text, wrap(fmt.Sprintf("saved: bonsai build plan=%s does this, or refuses if anything moved", printable(p.Saved)), "", opt.prose()))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Columns of a plan: the mark, the time and the size, with blanks between them.
const (
	tookWidth    = 13
	sizeWidth    = 10
	figuresWidth = tookWidth + 1 + sizeWidth
	narrow       = 64 // columns of a terminal on which figures have a line of their own
)

// nameWidth returns how wide the column of names is on a terminal of any width.
func nameWidth(lists ...[]*group) (wide int) {
	for _, groups := range lists {
		for _, g := range groups {
			wide = max(wide, lipgloss.Width(g.title()))
		}
	}
	return min(max(wide, 24), 60)
}

// write writes a group, such as
// "+ codes.body layers 0-3: 40 run, 3 follow    12.3 s  4.1 MiB  damping: 0.01 → 0.02",
// on as many lines as it needs.
func (g *group) write(w io.Writer, opt PlanOptions, p palette, wide int) {
	mark, style := "=", p.faint
	switch g.status {
	case engine.Run:
		mark, style = "+", p.good
	case engine.Maybe:
		mark, style = "~", p.warm
	case engine.Hit:
	}
	why, faint := g.why(opt.All)
	whyStyle := p.strong
	if faint {
		whyStyle = p.faint
	}
	took := "?"
	if g.seconds > 0 {
		took = seconds(g.seconds)
	}
	if opt.Width < narrow {
		fmt.Fprint(w, style.Render(mark), " ", strings.TrimLeft(wrap(g.title(), "  ", opt.Width), " "))
		fmt.Fprint(w, wrap(took+", "+Bytes(g.size), "    ", opt.Width), indented(why, whyStyle, opt.Width))
		return
	}
	wide = min(wide, opt.Width-2-figuresWidth)
	title := g.title()
	fmt.Fprint(w, style.Render(mark), " ")
	if lipgloss.Width(title) > wide {
		fmt.Fprint(w, strings.TrimLeft(wrap(title, "  ", opt.Width), " "), "  ")
		title = ""
	}
	fmt.Fprintf(w, "%s%*s %*s", pad(title, wide), tookWidth, took, sizeWidth, Bytes(g.size))
	switch {
	case why == "":
		fmt.Fprintln(w)
	case lipgloss.Width(why) <= opt.Width-2-wide-figuresWidth-2:
		fmt.Fprintln(w, " ", whyStyle.Render(why))
	default:
		fmt.Fprint(w, "\n", indented(why, whyStyle, opt.Width))
	}
}

// indented returns a text below a name, in lines.
func indented(text string, style lipgloss.Style, width int) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(wrap(text, "    ", width)) {
		b.WriteString("    " + style.Render(strings.TrimSpace(line)) + "\n")
	}
	return b.String()
}

// WriteCurrent writes the plan of actions that are all up to date.
func WriteCurrent(w io.Writer, actions int, opt PlanOptions) error {
	return writeCurrent(w, actions, opt.palette())
}

func writeCurrent(w io.Writer, actions int, colors palette) error {
	_, err := fmt.Fprintf(w, "%s: %s up to date\n", colors.good.Render("nothing to do"), count(actions, "action"))
	return err
}

// writeTotals writes what all of it takes.
func writeTotals(w io.Writer, p *Planning, opt PlanOptions, colors palette, s *sections) {
	run, maybe, hit := p.Total(engine.Run), p.Total(engine.Maybe), p.Total(engine.Hit)
	if run.Actions+maybe.Actions == 0 {
		_ = writeCurrent(w, hit.Actions, colors)
		return
	}
	lines := []string{fmt.Sprintf("%d to run, %d maybe, %d up to date: %s, %s", run.Actions, maybe.Actions, hit.Actions,
		count(s.actions[0], "cause"), count(s.actions[1], "follower"))}
	lines = append(lines, timeLine(p), diskLine(p), memoryLine(p))
	if hit.Actions > 0 && hit.Seconds > 0 {
		lines = append(lines, fmt.Sprintf("what is up to date saves %s and is in the local cache", seconds(hit.Seconds)))
	}
	if p.Compared != "" {
		lines = append(lines, "compared with the build "+p.Compared)
	}
	fmt.Fprintln(w)
	for _, line := range slices.DeleteFunc(lines, func(l string) bool { return l == "" }) {
		text := strings.TrimRight(wrap(line, "", opt.prose()), "\n")
		if strings.HasSuffix(line, tooLittle) {
			text = colors.bad.Render(text)
		}
		fmt.Fprintln(w, text)
	}
}

// tooLittle ends a line about what a build does not have.
const tooLittle = ": too little"

func timeLine(p *Planning) string {
	run, maybe := p.Total(engine.Run), p.Total(engine.Maybe)
	line := "takes about " + seconds(run.Seconds)
	switch all := run.Seconds + maybe.Seconds; {
	case run.Seconds < all/100:
		line = "takes up to " + seconds(all)
	case maybe.Seconds > 0:
		line = fmt.Sprintf("takes between %s and %s", seconds(run.Seconds), seconds(all))
	}
	if secs, chain := p.Critical(); secs > 0 && len(chain) > 1 {
		line += fmt.Sprintf("; the longest chain %s, in %s", seconds(secs), count(len(chain), "action"))
	}
	return line
}

func diskLine(p *Planning) string {
	size := p.Total(engine.Run).Bytes + p.Total(engine.Maybe).Bytes
	line := "writes " + Bytes(size)
	needed := p.Disk()
	if needed < size {
		line += fmt.Sprintf(", %s at once", Bytes(needed))
	}
	if p.Budget.Disk > 0 {
		line += fmt.Sprintf(" of %s free on the cache's disk", Bytes(p.Budget.Disk))
		if needed > p.Budget.Disk {
			line += tooLittle
		}
	}
	return line
}

func memoryLine(p *Planning) string {
	peak := max(p.Total(engine.Run).Peak, p.Total(engine.Maybe).Peak)
	line := "needs " + Bytes(peak) + " of memory"
	if p.Budget.Memory > 0 {
		line += " of " + Bytes(p.Budget.Memory)
		if peak > p.Budget.Memory {
			line += tooLittle
		}
	}
	return line
}
