// Package lint finds what is allowed in a recipe and is still not what its author wants.
//
// It knows the language, not what a block means. A comment on the line of a finding or on the
// one before says that it is meant: lint:ignore, names of checks with commas between, and why.
// Start at [Check].
package lint

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"bonsai/recipes"
)

// A Finding is one place that is not what its author wants.
type Finding struct {
	ID    string    // of the check
	What  string    // a sentence on this place
	Why   string    // a sentence on all places that the check finds
	Range hcl.Range // the place
	Fix   *Edit     // what puts it right, nil if that takes thought
}

// An Edit puts a text in the place of another.
type Edit struct {
	Range hcl.Range
	Text  string
}

// A Rule is one check.
type Rule struct {
	ID   string
	Why  string // a sentence
	find func(*search)
}

// Rules returns every check, in order of their names.
func Rules() []Rule {
	return []Rule{
		{"absolute-path", "A path from the root of this machine is elsewhere on another; one that is relative starts from the recipe's folder, and a variable can be given.", absolutePaths},
		{"environment-value", "What env() gives is other on another machine and shows nowhere in the recipe; a variable shows it, and BONSAI_VAR_NAME sets it too.", environmentValues},
		{"redundant-template", "A text that is nothing but one ${…} is the same as the expression in it.", redundantTemplates},
		{"shadowed-name", "A for that calls its element by the first word of references hides what they refer to.", shadowedNames},
		{"single-for-each", "for_each over fewer than two elements makes addresses longer and nothing else.", singleForEach},
		{"undescribed-target", "Who builds a recipe is shown the descriptions of its targets.", undescribedTargets},
		{"unknown-check", "A comment that ignores a check which does not exist ignores nothing.", unknownChecks},
		{"unreached-step", "Of a recipe that declares targets, a step that none of them needs is built by no one.", unreachedSteps},
		{"unused-function", "A function that nothing calls says nothing.", unusedFunctions},
		{"unused-local", "A local that nothing refers to says nothing.", unusedLocals},
		{"unused-variable", "A variable that nothing refers to changes nothing, whatever it is given.", unusedVariables},
	}
}

// A search is the search of one recipe.
type search struct {
	survey   *recipes.Survey
	bodies   []*hclsyntax.Body // of the recipe's own files, not those included
	inJSON   bool              // some of the files are JSON, whose expressions are not looked into
	comments []comment
	rule     Rule
	found    []Finding
}

// Check returns what is found in a recipe, in the order of the source, and its mistakes. With
// mistakes nothing is looked for.
func Check(files []recipes.File, opt recipes.Options) ([]Finding, *recipes.Survey, hcl.Diagnostics) {
	survey, diags := recipes.Examine(files, opt)
	if diags.HasErrors() {
		return nil, survey, diags
	}
	s := &search{survey: survey}
	for _, f := range files {
		if body, ok := survey.Files[f.Name].Body.(*hclsyntax.Body); ok {
			s.bodies = append(s.bodies, body)
			s.comments = append(s.comments, commentsOf(f)...)
		} else {
			s.inJSON = true
		}
	}
	for _, r := range Rules() {
		s.rule = r
		r.find(s)
	}
	found := slices.DeleteFunc(s.found, s.ignored)
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Range.Filename, b.Range.Filename), cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte))
	})
	return found, survey, nil
}

// add keeps a finding of the check that is searching.
func (s *search) add(at hcl.Range, what string) *Finding {
	s.found = append(s.found, Finding{ID: s.rule.ID, What: what, Why: s.rule.Why, Range: at})
	return &s.found[len(s.found)-1]
}

// Apply returns a file with the edits of findings in it.
func Apply(f recipes.File, found []Finding) []byte {
	var edits []*Edit
	for _, one := range found {
		if one.Fix != nil && one.Fix.Range.Filename == f.Name {
			edits = append(edits, one.Fix)
		}
	}
	slices.SortFunc(edits, func(a, b *Edit) int { return cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte) })
	var text []byte
	done := 0
	for _, e := range edits {
		if e.Range.Start.Byte < done {
			continue // inside another, and put right the next time
		}
		text = append(append(text, f.Bytes[done:e.Range.Start.Byte]...), e.Text...)
		done = e.Range.End.Byte
	}
	return append(text, f.Bytes[done:]...)
}

// A comment is one that ignores checks.
type comment struct {
	at     hcl.Range
	alone  bool // on its line: it reaches the next one
	checks []string
}

// commentsOf returns the comments of a file that ignore checks.
func commentsOf(f recipes.File) (list []comment) {
	tokens, _ := hclsyntax.LexConfig(f.Bytes, f.Name, hcl.InitialPos)
	for _, t := range tokens {
		if t.Type != hclsyntax.TokenComment {
			continue
		}
		_, rest, ok := strings.Cut(string(t.Bytes), "lint:ignore ")
		if names := strings.Fields(rest); ok && len(names) > 0 {
			before := f.Bytes[:t.Range.Start.Byte]
			before = before[bytes.LastIndexByte(before, '\n')+1:]
			alone := len(bytes.TrimSpace(before)) == 0
			list = append(list, comment{t.Range, alone, strings.Split(names[0], ",")})
		}
	}
	return list
}

// ignored says whether a comment on a finding's line or the one before ignores it.
func (s *search) ignored(f Finding) bool {
	return slices.ContainsFunc(s.comments, func(c comment) bool {
		after := f.Range.Start.Line - c.at.Start.Line
		return c.at.Filename == f.Range.Filename && (after == 0 || after == 1 && c.alone) && slices.Contains(c.checks, f.ID)
	})
}
