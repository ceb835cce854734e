package recipes

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Resolved recipe is a recipe with a value in the place of every expression.
type Resolved struct {
	*Recipe
	Variables []Value
	Locals    []Value
	Blocks    []ResolvedBlock // of steps, in the order of Recipe.Steps
}

// A Value is what an attribute, a variable or a local came to.
type Value struct {
	Name  string
	Text  string    // as an expression; a step is its address
	JSON  []byte    // the same in the JSON syntax
	From  string    // of a variable: where its value comes from, such as default
	Range hcl.Range // where it is said
}

// A ResolvedBlock is a block of a step, or one in it.
type ResolvedBlock struct {
	Type       string
	Label      string
	Key        string // of an instance of a step with for_each
	Keyed      bool
	Range      hcl.Range // of the header
	Attributes []Value   // in the order of the source
	Blocks     []ResolvedBlock
}

// Resolve is Load for those who want to see what expressions came to.
func Resolve(files []File, opt Options) (*Resolved, hcl.Diagnostics) {
	r := &Resolved{}
	opt.resolved = r
	l := load(files, opt)
	for _, v := range l.variables {
		if !v.decl.failed {
			value := l.valueOfName(v.decl)
			value.From, value.Range = v.from, v.source
			r.Variables = append(r.Variables, value)
		}
	}
	for _, d := range l.all {
		if d.root == "local" && !d.failed {
			r.Locals = append(r.Locals, l.valueOfName(d))
		}
	}
	var diags hcl.Diagnostics
	r.Recipe, diags = l.finish()
	return r, diags
}

// valueOfName returns what a variable or a local is.
func (l *loader) valueOfName(d *decl) Value { return l.resolvedValue(d.name, d.value, d.at) }

func (l *loader) resolvedValue(name string, v cty.Value, at hcl.Range) Value {
	return Value{Name: name, Text: valueText(v, l.addressOf), JSON: valueJSON(v, l.addressOf), Range: at}
}

// resolve keeps what the expressions of a step came to.
func (x *expansion) resolve(ctx *hcl.EvalContext) {
	into := x.loader.opt.resolved
	if into == nil {
		return
	}
	b := x.resolveBody(x.decl.block.Body, ctx)
	b.Type, b.Label, b.Range = x.decl.root, x.decl.name, x.decl.at
	if x.decl.forEach != nil {
		b.Key, b.Keyed = ctx.Variables["each"].GetAttr("key").AsString(), true
	}
	into.Blocks = append(into.Blocks, b)
}

// resolveBody evaluates a body. What only has a value when the step is built stays as
// it is written.
func (x *expansion) resolveBody(body hcl.Body, ctx *hcl.EvalContext) (b ResolvedBlock) {
	if layers, ok := body.(*layered); ok {
		for _, l := range layers.layers {
			part := x.resolveBody(l, ctx)
			b.Attributes, b.Blocks = append(b.Attributes, part.Attributes...), append(b.Blocks, part.Blocks...)
		}
		return b
	}
	native, ok := body.(*hclsyntax.Body)
	attrs, _ := body.JustAttributes()
	if ok {
		attrs = attributesOf(native)
	}
	for _, a := range inOrder(attrs) {
		b.Attributes = append(b.Attributes, x.resolveAttribute(a, ctx))
	}
	if ok {
		for _, inner := range native.Blocks {
			r := x.resolveBody(inner.Body, ctx)
			r.Type, r.Label, r.Range = inner.Type, strings.Join(inner.Labels, " "), inner.DefRange()
			b.Blocks = append(b.Blocks, r)
		}
	}
	return b
}

func (x *expansion) resolveAttribute(a *hcl.Attribute, ctx *hcl.EvalContext) Value {
	v, diags := a.Expr.Value(ctx)
	if diags.HasErrors() || !v.IsWhollyKnown() {
		source := x.loader.sourceText(a)
		return Value{Name: a.Name, Text: source, JSON: valueJSON(cty.StringVal("${"+source+"}"), nil), Range: a.Range}
	}
	return x.loader.resolvedValue(a.Name, v, a.Range)
}

// valueJSON writes a value in the JSON syntax of the language. A step in it is a reference.
func valueJSON(v cty.Value, address func(any) string) []byte {
	plain, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		switch {
		case !v.IsKnown():
			return cty.NullVal(cty.DynamicPseudoType), nil
		case v.Type().IsCapsuleType() && !v.IsNull():
			return cty.StringVal("${" + address(v.EncapsulatedValue()) + "}"), nil
		}
		return v, nil
	})
	if err != nil {
		return []byte("null")
	}
	b, err := ctyjson.Marshal(plain, plain.Type())
	if err != nil {
		return []byte("null")
	}
	return b
}
