package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bonsai/cache"
	"bonsai/engine"
	"bonsai/engine/record"
)

// LogOptions say how logs are shown.
type LogOptions struct {
	Style
	JSON bool
	Tail int // lines of each; 0: all
}

// An ActionLog is what an action said in its last run.
type ActionLog struct {
	Step    string    `json:"step"`
	Name    string    `json:"action,omitempty"`
	Key     cache.Key `json:"key"`
	Run     string    `json:"run"`    // that had to do with it last
	Status  string    `json:"status"` // hit, or the record.Outcome
	Seconds float64   `json:"seconds,omitempty"`
	Error   string    `json:"error,omitempty"`
	Text    *string   `json:"log"` // nil: none is kept
}

// WriteLog writes logs, each after a line that says whose it is.
func WriteLog(w io.Writer, logs []ActionLog, opt LogOptions) error {
	for i := range logs {
		if text := logs[i].Text; text != nil {
			short := tail(*text, opt.Tail)
			logs[i].Text = &short
		}
	}
	if opt.JSON {
		return writeJSON(w, headed{"log", struct {
			Actions []ActionLog `json:"actions"`
		}{logs}})
	}
	p := opt.palette()
	var b strings.Builder
	for _, l := range logs {
		b.WriteString(p.strong.Render(printable("== " + label(l.Step, l.Name) + ": " + l.what())))
		b.WriteByte('\n')
		switch {
		case l.Text == nil:
			b.WriteString(p.faint.Render("no log is kept") + "\n")
		case *l.Text == "":
			b.WriteString(p.faint.Render("it said nothing") + "\n")
		default:
			b.WriteString(strings.TrimRight(printable(*l.Text), "\n") + "\n")
		}
		if l.Text == nil && l.Error != "" {
			b.WriteString(p.bad.Render("failed: ") + printable(l.Error) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// what says what became of the action.
func (l *ActionLog) what() string {
	switch l.Status {
	case engine.Hit.String():
		return "up to date in run " + l.Run
	case string(record.Built):
		return fmt.Sprintf("built in %s by run %s", seconds(l.Seconds), l.Run)
	default:
		return fmt.Sprintf("%s after %s in run %s", outcomeWord(record.Outcome(l.Status)), seconds(l.Seconds), l.Run)
	}
}

// tail returns the last n lines of a text; all of it if n is 0.
func tail(text string, n int) string {
	if n <= 0 {
		return text
	}
	end := strings.TrimRight(text, "\n")
	at := len(end)
	for range n {
		if at = strings.LastIndexByte(end[:at], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}

// mostSaid is how many lines of what it said last are shown of an action that failed.
const mostSaid = 5

// lastSaid returns the lines of a log before the last one, which is the error, without
// what the engine says of the start and without their times.
func lastSaid(log string) (lines []string) {
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\n")
		if at, rest, ok := strings.Cut(line, " "); ok && isTime(at) {
			line = rest
		}
		lines = append(lines, line)
	}
	begin, end := 0, 0
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "failed after "):
			end = i
		case strings.HasPrefix(line, "start "), strings.HasPrefix(line, "because "), strings.HasPrefix(line, "expected to take "):
			begin = i + 1
		}
	}
	if end < begin {
		return nil
	}
	return lines[max(begin, end-mostSaid):end]
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}
