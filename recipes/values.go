package recipes

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"bonsai/rules"
)

// assignVariables gives every variable its value: that of var.x, else of the last file of
// values that has one, else of BONSAI_VAR_x, else the default.
func (l *loader) assignVariables() {
	byFile := l.valuesOfFiles()
	l.refuseUnknownWords()
	for _, v := range l.variables {
		l.assign(v, byFile)
	}
}

// assign gives one variable its value, after those that its value refers to.
func (l *loader) assign(v *variable, byFile map[string]*given) {
	if v.assigned {
		return
	}
	v.assigned = true
	g := l.given(v, byFile)
	switch {
	case g != nil:
		g = l.suit(v, *g)
	case !v.decl.failed && v.byDefault == nil:
		l.missing(v)
	case !v.decl.failed:
		g = v.byDefault
	}
	if g == nil || v.decl.failed {
		v.decl.fail()
		return
	}
	v.decl.value, v.source, v.from = g.value, g.at, g.from
}

// missing reports a variable that has no value, unless that is the fault of a mistake
// reported already: a misspelled name or a file that could not be read.
func (l *loader) missing(v *variable) {
	if l.valuesLost || l.variablesLost || l.misspelled[v.decl.name] {
		return
	}
	l.add(rules.Mistake(v.decl.at, "Variable without a value",
		"%[1]s has no default and was not given: set var.%[2]s=…, %[2]s = … in a file of values, or BONSAI_VAR_%[2]s.",
		v.decl.address(), v.decl.name))
}

// given returns what a variable was given from outside, or nil.
func (l *loader) given(v *variable, byFile map[string]*given) *given {
	name := v.decl.name
	if text, ok := l.opt.Vars[name]; ok {
		return l.read(v, "var."+name, "word var."+name, text)
	}
	if g, ok := byFile[name]; ok {
		return g
	}
	if text, ok := l.opt.LookupEnv("BONSAI_VAR_" + name); ok {
		return l.read(v, "BONSAI_VAR_"+name, "environment BONSAI_VAR_"+name, text)
	}
	if s, ok := l.settings[name]; ok {
		return l.evaluateSetting(v, s, byFile)
	}
	return nil
}

// A setting is the value that an include block gives to a variable of what it includes.
type setting struct {
	attribute *hcl.Attribute
	part      *part // that the include block is in
}

// evaluateSetting returns the value that an include block gives to v, or nil if that is
// a mistake, which it reports.
func (l *loader) evaluateSetting(v *variable, s *setting, byFile map[string]*given) *given {
	var uses []use
	for _, t := range s.attribute.Expr.Variables() {
		uses = append(uses, l.useOfVariable(t, "Reference in a value", "A value for a variable refers to variables only."))
	}
	for _, u := range uses {
		for _, other := range l.variables {
			if other.decl == u.to {
				l.assign(other, byFile)
			}
		}
		if u.to.value == cty.NilVal { // it is being assigned
			l.add(rules.Mistake(u.at, "Cycle of references", "The value of %s refers to %s, which has no value before it.",
				v.decl.address(), u.to.address()))
			u.to.fail()
		}
	}
	ctx, ok := l.scope(s.part, uses)
	value, diags := s.attribute.Expr.Value(ctx)
	l.add(diags...)
	if !ok || diags.HasErrors() {
		v.decl.failed = true
		return nil
	}
	return &given{value: value, at: s.attribute.Expr.Range(), from: "include"}
}

// read reads a value given as text: as it stands for a variable that is a text, else as an
// expression. origin stands for a file name in diagnostics, and from says it in words.
func (l *loader) read(v *variable, origin, from, text string) *given {
	l.recipe.Files[origin] = &hcl.File{Bytes: []byte(text)}
	at := rangeOf(origin, text)
	if v.constraint == cty.String {
		return &given{value: cty.StringVal(text), at: at, from: from}
	}
	if value, ok := literal(text, origin); ok {
		return &given{value: value, at: at, from: from}
	}
	if !v.decl.failed {
		l.add(rules.Mistake(at, "Unsuitable value for variable", "%s has type %s, and %s is not an expression of that type.",
			v.decl.address(), typeexpr.TypeString(v.constraint), quote(text)))
	}
	v.decl.failed = true
	return nil
}

// literal returns the value of an expression that refers to nothing and calls nothing.
func literal(text, origin string) (cty.Value, bool) {
	b := []byte(text)
	if depth(b) > maxDepth || operators(File{Name: origin, Bytes: b}) > maxOperators || hugeNumber.Match(b) {
		return cty.NilVal, false
	}
	expr, diags := hclsyntax.ParseExpression(b, origin, hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	value, diags := expr.Value(nil)
	return value, !diags.HasErrors()
}

// rangeOf returns the range of a whole text.
func rangeOf(name, text string) hcl.Range {
	end := hcl.Pos{Line: 1 + strings.Count(text, "\n"), Byte: len(text)}
	end.Column = 1 + len([]rune(text[strings.LastIndex(text, "\n")+1:]))
	return hcl.Range{Filename: name, Start: hcl.InitialPos, End: end}
}

// refuseUnknownWords reports the words var.x=… that name no variable.
func (l *loader) refuseUnknownWords() {
	for _, name := range sortedKeys(l.opt.Vars) {
		if !l.isVariable(name) {
			origin := "var." + name
			l.recipe.Files[origin] = &hcl.File{Bytes: []byte(l.opt.Vars[name])}
			l.unknownVariable(rangeOf(origin, l.opt.Vars[name]), name)
		}
	}
}

func (l *loader) isVariable(name string) bool {
	_, known := l.named["var."+name]
	return known
}

// unknownVariable reports a value for a variable that the recipe does not declare.
func (l *loader) unknownVariable(at hcl.Range, name string) {
	var known []string
	for _, v := range l.variables {
		known = append(known, v.decl.name)
	}
	l.misspelled[nearest(name, known)] = true
	if l.variablesLost {
		return // it may be one of those
	}
	l.add(rules.Mistake(at, "Value for an unknown variable", "The recipe declares no variable %s.%s",
		quote(name), didYouMean(name, known)))
}

// valuesOfFiles returns what the files of values give, a later file before an earlier one.
func (l *loader) valuesOfFiles() map[string]*given {
	values := map[string]*given{}
	for _, f := range l.opt.VarFiles {
		for _, a := range l.attributesOf(f) {
			if !l.isVariable(a.Name) {
				l.unknownVariable(a.NameRange, a.Name)
				continue
			}
			value, diags := a.Expr.Value(nil)
			l.add(diags...)
			if diags.HasErrors() {
				l.named["var."+a.Name].failed = true
				continue
			}
			values[a.Name] = &given{value: value, at: a.Expr.Range(), from: "file of values"}
		}
	}
	return values
}

// attributesOf returns the lines of a file of values.
func (l *loader) attributesOf(f File) []*hcl.Attribute {
	body := l.parseFile(f)
	if body == nil {
		l.valuesLost = true
		return nil
	}
	attrs, diags := body.JustAttributes()
	l.add(diags...)
	return inOrder(attrs)
}
