package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"bonsai/recipes/lint"
)

// LintOptions says how findings are written.
type LintOptions struct {
	Style Style
	JSON  bool
}

type findingJSON struct {
	ID    string     `json:"id"`
	What  string     `json:"what"`
	Why   string     `json:"why"`
	File  string     `json:"file"`
	Start *placeJSON `json:"start"`
	End   *placeJSON `json:"end"`
	Fixes bool       `json:"fixable"`
}

// WriteFindings writes what was found in a recipe, each with its line and why it matters;
// fixed is how many others were put right.
func WriteFindings(w io.Writer, found []lint.Finding, fixed int, files map[string]*hcl.File, opt LintOptions) error {
	if opt.JSON {
		list := []findingJSON{}
		for _, f := range found {
			start, end := f.Range.Start, f.Range.End
			list = append(list, findingJSON{
				f.ID, f.What, f.Why, f.Range.Filename,
				&placeJSON{start.Line, start.Column, start.Byte}, &placeJSON{end.Line, end.Column, end.Byte}, f.Fix != nil,
			})
		}
		return writeJSON(w, headed{"lint", struct {
			Fixed    int           `json:"fixed"`
			Findings []findingJSON `json:"findings"`
		}{fixed, list}})
	}
	var b strings.Builder
	p := opt.Style.palette()
	m := &MistakesError{Files: files}
	fixable := 0
	for _, f := range found {
		b.WriteString(p.warm.Render(f.ID+": ") + p.strong.Render(printable(f.What)) + "\n")
		b.WriteString(m.place(f.Range, nil, p))
		b.WriteString(wrap(f.Why, "  ", opt.Style.prose()) + "\n")
		if f.Fix != nil {
			fixable++
		}
	}
	b.WriteString(lintSummary(len(found), fixed, fixable))
	_, err := io.WriteString(w, b.String())
	return err
}

// lintSummary is the last line: nothing if there is nothing to say.
func lintSummary(found, fixed, fixable int) string {
	var parts []string
	if found > 0 {
		parts = append(parts, count(found, "finding"))
	}
	if fixed > 0 {
		parts = append(parts, fmt.Sprintf("%d fixed", fixed))
	}
	if fixable > 0 {
		parts = append(parts, fmt.Sprintf("fix=true fixes %d", fixable))
	}
	if found > 0 {
		parts = append(parts, "a comment lint:ignore NAME on the line before keeps one silent")
	}
	if parts == nil {
		return ""
	}
	return strings.Join(parts, "; ") + "\n"
}
