package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"bonsai/recipes"
)

// TestOptions says how outcomes of tests are written.
type TestOptions struct {
	Style Style
	JSON  bool
}

type outcomeJSON struct {
	Name     string           `json:"name"`
	File     string           `json:"file"`
	Line     int              `json:"line"`
	Passed   bool             `json:"passed"`
	Failures []diagnosticJSON `json:"failures"`
}

// WriteOutcomes writes how each run of a recipe's tests went, and what failed.
func WriteOutcomes(w io.Writer, outcomes []recipes.Outcome, files map[string]*hcl.File, opt TestOptions) error {
	if opt.JSON {
		return writeJSON(w, outcomesJSON(outcomes, files))
	}
	var b strings.Builder
	p := opt.Style.palette()
	failed := 0
	for _, o := range outcomes {
		word := p.good.Render("pass")
		if o.Failures.HasErrors() {
			word, failed = p.bad.Render("fail"), failed+1
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", word, o.Range.Filename, printable(o.Name))
		if o.Failures.HasErrors() {
			b.WriteByte('\n')
			(&MistakesError{Diagnostics: o.Failures, Files: files}).Write(&b, opt.Style)
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "%s passed, %d failed\n", count(len(outcomes)-failed, "run"), failed)
	_, err := io.WriteString(w, b.String())
	return err
}

func outcomesJSON(outcomes []recipes.Outcome, files map[string]*hcl.File) headed {
	list := []outcomeJSON{}
	for _, o := range outcomes {
		m := &MistakesError{Diagnostics: o.Failures, Files: files}
		j := outcomeJSON{o.Name, o.Range.Filename, o.Range.Start.Line, !o.Failures.HasErrors(), []diagnosticJSON{}}
		for _, d := range o.Failures {
			j.Failures = append(j.Failures, m.json(d))
		}
		list = append(list, j)
	}
	return headed{"test", struct {
		Runs []outcomeJSON `json:"runs"`
	}{list}}
}
