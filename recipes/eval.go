package recipes

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"bonsai/rules"
)

// global returns what expressions of a part know that refer to nothing: the functions.
func (p *part) global() *hcl.EvalContext {
	return &hcl.EvalContext{Functions: p.functions}
}

// scope returns what the expressions of one declaration of a part know: the functions and
// what it refers to. ok is false if some of that failed, so that it is unknown.
func (l *loader) scope(p *part, uses []use) (ctx *hcl.EvalContext, ok bool) {
	ok = true
	roots := map[string]map[string]cty.Value{}
	ctx = p.global()
	ctx.Variables = map[string]cty.Value{}
	for _, u := range uses {
		value, known := l.valueOf(u)
		ok = ok && known
		if u.name == "" {
			ctx.Variables[u.root] = value
			continue
		}
		if roots[u.root] == nil {
			roots[u.root] = map[string]cty.Value{}
		}
		if _, set := roots[u.root][u.name]; !set || !known {
			roots[u.root][u.name] = value
		}
	}
	for root, names := range roots {
		if _, whole := ctx.Variables[root]; !whole {
			ctx.Variables[root] = cty.ObjectVal(names)
		}
	}
	return ctx, ok
}

// valueOf returns what a reference gives. It reports a reference to an instance that
// does not exist; known is false after that and if what u refers to failed.
func (l *loader) valueOf(u use) (v cty.Value, known bool) {
	if u.keyed && u.to.keys != nil && !u.to.keys[u.key] {
		l.add(rules.Mistake(u.at, "Reference to an undeclared name", "%s has no instance %s.%s",
			u.to.address(), quote(u.key), didYouMean(u.key, sortedKeys(u.to.keys))))
		return cty.DynamicVal, false
	}
	return u.to.value, !u.to.failed
}

// evaluate gives a declaration its value.
func (l *loader) evaluate(d *decl) {
	switch {
	case d.expr != nil:
		l.evaluateLocal(d)
	case d.rule != nil:
		l.expand(d)
	case d.target:
		l.build(d)
	}
}

func (l *loader) evaluateLocal(d *decl) {
	ctx, ok := l.scope(d.part, d.uses)
	value, diags := d.expr.Value(ctx)
	l.add(diags...)
	if !ok || d.failed || diags.HasErrors() {
		d.fail()
		return
	}
	d.value = value
}

// validateVariables checks every value against the validation blocks of its variable.
// A value that is refused counts as failed.
func (l *loader) validateVariables() {
	for _, v := range l.variables {
		for _, c := range v.validations {
			if !l.validate(v, c) {
				defer v.decl.fail() // after all were checked: validations may refer to each other's variables
			}
		}
	}
}

// validate checks one validation block. It answers false if the value is refused.
func (l *loader) validate(v *variable, c *condition) bool {
	ctx, ok := l.scopeOfValidation(v.decl.part, c.block)
	met, message := l.judge(c, ctx, l.add)
	if !met && ok {
		d := rules.Mistake(v.source, "Value refused by the recipe", "%s: %s\nThe condition is at %s.",
			v.decl.address(), message, c.condition.Expr.Range())
		d.Expression, d.EvalContext = c.condition.Expr, ctx
		l.add(d)
	}
	return met || !ok
}

// truth returns whether v is true. isBool is false if v is neither true nor false.
func truth(v cty.Value) (t, isBool bool) {
	v, err := convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() || !v.IsKnown() {
		return false, false
	}
	return v.True(), true
}

// scopeOfValidation returns the values of the variables that a validation refers to.
func (l *loader) scopeOfValidation(p *part, b *hcl.Block) (*hcl.EvalContext, bool) {
	var uses []use
	for _, t := range traversalsOf(b.Body) {
		uses = append(uses, l.useOfVariable(t, "Reference in a validation", "A validation refers to variables only."))
	}
	return l.scope(p, uses)
}

// useOfVariable is resolve where only variables may be referred to: summary and detail
// report anything else.
func (l *loader) useOfVariable(t hcl.Traversal, summary, detail string) use {
	if root := t.RootName(); root != "var" && l.roots[root] || root == "each" {
		l.add(rules.Mistake(t.SourceRange(), summary, "%s", detail))
		return standIn(root, "", t)
	}
	return l.resolve(t)
}
