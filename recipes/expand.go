package recipes

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"bonsai/rules"
)

// expand adds the actions of a step, or of every instance of it, to the graph.
func (l *loader) expand(d *decl) {
	ctx, ok := l.scope(d.part, d.uses)
	x := expansion{loader: l, decl: d, body: d.body, sound: ok && !d.failed, reported: map[string]bool{}}
	d.failed = !x.sound
	if d.forEach == nil {
		d.value = x.one(d.address(), ctx)
	} else {
		d.value = x.each(ctx)
	}
	if d.failed {
		d.fail()
	}
}

// An expansion is one block being expanded.
type expansion struct {
	loader *loader
	decl   *decl
	body   hcl.Body
	sound  bool // nothing it refers to failed

	reported map[string]bool // places and kinds of mistakes, see report
}

// one expands a block or an instance of it and returns the reference to it.
func (x *expansion) one(address string, ctx *hcl.EvalContext) cty.Value {
	l := x.loader
	if !x.admit(address, ctx) {
		x.decl.failed = true
		return rules.Unknown()
	}
	from := l.recipe.Graph.Len()
	value, diags := x.decl.rule.Expand(&rules.Expansion{
		Graph: l.recipe.Graph,
		Step:  address,
		Dir:   x.decl.part.dir,
		Range: x.decl.at,
		Read:  l.opt.Saw,
	}, x.body, ctx)
	if diags.HasErrors() {
		x.report(withoutEchoes(diags), ctx)
	}
	if !x.sound || diags.HasErrors() {
		x.decl.failed = true
		return rules.Unknown()
	}
	l.add(diags...) // warnings
	x.provide(from, ctx)
	s := &Step{Address: address, Value: value, Range: x.decl.at}
	ref := l.keep(s)
	x.check(s, ctx)
	x.resolve(ctx)
	return ref
}

// keep makes s a step and a target of the recipe and returns the reference to it.
func (l *loader) keep(s *Step) cty.Value {
	ref := rules.Reference(s.Value)
	l.steps[ref.EncapsulatedValue()] = s
	l.recipe.Steps = append(l.recipe.Steps, s)
	l.recipe.Targets[s.Address] = &Target{recipe: l.recipe, Name: s.Address, Steps: []*Step{s}, Range: s.Range}
	return ref
}

// each expands the instances of a block with for_each and returns the map of the
// references to them.
func (x *expansion) each(ctx *hcl.EvalContext) cty.Value {
	elements, ok := x.elements(ctx)
	if !ok {
		x.decl.failed = true
		return cty.DynamicVal
	}
	x.decl.keys = map[string]bool{}
	refs := map[string]cty.Value{}
	first := len(x.loader.recipe.Steps)
	for _, key := range sortedKeys(elements) {
		instance := ctx.NewChild()
		instance.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{
			"key": cty.StringVal(key), "value": elements[key],
		})}
		x.decl.keys[key] = true
		refs[key] = x.one(x.decl.address()+"["+quote(key)+"]", instance)
	}
	x.loader.recipe.Targets[x.decl.address()] = &Target{
		recipe: x.loader.recipe, Name: x.decl.address(), Steps: x.loader.recipe.Steps[first:], Range: x.decl.at,
	}
	if len(refs) == 0 {
		return cty.MapValEmpty(rules.Unknown().Type())
	}
	return cty.MapVal(refs)
}

// elements returns what for_each goes through. It answers false if that failed.
func (x *expansion) elements(ctx *hcl.EvalContext) (map[string]cty.Value, bool) {
	v, diags := x.decl.forEach.Value(ctx)
	x.loader.add(diags...)
	if diags.HasErrors() || !v.IsKnown() {
		return nil, false
	}
	elements := map[string]cty.Value{}
	if problem := collect(v, elements); problem != "" {
		x.loader.add(rules.Mistake(x.decl.forEach.Range(), "Unsuitable for_each",
			"for_each goes through a map, an object or a set of texts; this is %s.", problem))
		return nil, false
	}
	return elements, true
}

// collect puts the elements of v into elements, by key. It returns what is wrong with v, or "".
func collect(v cty.Value, elements map[string]cty.Value) string {
	t := v.Type()
	switch {
	case v.IsNull():
		return "null"
	case t.IsListType() || t.IsTupleType():
		return "a list: use toset() of texts"
	case !t.IsMapType() && !t.IsObjectType() && (!t.IsSetType() || v.LengthInt() > 0 && t.ElementType() != cty.String):
		return t.FriendlyName()
	}
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		if !key.IsKnown() || key.IsNull() {
			return "a set with null in it"
		}
		elements[key.AsString()] = value
	}
	return ""
}
