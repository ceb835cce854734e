package view

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	_ "bonsai/cmd/bonsai/view/calm" // so that bubbletea asks the terminal nothing
)

// A live draws a build on a terminal: above, a line for each action that ended, which
// stays; below, what runs, which is drawn over. It changes no setting of the terminal and
// leaves the cursor where people see it, so that nothing must be restored, whatever ends
// the process.
type live struct {
	*text
	w       io.Writer
	program *tea.Program // nil before the first frame
	ended   chan struct{}
	width   *atomic.Int64 // columns now
}

func newLive(w io.Writer, opt BuildOptions) *live {
	l := &live{text: newLines(w, opt), w: w, width: new(atomic.Int64)}
	l.width.Store(int64(opt.Width))
	return l
}

// start begins to draw over. Before that a line is a line: a build that has nothing to do
// is over by then.
func (l *live) start() {
	l.ended = make(chan struct{})
	l.program = tea.NewProgram(&stage{width: l.width}, tea.WithOutput(terminalOf(l.w, l.opt.Screen)), tea.WithInput(nil),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithoutBracketedPaste(), tea.WithFPS(20))
	l.put = func(line string) {
		for part := range strings.SplitSeq(line, "\n") {
			l.program.Send(tea.Println(clear + part)())
		}
	}
	go func() {
		defer close(l.ended)
		_, _ = l.program.Run() // it ends when it is told to; errors of writes are seen by the writer
	}()
	const tall = 50 // rows until the terminal says how many it has
	l.program.Send(tea.WindowSizeMsg{Width: l.opt.Width, Height: tall})
}

// clear takes away what is below, and what the terminal itself wrote there, such as ^C.
const clear = "\r\x1b[J"

// tick draws what runs.
func (l *live) tick(now time.Time) {
	l.opt.Width = int(l.width.Load())
	f := l.frame(now, l.opt.Width)
	if l.program == nil && f == "" {
		return
	}
	if l.program == nil {
		l.start()
	}
	l.program.Send(frame(f))
}

func (l *live) close(s summary, err error) {
	l.text.close(s, err)
	if l.program == nil {
		return
	}
	l.program.Send(frame(""))
	l.program.Quit()
	<-l.ended
}

// A frame is what is drawn over.
type frame string

// A stage shows the last frame.
type stage struct {
	frame frame
	width *atomic.Int64
}

// Init implements tea.Model.
func (*stage) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s *stage) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case frame:
		s.frame = m
	case tea.WindowSizeMsg:
		s.width.Store(int64(m.Width))
	}
	return s, nil
}

// View implements tea.Model.
func (s *stage) View() string { return string(s.frame) }

// A tty is a terminal that is written to through a writer. It knows its size by the file.
type tty struct {
	io.Writer
	file *os.File
}

// terminalOf returns w as a terminal, if there is a file of one.
func terminalOf(w io.Writer, file *os.File) io.Writer {
	w = steady{w}
	if file == nil {
		return w
	}
	return tty{w, file}
}

// Read implements io.Reader: nothing is read.
func (tty) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer: the terminal stays open.
func (tty) Close() error { return nil }

// Fd returns the descriptor of the terminal.
func (t tty) Fd() uintptr { return t.file.Fd() }

// A steady writer leaves the cursor visible.
type steady struct{ w io.Writer }

