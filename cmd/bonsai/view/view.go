// Package view draws what commands compute: events of a build, plans, diagnostics,
// errors and reports, as text for people or as JSON.
//
// It writes to what it is given and never decides. Text holds no control characters
// unless the style says so. JSON is one value a line, each with the version of its form.
// Start at NewBuild; advice on errors is in hint.go and nowhere else.
package view

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
)

// Unlimited is the width of what is no terminal: lines are not cut or wrapped.
const Unlimited = math.MaxInt32

// FormatVersion is that of all JSON that this package writes. It changes when a field
// changes its meaning or goes away, not when one is added.
const FormatVersion = 1

// A Style says what the reader of text can take.
type Style struct {
	Terminal bool // a person looks at it
	Live     bool // lines may be drawn over
	Color    bool // control sequences of colour are understood
	Width    int  // columns, or Unlimited
}

// prose returns the width that sentences are wrapped to: lines of a wide terminal are
// hard to read, and those in a pipe are for programs.
func (s Style) prose() int {
	if s.Width == Unlimited {
		return Unlimited
	}
	return min(s.Width, 100)
}

// A palette colours text, or leaves it as it is.
type palette struct{ good, bad, warm, faint, strong lipgloss.Style }

// palette returns the colours of a style. The sixteen basic ones are the user's own.
func (s Style) palette() palette {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.Ascii)
	if s.Color {
		r.SetColorProfile(termenv.ANSI)
	}
	colored := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return palette{
		good: colored("2"), bad: colored("1").Bold(true), warm: colored("3"),
		faint: r.NewStyle().Faint(true), strong: r.NewStyle().Bold(true),
	}
}

// writeJSON writes one value as one line.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// duration returns a time as people say it: 0.4 s, 12 s, 3 min 20 s, 2 h 05 min.
func duration(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 0.0995:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 59.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 3600:
		n := int(math.Round(s))
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	default:
		n := int(math.Round(s / 60))
		return fmt.Sprintf("%d h %02d min", n/60, n%60)
	}
}

func seconds(s float64) string { return duration(time.Duration(s * float64(time.Second))) }

// Bytes returns a size in binary units: 512 B, 1.5 MiB.
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n), -1
	for x >= 1023.95 && unit < len(units)-1 {
		x, unit = x/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", x, units[unit])
}

// count returns "1 action" or "3 actions".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// label returns how an action is called: its step and its name.
func label(step, name string) string {
	if name == "" {
		return step
	}
	return step + " " + name
}

// clip cuts a line to width columns. Sequences of colour take none, and wide characters
// two.
func clip(line string, width int) string {
	if len(line) <= width {
		return line
	}
	return ansi.Truncate(line, max(width, 0), "…")
}

// pad fills a text up to width columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
}

// wrap breaks text into lines of at most width columns, each after indent. Lines of the
// text that begin with a space are kept as they are. A word that is longer than a line has
// one of its own.
func wrap(text, indent string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") || len(indent)+len(line) <= width {
			b.WriteString(strings.TrimRight(indent+line, " ") + "\n")
			continue
		}
		column := 0
		for word := range strings.FieldsSeq(line) {
			n := lipgloss.Width(word)
			switch {
			case column == 0:
				b.WriteString(indent)
				column = len(indent)
			case column+1+n > width:
				b.WriteString("\n" + indent)
				column = len(indent)
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// printable replaces control characters, which names and texts of users' files may
// hold, so that none reaches a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}
