package recipes

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// What a diagnostic shows of the values in an expression.
const (
	maxShown  = 6   // values
	maxLength = 100 // code points of one
)

// withValues returns d with the values that its expression refers to in its text.
func withValues(d *hcl.Diagnostic) *hcl.Diagnostic {
	if d.Expression == nil || d.EvalContext == nil {
		return d
	}
	shown := *d
	shown.Expression, shown.EvalContext = nil, nil
	if text := valuesIn(d.EvalContext, d.Expression); text != "" {
		shown.Detail += "\n" + text
	}
	return &shown
}

// valuesIn says in a line what the values are that expressions refer to, each once, or "".
// Steps have none to show.
func valuesIn(ctx *hcl.EvalContext, exprs ...hcl.Expression) string {
	var lines []string
	seen := map[string]bool{}
	for _, e := range exprs {
		for _, t := range e.Variables() {
			v, diags := t.TraverseAbs(ctx)
			name := traversalText(t)
			if diags.HasErrors() || seen[name] || !v.IsWhollyKnown() || holdsStep(v.Type()) || standsForStep(v) {
				continue
			}
			seen[name] = true
			lines = append(lines, fmt.Sprintf("%s is %s", name, cut(valueText(v, nil))))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	if len(lines) > maxShown {
		lines = append(lines[:maxShown], "…")
	}
	return strings.Join(lines, "; ") + "."
}

// standsForStep says whether v is what portable makes of a step.
func standsForStep(v cty.Value) bool {
	return v.Type() == cty.String && !v.IsNull() && strings.HasPrefix(v.AsString(), stepMark)
}

// cut shortens a text to maxLength code points.
func cut(s string) string {
	runes := []rune(s)
	if len(runes) <= maxLength {
		return s
	}
	return string(runes[:maxLength-1]) + "…"
}

// traversalText writes a reference as an expression does.
func traversalText(t hcl.Traversal) string {
	text := t.RootName()
	for _, step := range t[1:] {
		switch step := step.(type) {
		case hcl.TraverseAttr:
			text += "." + step.Name
		case hcl.TraverseIndex:
			text += "[" + valueText(step.Key, nil) + "]"
		}
	}
	return text
}

// valueText writes a value as an expression, in one line. address says what a step in it
// is called; without it a step is <step>.
func valueText(v cty.Value, address func(any) string) string {
	switch t := v.Type(); {
	case !v.IsKnown():
		return "<unknown>"
	case v.IsNull():
		return "null"
	case t.IsCapsuleType() && address != nil:
		return address(v.EncapsulatedValue())
	case t.IsCapsuleType():
		return "<step>"
	case t.IsObjectType() || t.IsMapType():
		return entriesText(v, address)
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		var parts []string
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			parts = append(parts, valueText(element, address))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return string(hclwrite.TokensForValue(v).Bytes())
}

// entriesText is valueText of a map or an object.
func entriesText(v cty.Value, address func(any) string) string {
	var parts []string
	for it := v.ElementIterator(); it.Next(); {
		key, element := it.Element()
		name := string(hclwrite.TokensForValue(cty.ObjectVal(map[string]cty.Value{key.AsString(): cty.True})).Bytes())
		name, _, _ = strings.Cut(strings.TrimSpace(strings.Trim(name, "{}\n ")), " = ")
		parts = append(parts, name+" = "+valueText(element, address))
	}
	if len(parts) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
