package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// A text draws a build as lines: one for each action that ran and, on a terminal, one
// at the bottom that shows what runs and is drawn over. Elsewhere a line now and then
// says what runs.
type text struct {
	w       io.Writer
	opt     BuildOptions
	p       palette
	running []*run // in the order they started
	total   int    // actions looked at
	over    int    // actions that ended
	live    bool   // there is a live line
	last    time.Time
}

// A run is an action that runs.
type run struct {
	name     string
	began    time.Time
	estimate float64 // seconds
	done     float64
	note     string
}

func newText(w io.Writer, opt BuildOptions) *text {
	return &text{w: w, opt: opt, p: opt.palette(), last: opt.Now()}
}

func (t *text) event(e engine.Event) {
	switch e := e.(type) {
	case engine.Planned:
		t.total = e.Actions
	case engine.Started:
		t.started(e)
	case engine.Progress:
		if r := t.find(label(e.Step, e.Name)); r != nil {
			r.done, r.note = e.Done, e.Note
		}
	case engine.Waiting:
		t.line(t.p.warm.Render("waiting  ") + printable(label(e.Step, e.Name)+" for "+e.Holder))
	case engine.Finished:
		t.finished(e)
	case engine.Failed:
		t.failed(e)
	case engine.Retried:
		t.end(label(e.Step, e.Name))
		t.line(t.p.warm.Render("retried  ") + printable(fmt.Sprintf("%s: %v; again in %s", label(e.Step, e.Name), e.Err, duration(e.Wait))))
	case engine.Warned:
		t.line(t.p.warm.Render("warning  ") + printable(label(e.Step, e.Name)+": "+e.Err.Error()))
	case engine.Hashing:
		t.hashing(e)
	}
}

func (t *text) started(e engine.Started) {
	name := label(e.Step, e.Name)
	t.running = append(t.running, &run{name: name, began: t.opt.Now(), estimate: e.Estimate})
	if t.opt.Explain {
		t.line(printable("because  " + name + ": " + strings.Join(reasonTexts(e.Reasons), "; ")))
	}
}

func (t *text) finished(e engine.Finished) {
	name := label(e.Step, e.Name)
	t.end(name)
	t.over++
	switch {
	case !e.Hit:
		line := clip(fmt.Sprintf("%-40s %9s", printable(name), duration(e.Result.Duration)), t.opt.Width-9)
		if note := printable(e.Result.Note); note != "" {
			line += "  " + t.p.faint.Render(clip(note, t.opt.Width-9-len([]rune(line))-2))
		}
		t.line(t.p.good.Render("built    ") + strings.TrimRight(line, " "))
	case t.opt.Explain:
		t.line("current  " + printable(name))
	}
	if t.opt.Explain {
		t.line("         key " + e.Key.String())
		for line := range strings.Lines(e.Result.Manifest) {
			t.line("         " + printable(strings.TrimRight(line, "\n")))
		}
	}
}

func (t *text) failed(e engine.Failed) {
	name := label(e.Step, e.Name)
	t.end(name)
	t.over++
	if errors.Is(e.Err, context.Canceled) {
		t.line(t.p.warm.Render("stopped  ") + printable(name))
		return
	}
	t.line(t.p.bad.Render("failed   ") + printable(name))
}

// hashing shows a large file as if it were an action.
func (t *text) hashing(e engine.Hashing) {
	name := "reading " + e.Path
	if e.Done {
		t.end(name)
		return
	}
	t.running = append(t.running, &run{name: name, began: t.opt.Now()})
}

func (t *text) find(name string) *run {
	if i := slices.IndexFunc(t.running, func(r *run) bool { return r.name == name }); i >= 0 {
		return t.running[i]
	}
	return nil
}

func (t *text) end(name string) {
	t.running = slices.DeleteFunc(t.running, func(r *run) bool { return r.name == name })
}

func (t *text) remark(line string) { t.line(t.p.warm.Render("note     ") + line) }

func (t *text) placed(path string, o cache.Output, how string) {
	said := map[string]string{
		cache.Present: "was there already", cache.Reflink: "a reflink to the cache",
		cache.Hardlink: "a read-only link to the cache", cache.Copy: "a copy",
	}[how]
	t.line(t.p.good.Render("placed   ") + t.p.strong.Render(printable(path)) + fmt.Sprintf("  %s, %s", Bytes(o.Size), said))
}

func (t *text) close(s summary, err error) {
	verb := "done     "
	switch {
	case errors.Is(err, context.Canceled):
		verb = "stopped  "
	case err != nil:
		verb = "failed   "
	}
	t.line(verb + s.String())
}

// line writes a whole line, above the live one.
func (t *text) line(s string) {
	t.erase()
	t.last = t.opt.Now()
	fmt.Fprintln(t.w, s)
}

// erase takes the live line away.
func (t *text) erase() {
	if t.live {
		fmt.Fprint(t.w, "\r\x1b[K")
		t.live = false
	}
}

// silence is the longest time without a sign of life.
const silence = 2 * time.Second

// tick draws the live line, or, where there is none, a line if nothing was written for
// a while. An action of hours gets fewer of them: one a thirtieth of its time.
func (t *text) tick(now time.Time) {
	if len(t.running) == 0 {
		t.erase()
		return
	}
	r := t.running[0]
	if t.opt.Live {
		t.erase()
		fmt.Fprint(t.w, clip(t.status(r, now), t.opt.Width-1))
		t.live = true
		return
	}
	if quiet := now.Sub(t.last); quiet >= max(silence-tickEvery, now.Sub(r.began)/30) {
		t.line("running  " + t.status(r, now))
	}
}

// status says how far the build and an action are.
func (t *text) status(r *run, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d/%d] %s", t.over, t.total, r.name)
	if r.done > 0 {
		fmt.Fprintf(&b, "  %.0f %%", r.done*100)
	}
	fmt.Fprintf(&b, "  %s", duration(now.Sub(r.began).Truncate(time.Second/10)))
	if left := r.left(now); left >= time.Second {
		fmt.Fprintf(&b, ", about %s left", duration(left.Round(time.Second)))
	}
	if r.note != "" {
		b.WriteString("  " + r.note)
	}
	if n := len(t.running) - 1; n > 0 {
		fmt.Fprintf(&b, "  and %d more", n)
	}
	return printable(b.String())
}

// left estimates how long a run will still take: from how far it is or, before that
// says much, from how long it was expected to take. 0 means that nobody knows.
func (r *run) left(now time.Time) time.Duration {
	took := now.Sub(r.began)
	if r.done > 0.02 {
		return time.Duration(float64(took) * (1 - r.done) / r.done)
	}
	return max(0, time.Duration(r.estimate*float64(time.Second))-took)
}
