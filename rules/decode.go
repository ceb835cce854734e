package rules

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
)

// Mistake returns one error that points at r. The summary names the kind of mistake; the
// detail says what is wrong and what to do.
func Mistake(r hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(format, args...),
		Subject:  &r,
	}
}

// decode reads the attributes and blocks of body into the struct that block points
// to, by its hcl tags.
func decode[T any](body hcl.Body, ctx *hcl.EvalContext) (T, hcl.Diagnostics) {
	var block T
	diags := gohcl.DecodeBody(body, ctx, &block)
	_, _, missing := body.PartialContent(requiredReferences(reflect.TypeFor[T]()))
	return block, append(diags, missing...)
}

// requiredReferences returns the attributes of a block that are expressions and not
// optional: gohcl makes null of them when they are missing, and says nothing.
func requiredReferences(block reflect.Type) *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for i := range block.NumField() {
		f := block.Field(i)
		if name := f.Tag.Get("hcl"); f.Type == reflect.TypeFor[hcl.Expression]() && !strings.Contains(name, ",") {
			s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name, Required: true})
		}
	}
	return s
}

// referenceTo returns the value of the step that expr refers to, which must be a T.
// what says in words what is expected, such as "a checkpoint".
func referenceTo[T any](expr hcl.Expression, ctx *hcl.EvalContext, what string) (T, hcl.Diagnostics) {
	var zero T
	v, diags := expr.Value(ctx)
	if diags.HasErrors() {
		return zero, diags
	}
	step, isStep := Value(v)
	if t, ok := step.(T); ok {
		return t, diags
	}
	found := "a value of type " + v.Type().FriendlyName()
	switch {
	case isStep:
		found = describe(step)
	case v.IsNull():
		found = "null or missing"
	}
	return zero, append(diags, Mistake(expr.Range(), "Wrong kind of reference",
		"This must refer to %s, and it is %s.", what, found))
}

// describe names the kind of a step's value for a diagnostic.
func describe(step any) string {
	if s, ok := step.(interface{ Kind() string }); ok {
		return s.Kind()
	}
	return "another kind of step"
}

// resolve makes a path of a recipe absolute or relative to the recipe's folder.
func resolve(dir, path string) string {
	if filepath.IsAbs(path) || dir == "" {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// attributeRange returns where an attribute of body stands, or fallback.
func attributeRange(body hcl.Body, name string, fallback hcl.Range) hcl.Range {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	if a, ok := content.Attributes[name]; ok {
		return a.Expr.Range()
	}
	return fallback
}

// stringList returns the strings of a list; a missing attribute gives none.
func stringList(expr hcl.Expression, ctx *hcl.EvalContext) ([]string, hcl.Diagnostics) {
	var list []string
	v, diags := expr.Value(ctx)
	if diags.HasErrors() || v.IsNull() {
		return nil, diags
	}
	return list, append(diags, gohcl.DecodeExpression(expr, ctx, &list)...)
}

// unexpected returns a diagnostic for each attribute and block of body: what is left
// once all that a block may hold has been read.
func unexpected(body hcl.Body) hcl.Diagnostics {
	_, diags := body.Content(&hcl.BodySchema{})
	return diags
}

// capital returns s with its first letter in upper case, as a sentence begins.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
