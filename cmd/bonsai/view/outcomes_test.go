package view_test

import (
	"bytes"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"bonsai/cmd/bonsai/view"
	"bonsai/recipes"
	"bonsai/recipes/lint"
)

// place is the word salt in a file.
func place() (hcl.Range, map[string]*hcl.File) {
	at := hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 1, Column: 5, Byte: 4}, End: hcl.Pos{Line: 1, Column: 9, Byte: 8}}
	return at, map[string]*hcl.File{"a.hcl": {Bytes: []byte("x = salt\n")}}
}

func TestWriteOutcomes(t *testing.T) {
	at, files := place()
	outcomes := []recipes.Outcome{
		{Name: "good", Range: at},
		{Name: "bad\x1b", Range: at, Failures: hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Assertion failed", Detail: "Not salted.", Subject: &at}}},
	}
	for _, c := range []struct {
		opt  view.TestOptions
		want string
	}{
		{view.TestOptions{Style: view.Style{Width: 80}}, `pass  a.hcl: good
fail  a.hcl: bad` + "\uFFFD" + `

error: Assertion failed
  a.hcl:1,5
     1 | x = salt
       |     ^^^^
  Not salted.

1 run passed, 1 failed
`},
		{view.TestOptions{JSON: true}, `{"version":1,"type":"test","runs":[{"name":"good","file":"a.hcl","line":1,"passed":true,"failures":[]},` +
			`{"name":"bad\u001b","file":"a.hcl","line":1,"passed":false,"failures":[{"severity":"error","summary":"Assertion failed",` +
			`"detail":"Not salted.","file":"a.hcl","start":{"line":1,"column":5,"byte":4},"end":{"line":1,"column":9,"byte":8},"snippet":"x = salt"}]}]}` + "\n"},
	} {
		var b bytes.Buffer
		if err := view.WriteOutcomes(&b, outcomes, files, c.opt); err != nil || b.String() != c.want {
			t.Errorf("WriteOutcomes wrote, with error %v,\n%s\nwant\n%s", err, &b, c.want)
		}
	}
}

func TestWriteFindings(t *testing.T) {
	at, files := place()
	found := []lint.Finding{{ID: "too-salty", What: "This is salt.", Why: "Salt is bad.", Range: at, Fix: &lint.Edit{Range: at}}}
	for _, c := range []struct {
		found []lint.Finding
		fixed int
		opt   view.LintOptions
		want  string
	}{
		{nil, 0, view.LintOptions{}, ""},
		{nil, 2, view.LintOptions{}, "2 fixed\n"},
		{found, 1, view.LintOptions{Style: view.Style{Width: 80}}, `too-salty: This is salt.
  a.hcl:1,5
     1 | x = salt
       |     ^^^^
  Salt is bad.

1 finding; 1 fixed; fix=true fixes 1; a comment lint:ignore NAME on the line before keeps one silent
`},
		{found, 0, view.LintOptions{JSON: true}, `{"version":1,"type":"lint","fixed":0,"findings":[{"id":"too-salty","what":"This is salt.","why":"Salt is bad.",` +
			`"file":"a.hcl","start":{"line":1,"column":5,"byte":4},"end":{"line":1,"column":9,"byte":8},"fixable":true}]}` + "\n"},
	} {
		var b bytes.Buffer
		if err := view.WriteFindings(&b, c.found, c.fixed, files, c.opt); err != nil || b.String() != c.want {
			t.Errorf("WriteFindings wrote, with error %v,\n%s\nwant\n%s", err, &b, c.want)
		}
	}
}
