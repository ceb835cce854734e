package recipes

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"golang.org/x/mod/semver"

	"bonsai/rules"
)

// headerSchema is what a recipe block says. All of it is constant: it is read before
// anything has a value.
var headerSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
	{Name: "description"}, {Name: "requires"}, {Name: "numerics"},
}}

// declareHeader reads the recipe block.
func (l *loader) declareHeader(b sourced) {
	l.refuseLabels(b.Block)
	if b.part.headed != nil {
		l.add(rules.Mistake(b.DefRange, "Duplicate recipe block", "A recipe has one recipe block; the first is at %s.", b.part.headed.DefRange))
		return
	}
	b.part.headed = b.Block
	content, diags := b.Body.Content(headerSchema)
	l.add(diags...)
	if a, ok := content.Attributes["description"]; ok {
		l.readHeading(a)
	}
	if a, ok := content.Attributes["requires"]; ok {
		l.checkVersion(a)
	}
	if a, ok := content.Attributes["numerics"]; ok {
		l.readNumerics(a)
	}
}

// readHeading reads the description. That of an outer recipe comes first and stays.
func (l *loader) readHeading(a *hcl.Attribute) {
	if text, ok := l.constant(a, nil); ok && l.recipe.Description == "" {
		l.recipe.Description = text
	}
}

// readNumerics reads which results count as the same.
func (l *loader) readNumerics(a *hcl.Attribute) {
	v, ok := l.constant(a, nil)
	if !ok {
		return
	}
	if v != "shared" && v != "strict" {
		l.add(rules.Mistake(a.Expr.Range(), "Unsupported numerics",
			`Numerics are "shared", or "strict" to keep the results of each backend and version apart; not %s.`, quote(v)))
		return
	}
	if !l.numericsSaid { // by an outer recipe
		l.recipe.Numerics, l.numericsSaid = v, true
	}
}

// constant returns the text of an attribute that may call functions but not refer to
// anything. It answers false if that is a mistake, which it reports.
func (l *loader) constant(a *hcl.Attribute, ctx *hcl.EvalContext) (string, bool) {
	v, diags := a.Expr.Value(ctx)
	l.add(diags...)
	if diags.HasErrors() {
		return "", false
	}
	return l.text(a, v)
}

// text returns the text that v, the value of a, holds.
func (l *loader) text(a *hcl.Attribute, v cty.Value) (string, bool) {
	v, err := convert.Convert(v, cty.String)
	if err != nil || v.IsNull() {
		l.add(rules.Mistake(a.Expr.Range(), "Text expected", "%s is a text in quotes.", a.Name))
		return "", false
	}
	if !v.IsKnown() {
		return "", false
	}
	return v.AsString(), true
}

// checkVersion reports a version of bonsai that does not meet the attribute requires.
func (l *loader) checkVersion(a *hcl.Attribute) {
	constraint, ok := l.constant(a, nil)
	if !ok {
		return
	}
	met, ok := meets(l.opt.Version, constraint)
	switch {
	case !ok:
		l.add(rules.Mistake(a.Expr.Range(), "Unreadable version constraint",
			`requires is a list of comparisons such as ">= 0.1" or ">= 0.1, < 2"; %s is not.`, quote(constraint)))
	case !met:
		l.add(rules.Mistake(a.Expr.Range(), "Unsuitable version of bonsai",
			"This recipe requires bonsai %s; this is %s.", constraint, l.opt.Version))
	}
}

// meets says whether a version fulfils every comparison of a constraint. It answers
// false, false if the constraint cannot be read. A pre-release counts as the version it
// leads to, and anything that is no version, as a build without one, meets every constraint.
func meets(version, constraint string) (met, ok bool) {
	v := semver.Canonical("v" + strings.TrimPrefix(version, "v"))
	v = strings.TrimSuffix(v, semver.Prerelease(v))
	met = true
	for part := range strings.SplitSeq(constraint, ",") {
		number := strings.TrimLeft(strings.TrimSpace(part), "<>=! ")
		op := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(part), number))
		want := semver.Canonical("v" + number)
		test, known := comparisons[op]
		if want == "" || !known {
			return false, false
		}
		met = met && (v == "" || test(semver.Compare(v, want)))
	}
	return met, true
}

// comparisons are what a version constraint is made of, on the result of a comparison.
var comparisons = map[string]func(int) bool{
	">=": func(c int) bool { return c >= 0 },
	">":  func(c int) bool { return c > 0 },
	"<=": func(c int) bool { return c <= 0 },
	"<":  func(c int) bool { return c < 0 },
	"=":  func(c int) bool { return c == 0 },
	"":   func(c int) bool { return c == 0 },
	"!=": func(c int) bool { return c != 0 },
}
