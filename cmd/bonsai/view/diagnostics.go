package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// A MistakesError is what is wrong with a recipe, with the files that it is in.
type MistakesError struct {
	Diagnostics hcl.Diagnostics
	Files       map[string]*hcl.File // by the names that the diagnostics use
}

// Error implements error, without snippets.
func (m *MistakesError) Error() string { return m.Diagnostics.Error() }

// Write writes every diagnostic: what is wrong, where, the line with the place marked,
// and what to do.
func (m *MistakesError) Write(w io.Writer, s Style) {
	if m == nil {
		return
	}
	p := s.palette()
	for i, d := range m.Diagnostics {
		if i > 0 {
			fmt.Fprintln(w)
		}
		severity := p.bad.Render("error: ")
		if d.Severity == hcl.DiagWarning {
			severity = p.warm.Render("warning: ")
		}
		fmt.Fprintln(w, severity+p.strong.Render(printable(d.Summary)))
		if d.Subject != nil {
			fmt.Fprint(w, m.place(*d.Subject, d.Context, p))
		}
		fmt.Fprint(w, wrap(printable(d.Detail), "  ", s.prose()))
	}
}

// place returns the name of a place and its line, marked.
func (m *MistakesError) place(at hcl.Range, _ *hcl.Range, p palette) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s:%d,%d", at.Filename, at.Start.Line, at.Start.Column)
	file := m.Files[at.Filename]
	if file == nil {
		return b.String() + "\n"
	}
	if in := header(file, at); in != "" {
		fmt.Fprintf(&b, ", in %s", in)
	}
	line := lineAt(file.Bytes, at.Start.Byte)
	if line == "" {
		return b.String() + "\n"
	}
	line, at = excerpt(line, at)
	before, marked := split(line, at)
	number := fmt.Sprintf("  %4d ", at.Start.Line)
	fmt.Fprintf(&b, "\n%s%s\n%s%s%s\n", p.faint.Render(number+"| "), printable(line),
		p.faint.Render(strings.Repeat(" ", len(number))+"| "), before, p.bad.Render(strings.Repeat("^", marked)))
	return b.String()
}

// header returns the header of the block that a place is in, such as codes "body", or
// "" if the place is the header itself.
func header(file *hcl.File, at hcl.Range) string {
	body, ok := file.Body.(interface {
		OutermostBlockAtPos(pos hcl.Pos) *hcl.Block
	})
	if !ok {
		return ""
	}
	block := body.OutermostBlockAtPos(at.Start)
	if block == nil || block.DefRange.Start.Line == at.Start.Line {
		return ""
	}
	name := block.Type
	for _, l := range block.Labels {
		name += fmt.Sprintf(" %q", l)
	}
	return name
}

// lineAt returns the line that holds a byte of a file.
func lineAt(text []byte, at int) string {
	if at > len(text) {
		return ""
	}
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		to = at + i
	}
	return strings.TrimRight(string(text[from:to]), "\r")
}

// mostLine is how many columns of a line are shown: a recipe in JSON may be a single line.
const mostLine = 200

// excerpt returns what is around a place of a line that is too long to show, and the place
// in it.
func excerpt(line string, at hcl.Range) (string, hcl.Range) {
	runes := []rune(line)
	if len(runes) <= mostLine {
		return line, at
	}
	from := max(0, min(at.Start.Column-1-mostLine/2, len(runes)-mostLine))
	text := string(runes[from : from+mostLine])
	if from+mostLine < len(runes) {
		text += "…"
	}
	if from > 0 {
		text = "…" + text
		at.Start.Column -= from - 1
		at.End.Column -= from - 1
	}
	return text, at
}

// split returns the blanks before the marks under a line, with its tabs, and how many
// marks there are.
func split(line string, at hcl.Range) (before string, marked int) {
	runes := []rune(line)
	start := min(at.Start.Column-1, len(runes))
	for _, r := range runes[:max(start, 0)] {
		if r != '\t' {
			r = ' '
		}
		before += string(r)
	}
	end := len(runes)
	if at.End.Line == at.Start.Line {
		end = min(at.End.Column-1, end)
	}
	return before, max(end-start, 1)
}

// A diagnosticJSON is the JSON form of a diagnostic.
type diagnosticJSON struct {
	Severity string     `json:"severity"`
	Summary  string     `json:"summary"`
	Detail   string     `json:"detail"`
	File     string     `json:"file,omitempty"`
	Start    *placeJSON `json:"start,omitempty"`
	End      *placeJSON `json:"end,omitempty"`
	Snippet  string     `json:"snippet,omitempty"` // the line that it starts in
}

type placeJSON struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// WriteValidation writes whether a recipe is valid, as text the number of its steps, or
// as JSON with every diagnostic.
func WriteValidation(w io.Writer, m *MistakesError, steps int, asJSON bool) error {
	valid := !m.Diagnostics.HasErrors()
	if !asJSON {
		if !valid {
			return nil
		}
		_, err := fmt.Fprintf(w, "valid: %s\n", count(steps, "step"))
		return err
	}
	list := []diagnosticJSON{}
	for _, d := range m.Diagnostics {
		list = append(list, m.json(d))
	}
	return writeJSON(w, headed{"validation", struct {
		Valid       bool             `json:"valid"`
		Steps       int              `json:"steps"`
		Diagnostics []diagnosticJSON `json:"diagnostics"`
	}{valid, steps, list}})
}

func (m *MistakesError) json(d *hcl.Diagnostic) diagnosticJSON {
	j := diagnosticJSON{Severity: "error", Summary: d.Summary, Detail: d.Detail}
	if d.Severity == hcl.DiagWarning {
		j.Severity = "warning"
	}
	if d.Subject == nil {
		return j
	}
	place := func(p hcl.Pos) *placeJSON { return &placeJSON{p.Line, p.Column, p.Byte} }
	j.File, j.Start, j.End = d.Subject.Filename, place(d.Subject.Start), place(d.Subject.End)
	if f := m.Files[j.File]; f != nil {
		j.Snippet = lineAt(f.Bytes, d.Subject.Start.Byte)
	}
	return j
}
