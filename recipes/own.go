package recipes

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"bonsai/rules"
)

// stepSchema is what the block of any step may hold beside what its rule reads.
var stepSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "for_each"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "precondition"}, {Type: "postcondition"}, {Type: "resources"}},
}

// conditionSchema is what says what must be so, and what to say if it is not.
var conditionSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
	{Name: "condition", Required: true}, {Name: "error_message", Required: true},
}}

// own is what a step's block holds that is not its rule's to read.
type own struct {
	forEach        hcl.Expression // or nil
	preconditions  []*condition
	postconditions []*condition
	resources      []*hcl.Block
}

// A condition is what a precondition, a postcondition or a validation block says.
type condition struct {
	block              *hcl.Block
	condition, message *hcl.Attribute
}

// ownOf returns what a block holds that is the language's, and the rest of its body.
func (l *loader) ownOf(body hcl.Body) (o own, rest hcl.Body) {
	content, rest, diags := body.PartialContent(stepSchema)
	l.add(diags...)
	if a, ok := content.Attributes["for_each"]; ok {
		o.forEach = a.Expr
	}
	o.preconditions = l.conditionsIn(content.Blocks.OfType("precondition"))
	o.postconditions = l.conditionsIn(content.Blocks.OfType("postcondition"))
	o.resources = content.Blocks.OfType("resources")
	return o, less(body, rest)
}

// less returns body without what stepSchema names. rest is what HCL leaves of it, in
// which those parts are hidden from HCL, not from those who look into the body.
func less(body, rest hcl.Body) hcl.Body {
	switch body := body.(type) {
	case *hclsyntax.Body:
		plain := *body
		plain.Attributes = maps.Clone(body.Attributes)
		delete(plain.Attributes, "for_each")
		plain.Blocks = slices.DeleteFunc(slices.Clone(body.Blocks), func(b *hclsyntax.Block) bool {
			return slices.ContainsFunc(stepSchema.Blocks, func(s hcl.BlockHeaderSchema) bool { return s.Type == b.Type })
		})
		return &plain
	case *layered:
		var layers []hcl.Body
		for _, l := range body.layers {
			_, rest, _ := l.PartialContent(stepSchema)
			layers = append(layers, less(l, rest))
		}
		return layer(layers...)
	}
	return rest
}

// conditionsIn reads blocks with a condition, those that are whole.
func (l *loader) conditionsIn(blocks hcl.Blocks) (list []*condition) {
	for _, b := range blocks {
		content, diags := b.Body.Content(conditionSchema)
		l.add(diags...)
		if !diags.HasErrors() {
			list = append(list, &condition{b, content.Attributes["condition"], content.Attributes["error_message"]})
		}
	}
	return list
}

// isIn says whether a place is in one of the conditions.
func isIn(list []*condition, at hcl.Range) bool {
	return slices.ContainsFunc(list, func(c *condition) bool {
		return c.condition.Expr.Range().Overlaps(at) || c.message.Expr.Range().Overlaps(at)
	})
}

// judge evaluates a condition. met is true as well if it has no value, because of a mistake
// that is reported. The diagnostic for one that is not met begins with message.
func (l *loader) judge(c *condition, ctx *hcl.EvalContext, say func(...*hcl.Diagnostic)) (met bool, message string) {
	v, diags := c.condition.Expr.Value(ctx)
	text, more := c.message.Expr.Value(ctx)
	say(append(diags, more...)...)
	if diags.HasErrors() || more.HasErrors() || !v.IsKnown() {
		return true, ""
	}
	message, ok := l.text(c.message, text)
	if !ok {
		return true, ""
	}
	met, isBool := truth(v)
	if !isBool {
		say(rules.Mistake(c.condition.Expr.Range(), "true or false expected", "A condition is true or false; this one is %s.",
			v.Type().FriendlyName()))
	}
	return met || !isBool, message
}
