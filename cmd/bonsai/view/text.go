package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"bonsai/cache"
	"bonsai/engine"
)

// A text draws a build as lines: one for each action that ran. Now and then a line says
// what runs.
type text struct {
	opt     BuildOptions
	p       palette
	put     func(line string) // writes a whole line
	dot     func()            // writes a sign of life between lines
	running []*run            // in the order they started
	waits   []wait
	total   int       // actions looked at
	over    int       // actions that ended
	hits    int       // of these, those that were up to date
	last    time.Time // of a line
	sign    time.Time // of a line or a dot
	skipped []skips   // in the order of what failed

	expected  int                // actions that will or may run, and have not started
	costs     map[string]float64 // what is expected of them, in seconds, by label
	estimated float64            // seconds that were expected of those that ran
	took      float64            // seconds that these took
	busy      float64            // seconds of all that ran
	first     time.Time          // when the first one started
}

// skips is how many actions did not run because of one that failed.
type skips struct {
	because string
	n       int
}

// A run is an action that runs.
type run struct {
	name     string
	pool     string
	began    time.Time
	estimate float64 // seconds
	done     float64
	note     string
}

// A wait is an action that another process runs.
type wait struct {
	name, holder string
	began        time.Time
}

func newText(opt BuildOptions) *text {
	return &text{opt: opt, p: opt.palette(), last: opt.Now(), sign: opt.Now()}
}

// newLines returns a text that writes its lines to w.
func newLines(w io.Writer, opt BuildOptions) *text {
	t := newText(opt)
	dots := 0 // in the last line, which is not whole
	end := func() {
		if dots > 0 {
			fmt.Fprintln(w)
			dots = 0
		}
	}
	t.put = func(line string) {
		end()
		fmt.Fprintln(w, line)
	}
	t.dot = func() {
		fmt.Fprint(w, ".")
		if dots++; dots == dotsALine {
			end()
		}
	}
	return t
}

// expect takes over what a plan expects of the actions that are no hits.
func (t *text) expect(p *engine.Plan) {
	t.costs = map[string]float64{}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Status != engine.Hit {
			t.costs[label(e.Step, e.Name)] = e.Seconds
		}
	}
	t.expected = len(t.costs)
}

// come says that an action started or ended, so that it is no longer to come.
func (t *text) come(name string) {
	if _, ok := t.costs[name]; ok {
		delete(t.costs, name)
		t.expected--
	}
	t.waits = slices.DeleteFunc(t.waits, func(w wait) bool { return w.name == name })
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
		t.waiting(e)
	case engine.Finished:
		t.finished(e)
	case engine.Failed:
		t.failed(e)
	case engine.Retried:
		t.end(label(e.Step, e.Name))
		t.say(t.p.warm.Render("retried  "), fmt.Sprintf("%s: %v; again in %s", label(e.Step, e.Name), e.Err, duration(e.Wait)))
	case engine.Skipped:
		t.skip(e)
	case engine.Warned:
		t.say(t.p.warm.Render("warning  "), label(e.Step, e.Name)+": "+e.Err.Error())
	case engine.Hashing:
		t.hashing(e)
	}
}

func (t *text) started(e engine.Started) {
	name := label(e.Step, e.Name)
	t.come(name)
	t.running = append(t.running, &run{name: name, pool: e.Pool, began: t.opt.Now(), estimate: e.Estimate})
	if t.first.IsZero() {
		t.first = t.opt.Now()
	}
	if t.opt.Explain {
		t.line(printable("because  " + name + ": " + strings.Join(reasonTexts(e.Reasons), "; ")))
	}
}

// waiting says once for whom an action waits.
func (t *text) waiting(e engine.Waiting) {
	name := label(e.Step, e.Name)
	t.waits = append(t.waits, wait{name, e.Holder, t.opt.Now()})
	t.say(t.p.warm.Render("waiting  "), name+" for "+e.Holder)
}