// Write implements io.Writer.
func (s steady) Write(b []byte) (int, error) {
	if text := bytes.ReplaceAll(b, []byte("\x1b[?25l"), nil); len(text) > 0 {
		if _, err := s.w.Write(text); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// mostRows is how many actions that run a frame shows.
const mostRows = 8

// frame returns what is drawn below the lines that stay, of at most width columns.
func (t *text) frame(now time.Time, width int) string {
	if len(t.running)+len(t.waits) == 0 && t.over >= t.total {
		return ""
	}
	lines := []string{t.p.strong.Render(t.header(now, width))}
	rows := t.running[:min(len(t.running), mostRows)]
	names := 0
	for _, r := range rows {
		names = max(names, lipgloss.Width(printable(r.name)))
	}
	names = min(names, max(width*2/5, 12))
	for _, r := range rows {
		lines = append(lines, t.row(r, now, names, width))
	}
	for _, w := range t.waits[:min(len(t.waits), mostRows)] {
		line := fmt.Sprintf("  waits %s for %s, %s", printable(w.name), printable(w.holder), duration(now.Sub(w.began).Truncate(time.Second)))
		lines = append(lines, t.p.warm.Render(clip(line, width-1)))
	}
	if n := max(0, len(t.running)-mostRows) + max(0, len(t.waits)-mostRows); n > 0 {
		lines = append(lines, t.p.faint.Render(fmt.Sprintf("  and %d more", n)))
	}
	return strings.Join(lines, "\n")
}

// header returns the first line of a frame: as many of its parts as there is room for.
func (t *text) header(now time.Time, width int) string {
	parts := []string{fmt.Sprintf("[%d/%d] %d running", t.over, t.total, len(t.running))}
	if t.costs != nil {
		parts[0] += fmt.Sprintf(", %d to go", t.expected)
	}
	if left := t.leftOfAll(now); left >= time.Second {
		parts = append(parts, "about "+roughly(left)+" left")
	}
	if pools := t.pools(); pools != "" {
		parts = append(parts, pools)
	}
	if t.opt.Held != nil {
		memory := Bytes(t.opt.Held())
		if t.opt.Budget > 0 {
			memory += " of " + Bytes(t.opt.Budget)
		}
		parts = append(parts, memory)
	}
	if t.hits > 0 {
		parts = append(parts, fmt.Sprintf("%d up to date", t.hits))
	}
	line := parts[0]
	for _, part := range parts[1:] {
		if lipgloss.Width(line)+2+lipgloss.Width(part) < width {
			line += "  " + part
		}
	}
	return clip(line, width-1)
}

// row returns the line of an action that runs.
func (t *text) row(r *run, now time.Time, names, width int) string {
	const cells, roomForBar = 12, 64
	line := "  " + pad(clip(printable(r.name), names), names)
	switch {
	case r.done > 0 && width >= roomForBar:
		full := min(int(r.done*cells), cells)
		line += "  " + t.p.good.Render(strings.Repeat("█", full)) + t.p.faint.Render(strings.Repeat("░", cells-full)) +
			fmt.Sprintf(" %3.0f %%", r.done*100)
	case r.done > 0:
		line += fmt.Sprintf(" %3.0f %%", r.done*100)
	}
	line += "  " + duration(now.Sub(r.began).Truncate(time.Second/10))
	if left := r.left(now); left >= time.Second {
		line += ", " + roughly(left) + " left"
	}
	if r.note != "" {
		line += "  " + t.p.faint.Render(printable(r.note))
	}
	return clip(line, width-1)
}

// pools counts the actions that run by the pool that they run in.
func (t *text) pools() string {
	var names []string
	n := map[string]int{}
	for _, r := range t.running {
		if r.pool == "" {
			continue
		}
		if n[r.pool]++; n[r.pool] == 1 {
			names = append(names, r.pool)
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, n[name])
	}
	return strings.Join(names, ", ")
}

// roughly returns a time in its largest units: 53 s, 20 min, 2 h 05 min.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	default:
		n := int(d.Round(time.Minute).Minutes())
		return fmt.Sprintf("%d h %02d min", n/60, n%60)
	}
}

// leftOfAll estimates how long the build will still take: what is expected of the actions
// to go, corrected by how far off that was so far, by as many at once as so far.
// 0 means that nobody knows.
func (t *text) leftOfAll(now time.Time) time.Duration {
	if t.costs == nil {
		return 0
	}
	var secs float64
	busy := t.busy
	for _, s := range t.costs {
		secs += s
	}
	if t.estimated > 1 {
		secs *= min(max(t.took/t.estimated, 0.1), 10)
	}
	longest := time.Duration(0)
	for _, r := range t.running {
		left := r.left(now)
		longest = max(longest, left)
		secs += left.Seconds()
		busy += now.Sub(r.began).Seconds()
	}
	atOnce := 1.0
	if elapsed := now.Sub(t.first).Seconds(); elapsed > 0 && !t.first.IsZero() {
		atOnce = max(1, busy/elapsed)
	}
	return max(longest, time.Duration(secs/atOnce*float64(time.Second)))
}
