// Package assist helps those who write a recipe: what is wrong with it, what may stand at a
// place, what stands there, where it is declared.
//
// It works on text that is being typed, and knows neither editors nor their protocol. Places are
// bytes of files. Start at [New].
package assist

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"bonsai/recipes"
	"bonsai/recipes/lint"
)

// A Recipe is one as an editor has it: what is typed and not yet saved included.
type Recipe struct {
	language recipes.Language
	files    []recipes.File
	scans    map[string]*scan
	survey   *recipes.Survey
	diags    hcl.Diagnostics
	findings []lint.Finding
}

// A Place is one in a file.
type Place struct {
	File string
	Byte int
}

// New reads a recipe. The language is that of the catalogue in opt.
func New(files []recipes.File, opt recipes.Options, language recipes.Language) *Recipe {
	r := &Recipe{language: language, files: files, scans: map[string]*scan{}}
	for _, f := range files {
		r.scans[f.Name] = &scan{}
		if !strings.HasSuffix(f.Name, ".json") { // of which mistakes are all that is known
			r.scans[f.Name] = scanFile(f, len(f.Bytes)+1)
		}
	}
	r.findings, r.survey, r.diags = lint.Check(files, opt)
	return r
}

// Diagnostics returns the mistakes of the recipe or, if it has none, its warnings.
func (r *Recipe) Diagnostics() hcl.Diagnostics { return r.diags }

// Findings returns what is allowed in the recipe and probably not meant. With mistakes there
// are none.
func (r *Recipe) Findings() []lint.Finding { return r.findings }

// file returns the file of this name.
func (r *Recipe) file(name string) (recipes.File, bool) {
	i := slices.IndexFunc(r.files, func(f recipes.File) bool { return f.Name == name })
	if i < 0 {
		return recipes.File{}, false
	}
	return r.files[i], true
}

// covers says whether a byte is in a range, or just behind it.
func covers(r hcl.Range, at int) bool { return r.Start.Byte <= at && at <= r.End.Byte }