func (t *text) finished(e engine.Finished) {
	name := label(e.Step, e.Name)
	t.come(name)
	t.measure(t.find(name))
	t.end(name)
	t.over++
	if e.Hit {
		t.hits++
	}
	switch {
	case !e.Hit:
		line := t.p.good.Render("built    ") + pad(printable(name), min(40, t.opt.Width-19)) + fmt.Sprintf(" %9s", duration(e.Result.Duration))
		const worth = 8 // columns of a note that say something
		if room := t.opt.Width - lipgloss.Width(line) - 2; room >= worth && e.Result.Note != "" {
			line += "  " + t.p.faint.Render(clip(printable(e.Result.Note), room))
		}
		t.line(line)
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

// measure learns from a run that ended how good estimates are.
func (t *text) measure(r *run) {
	if r == nil {
		return
	}
	took := t.opt.Now().Sub(r.began).Seconds()
	t.busy += took
	if r.estimate > 0 {
		t.estimated += r.estimate
		t.took += took
	}
}

func (t *text) failed(e engine.Failed) {
	name := label(e.Step, e.Name)
	t.come(name)
	t.end(name)
	t.over++
	if errors.Is(e.Err, context.Canceled) {
		t.line(t.p.warm.Render("stopped  ") + printable(name))
		return
	}
	t.line(t.p.bad.Render("failed   ") + printable(name))
	t.said(e)
}

// said shows the end of what an action said that failed.
func (t *text) said(e engine.Failed) {
	if t.opt.Log == nil {
		return
	}
	log, err := t.opt.Log(e.Key)
	if err != nil {
		return // the error itself is told in any case
	}
	for _, line := range lastSaid(string(log)) {
		t.line(t.p.faint.Render("         " + clip(printable(line), t.opt.Width-9)))
	}
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

func (t *text) remark(line string) { t.say(t.p.warm.Render("note     "), line) }

// say writes a sentence after a word of nine columns, on as many lines as it needs.
func (t *text) say(word, sentence string) {
	const indent = "         "
	lines := wrap(printable(sentence), indent, t.opt.prose())
	t.line(word + strings.TrimPrefix(strings.TrimRight(lines, "\n"), indent))
}

func (t *text) placed(path string, o cache.Output, how string) {
	said := map[string]string{
		cache.Present: "was there already", cache.Reflink: "a reflink to the cache",
		cache.Hardlink: "a read-only link to the cache", cache.Copy: "a copy",
	}[how]
	t.line(t.p.good.Render("placed   ") + t.p.strong.Render(printable(path)) + fmt.Sprintf("  %s, %s", Bytes(o.Size), said))
}

// skip counts what did not run because something else failed.
func (t *text) skip(e engine.Skipped) {
	if e.Because == "" {
		return
	}
	i := slices.IndexFunc(t.skipped, func(s skips) bool { return s.because == e.Because })
	if i < 0 {
		i = len(t.skipped)
		t.skipped = append(t.skipped, skips{because: e.Because})
	}
	t.skipped[i].n++
}

func (t *text) close(s summary, err error) {
	for _, skip := range t.skipped {
		t.say(t.p.warm.Render("skipped  "), fmt.Sprintf("%s because of %s", count(skip.n, "action"), skip.because))
	}
	verb := "done     "
	switch {
	case errors.Is(err, context.Canceled):
		verb = "stopped  "
	case err != nil:
		verb = "failed   "
	}
	t.say(verb, s.String())
}

// line writes a whole line.
func (t *text) line(s string) {
	t.last = t.opt.Now()
	t.sign = t.last
	t.put(s)
}

// silence is the longest time without a sign of life.
const silence = 2 * time.Second

// dotsALine is how many dots stand in a line: a minute of them.
const dotsALine = 30

// tick writes a line if none was written for a while, and dots between lines. An action
// of hours gets fewer lines: one a thirtieth of its time.
func (t *text) tick(now time.Time) {
	what, since := t.standing(now)
	switch {
	case what == "":
	case now.Sub(t.last) >= max(silence-tickEvery, now.Sub(since)/30):
		t.line(what)
	case now.Sub(t.sign) >= silence-tickEvery:
		t.sign = now
		t.dot()
	}
}

// standing says what goes on, and since when; "" if nothing does.
func (t *text) standing(now time.Time) (what string, since time.Time) {
	switch {
	case len(t.running) > 0:
		r := t.running[0]
		return "running  " + t.status(r, now), r.began
	case len(t.waits) > 0:
		w := t.waits[0]
		return printable(fmt.Sprintf("waiting  [%d/%d] %s for %s, %s", t.over, t.total, w.name, w.holder,
			duration(now.Sub(w.began).Truncate(time.Second)))), w.began
	case t.over < t.total:
		return fmt.Sprintf("looking  [%d/%d] at what is up to date", t.over, t.total), now
	default:
		return "", now
	}
}

// StillAt writes that something has gone on for a while and is not over.
func StillAt(w io.Writer, what string, since time.Duration) {
	fmt.Fprintf(w, "%s, %s so far\n", what, duration(since.Round(time.Second/10)))
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
