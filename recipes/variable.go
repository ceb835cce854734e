package recipes

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"bonsai/rules"
)

// A variable is what a variable block says.
type variable struct {
	decl        *decl
	constraint  cty.Type           // cty.DynamicPseudoType: any
	defaults    *typeexpr.Defaults // of optional attributes in the type; may be nil
	byDefault   *given             // nil: it has to be given
	nullable    bool
	validations []*condition
	source      hcl.Range // of its value
	from        string    // of its value, in words
	assigned    bool      // its value was looked for
}

// A given is a value for a variable and where it comes from.
type given struct {
	value cty.Value
	at    hcl.Range
	from  string // in words
}

var variableSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "description"}, {Name: "type"}, {Name: "default"}, {Name: "nullable"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "validation"}},
}

// declareVariable reads a variable block.
func (l *loader) declareVariable(b sourced) {
	v := &variable{decl: &decl{root: "var", block: b.Block, part: b.part}, constraint: cty.DynamicPseudoType, nullable: true}
	named := l.enterBlock(v.decl)
	content, diags := b.Body.Content(variableSchema)
	l.add(diags...)
	v.decl.failed = !named || diags.HasErrors()
	v.validations = l.conditionsIn(content.Blocks)
	attrs := content.Attributes
	l.readDescription(v, attrs["description"])
	l.readNullable(v, attrs["nullable"])
	l.readType(v, attrs["type"])
	l.readDefault(v, attrs["default"])
	if attrs["type"] == nil {
		v.constraint = typeOfDefault(v.byDefault)
	}
	l.variables = append(l.variables, v)
}

// readDescription checks a description, which is for those who read the recipe.
func (l *loader) readDescription(v *variable, a *hcl.Attribute) {
	if a != nil {
		l.constant(a, v.decl.part.global())
	}
}

func (l *loader) readNullable(v *variable, a *hcl.Attribute) {
	if a == nil {
		return
	}
	value, diags := a.Expr.Value(nil)
	l.add(diags...)
	if diags.HasErrors() {
		return
	}
	var ok bool
	if v.nullable, ok = truth(value); !ok {
		l.add(rules.Mistake(a.Expr.Range(), "true or false expected", "nullable is true or false."))
		v.nullable = true
	}
}

func (l *loader) readType(v *variable, a *hcl.Attribute) {
	if a == nil {
		return
	}
	constraint, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
	l.add(diags...)
	if diags.HasErrors() {
		v.decl.failed = true
		return
	}
	v.constraint, v.defaults = constraint, defaults
}

func (l *loader) readDefault(v *variable, a *hcl.Attribute) {
	if a == nil {
		return
	}
	value, diags := a.Expr.Value(v.decl.part.global())
	l.add(diags...)
	if diags.HasErrors() {
		v.decl.failed = true
		return
	}
	v.byDefault = l.suit(v, given{value: value, at: a.Expr.Range(), from: "default"})
	v.decl.failed = v.decl.failed || v.byDefault == nil
}

// typeOfDefault returns the type of a variable that does not state one: that of its
// default if that is a text, number or bool, text if there is no default, else any.
func typeOfDefault(d *given) cty.Type {
	switch {
	case d == nil:
		return cty.String
	case d.value.Type().IsPrimitiveType():
		return d.value.Type()
	}
	return cty.DynamicPseudoType
}

// suit returns g as a value of the variable's type, or nil if it is none, which it reports.
func (l *loader) suit(v *variable, g given) *given {
	if v.defaults != nil && !g.value.IsNull() {
		g.value = v.defaults.Apply(g.value)
	}
	value, err := convert.Convert(g.value, v.constraint)
	if err != nil {
		l.add(rules.Mistake(g.at, "Unsuitable value for variable", "%s has type %s: %s.",
			v.decl.address(), typeexpr.TypeString(v.constraint), typeError(err)))
		return nil
	}
	if value.IsNull() && !v.nullable {
		l.add(rules.Mistake(g.at, "Unsuitable value for variable", "%s may not be null: it is not nullable.",
			v.decl.address()))
		return nil
	}
	return &given{value: value, at: g.at, from: g.from}
}

// typeError words why a value does not convert, with the path inside the value.
func typeError(err error) string {
	if at, ok := err.(cty.PathError); ok && len(at.Path) > 0 { //nolint:errorlint // convert returns it unwrapped
		return fmt.Sprintf("at %s, %s", pathString(at.Path), at.Error())
	}
	return err.Error()
}

// pathString writes a path inside a value as an expression does, such as [0].name.
func pathString(p cty.Path) string {
	var s string
	for _, step := range p {
		switch step := step.(type) {
		case cty.GetAttrStep:
			s += "." + step.Name
		case cty.IndexStep:
			if step.Key.Type() == cty.String {
				s += "[" + quote(step.Key.AsString()) + "]"
			} else {
				s += "[" + step.Key.AsBigFloat().String() + "]"
			}
		}
	}
	return s
}
