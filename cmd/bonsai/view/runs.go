package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bonsai/engine/record"
)

// RunsOptions say how records of runs are shown.
type RunsOptions struct {
	Style
	JSON bool
	All  bool      // every action that ran, not only the slowest
	Now  time.Time // times are shown in its zone
}

// WriteRuns writes the heads of runs, the latest first, one a line. kept is how many
// there are.
func WriteRuns(w io.Writer, heads []record.Head, kept int, opt RunsOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"runs", struct {
			Kept int           `json:"kept"`
			Runs []record.Head `json:"runs"`
		}{kept, append([]record.Head{}, heads...)}})
	}
	if len(heads) == 0 {
		_, err := fmt.Fprintln(w, "no runs yet: each build and eval leaves a record in the cache")
		return err
	}
	p := opt.palette()
	var b strings.Builder
	fmt.Fprintln(&b, p.faint.Render("run     when         outcome       took   ran   hits     written        saved  what"))
	for _, h := range heads {
		outcome := outcomeStyle(p, h.Outcome).Render(fmt.Sprintf("%-7s", outcomeWord(h.Outcome)))
		line := fmt.Sprintf("%-6s  %s  %s %11s %5d %6d %11s %12s  ", record.Short(h.ID),
			h.Began.In(opt.Now.Location()).Format("01-02 15:04"), "\x00", duration(h.Took()), h.Ran, h.Hits, Bytes(h.Written), seconds(h.Saved))
		what := strings.TrimRight(clip(strings.Replace(line, "\x00", strings.Repeat(" ", 7), 1)+runWhat(h), opt.Width), " ")
		fmt.Fprintln(&b, what[:21]+outcome+what[28:])
	}
	if n := kept - len(heads); n > 0 {
		fmt.Fprintf(&b, "and %d earlier\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// runWhat returns the command and what it was to build.
func runWhat(h record.Head) string {
	what := h.Command
	if len(h.Targets) > 0 {
		what += " " + strings.Join(h.Targets, ",")
	}
	if h.Quick {
		what += " (nothing had changed)"
	}
	return printable(strings.ReplaceAll(what, "\n", " "))
}

func outcomeWord(o record.Outcome) string {
	if o == record.Interrupted {
		return "stopped"
	}
	return string(o)
}

func outcomeStyle(p palette, o record.Outcome) interface{ Render(...string) string } {
	switch o {
	case record.Built:
		return p.good
	case record.Failed:
		return p.bad
	default:
		return p.warm
	}
}

// WriteRun writes what one run did.
func WriteRun(w io.Writer, r *record.Run, opt RunsOptions) error {
	if opt.JSON {
		return writeJSON(w, runJSON(r))
	}
	p := opt.palette()
	var b strings.Builder
	writeRunHead(&b, r, opt)
	list := slowest(r)
	title := "slowest"
	if !opt.All {
		list = list[:min(len(list), mostSlow)]
	} else {
		title = "actions that ran"
	}
	writeActions(&b, title, r, list, opt)
	if len(r.Critical) > 1 {
		title := fmt.Sprintf("longest chain: %s of %s, %s", seconds(chainSeconds(r)), duration(r.Took()), count(len(r.Critical), "action"))
		writeActions(&b, title, r, shortChain(r.Critical, opt.All), opt)
	}
	for _, a := range r.Actions {
		if a.Outcome == record.Failed {
			fmt.Fprintf(&b, "\n%s %s\n", p.bad.Render("failed"), printable(a.String()))
			b.WriteString(wrap(printable(a.Error), "  ", opt.prose()))
		}
	}
	for _, warning := range r.Warnings {
		b.WriteString("\n" + wrap(printable("warning "+label(warning.Step, warning.Name)+": "+warning.Text), "", opt.prose()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mostSlow is how many actions are listed as the slowest.
const mostSlow = 10

func writeRunHead(b *strings.Builder, r *record.Run, opt RunsOptions) {
	p := opt.palette()
	fmt.Fprintf(b, "%s %s in %s\n", p.strong.Render("run "+record.Short(r.ID)),
		outcomeStyle(p, r.Outcome).Render(outcomeWord(r.Outcome)), duration(r.Took()))
	row := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-9s%s\n", name, clip(printable(fmt.Sprintf(format, args...)), max(20, opt.Width-9)))
	}
	row("id", "%s", r.ID)
	row("began", "%s", r.Began.In(opt.Now.Location()).Format("2006-01-02 15:04:05"))
	row("words", "%s", strings.Join(append([]string{"bonsai", r.Command}, r.Words...), " "))
	row("recipe", "%s", r.Recipe)
	row("bonsai", "%s, backend %s", r.Version, r.Backend)
	if r.Quick {
		row("actions", "none looked at: nothing had changed since the build before")
		return
	}
	failed := ""
	if r.Failed > 0 {
		failed = fmt.Sprintf(", %d failed", r.Failed)
	}
	row("actions", "%d ran, %d up to date%s", r.Ran, r.Head.Hits, failed)
	row("written", "%s", Bytes(r.Written))
	row("saved", "%s by hits", seconds(r.Saved))
	if took := r.Took().Seconds(); r.Busy > 0 && took > 0 {
		row("busy", "%s of actions, %.1f at once on average", seconds(r.Busy), r.Busy/took)
	}
	if most := mostMemory(r); most > 0 {
		row("memory", "%s at most", Bytes(most))
	}
	if n, waited := waits(r); n > 0 {
		row("waited", "%s for other builds, by %s", duration(waited), count(n, "action"))
	}
}

func mostMemory(r *record.Run) (most int64) {
	for _, s := range r.Memory {
		most = max(most, s.Bytes)
	}
	return most
}

// waits returns how many actions waited for other processes, and for how long in all.
func waits(r *record.Run) (n int, total time.Duration) {
	for _, a := range r.Actions {
		for _, w := range a.Waits {
			total += w.To - w.From
		}
		n += min(1, len(a.Waits))
	}
	for _, w := range r.Waits {
		total += w.To - w.From
		n++
	}
	return n, total
}

// slowest returns the actions that ran, the slowest first.
func slowest(r *record.Run) (list []int) {
	for i := range r.Actions {
		list = append(list, i)
	}
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(r.Actions[j].Took(), r.Actions[i].Took()) })
	return list
}

func chainSeconds(r *record.Run) (s float64) {
	for _, i := range r.Critical {
		s += r.Actions[i].Took().Seconds()
	}
	return s
}

// shortChain leaves out the middle of a long chain, marked by -1.
func shortChain(chain []int, all bool) []int {
	if all || len(chain) <= mostSlow {
		return chain
	}
	half := mostSlow / 2
	short := append(slices.Clone(chain[:half]), -1)
	return append(short, chain[len(chain)-half:]...)
}

func writeActions(b *strings.Builder, title string, r *record.Run, list []int, opt RunsOptions) {
	if len(list) == 0 {
		return
	}
	p := opt.palette()
	fmt.Fprintf(b, "\n%s\n", p.strong.Render(title))
	for _, i := range list {
		if i < 0 {
			b.WriteString("           …\n")
			continue
		}
		a := &r.Actions[i]
		line := fmt.Sprintf("%11s  %s", duration(a.Took()), printable(a.String()))
		if a.Outcome != record.Built {
			line += "  " + outcomeWord(a.Outcome)
		} else if a.Note != "" {
			line = fmt.Sprintf("%-52s  %s", line, printable(a.Note))
		}
		b.WriteString(strings.TrimRight(clip(line, opt.Width), " ") + "\n")
	}
}

// runJSON returns the JSON form of a run.
func runJSON(r *record.Run) headed {
	hits := []action{}
	for _, h := range r.Hits {
		hits = append(hits, actionOf(h.Step, h.Name, h.Key))
	}
	return headed{"run", struct {
		record.Head
		Took     float64          `json:"duration_s"`
		Actions  []record.Action  `json:"actions"`
		UpToDate []action         `json:"up_to_date"`
		Critical []int            `json:"critical"`
		Waits    []record.HitWait `json:"hit_waits"`
		Reads    []record.Read    `json:"reads"`
		Warnings []record.Warning `json:"warnings"`
		Memory   []record.Sample  `json:"memory"`
	}{
		r.Head, r.Took().Seconds(), append([]record.Action{}, r.Actions...), hits, append([]int{}, r.Critical...),
		append([]record.HitWait{}, r.Waits...), append([]record.Read{}, r.Reads...), append([]record.Warning{}, r.Warnings...), append([]record.Sample{}, r.Memory...),
	}}
}
