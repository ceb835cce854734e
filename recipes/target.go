package recipes

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"bonsai/rules"
)

var targetSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
	{Name: "steps", Required: true}, {Name: "out"}, {Name: "description"},
}}

// build makes the target that a target block declares.
func (l *loader) build(d *decl) {
	ctx, _ := l.scope(d.part, d.uses)
	content, diags := d.block.Body.Content(targetSchema)
	l.add(diags...)
	t := &Target{recipe: l.recipe, Name: d.name, Declared: true, Range: d.at}
	if a, ok := content.Attributes["steps"]; ok {
		l.readSteps(t, a, ctx)
	}
	if a, ok := content.Attributes["out"]; ok {
		t.Out, _ = l.constant(a, ctx)
	}
	if a, ok := content.Attributes["description"]; ok {
		t.Description, _ = l.constant(a, ctx)
	}
	l.recipe.Targets[t.Name] = t
}

// readSteps reads the attribute steps.
func (l *loader) readSteps(t *Target, a *hcl.Attribute, ctx *hcl.EvalContext) {
	v, diags := a.Expr.Value(ctx)
	l.add(diags...)
	if diags.HasErrors() {
		return
	}
	if wrong := l.collectSteps(t, map[*Step]bool{}, v); wrong != "" {
		l.add(rules.Mistake(a.Expr.Range(), "Step expected",
			"A target is a list of references to steps, as in [gguf.model]; there is %s in it.", wrong))
	}
}

// collectSteps adds the steps that v refers to, each once: v is a reference or any
// collection of them. It returns what in v is no reference, or "".
func (l *loader) collectSteps(t *Target, seen map[*Step]bool, v cty.Value) string {
	switch {
	case !v.IsKnown():
		return ""
	case v.IsNull():
		return "null"
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			if wrong := l.collectSteps(t, seen, element); wrong != "" {
				return wrong
			}
		}
		return ""
	case !v.Type().IsCapsuleType():
		return v.Type().FriendlyName()
	}
	s := l.steps[v.EncapsulatedValue()]
	if !seen[s] {
		seen[s] = true
		t.Steps = append(t.Steps, s)
	}
	return ""
}
