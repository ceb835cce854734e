package recipes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"bonsai/rules"
)

// A Definition is a function that a recipe defines.
type Definition struct {
	Name     string
	Params   []string
	Variadic string // parameter that gets the arguments beyond Params, as a tuple; "" for none
	Result   string // an expression, as in the source
	JSON     bool   // it is in the JSON syntax
}

// A definition is a Definition where it stands.
type definition struct {
	Definition
	at     hcl.Range // the header of the block
	result hcl.Expression
	calls  []string // names of functions that it calls
}

var functionSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
	{Name: "params", Required: true}, {Name: "variadic_param"}, {Name: "result", Required: true},
}}

// define adds to what each part can call the functions that it defines.
func (l *loader) define(blocks []sourced) {
	own := map[*part]map[string]*definition{}
	var parts []*part
	for _, b := range blocks {
		if b.Type != "function" || !l.checkLabel(b.Block) || !l.isFree(b, own[b.part]) {
			continue
		}
		if own[b.part] == nil {
			own[b.part] = map[string]*definition{}
			parts = append(parts, b.part)
		}
		own[b.part][b.Labels[0]] = l.definition(b)
	}
	for _, p := range parts {
		l.refuseRecursion(own[p])
		p.own = own[p]
		p.functions = withDefinitions(p.functions, p.own)
	}
}

// isFree reports a function whose name is taken.
func (l *loader) isFree(b sourced, own map[string]*definition) bool {
	name := b.Labels[0]
	if _, taken := b.part.functions[name]; taken {
		l.add(rules.Mistake(b.LabelRanges[0], "Duplicate name", "%s is a function of the language. Give this one another name.", name))
		return false
	}
	if first, taken := own[name]; taken {
		l.add(rules.Mistake(b.LabelRanges[0], "Duplicate name", "The function %s is already defined at %s.", name, first.at))
		return false
	}
	return true
}

// definition reads the body of a function block. The result of one with a mistake is nil:
// its calls have unknown values.
func (l *loader) definition(b sourced) *definition {
	d := &definition{at: b.DefRange, Definition: Definition{Name: b.Labels[0]}}
	content, diags := b.Body.Content(functionSchema)
	l.add(diags...)
	if diags.HasErrors() {
		return d
	}
	result := content.Attributes["result"]
	if !l.readParams(d, content) || !l.seesParams(d, result.Expr) {
		return d
	}
	d.result, d.JSON = result.Expr, strings.HasSuffix(result.Range.Filename, ".json")
	d.Result = l.sourceText(result)
	d.calls = callsIn(d.Result, d.result, d.JSON)
	return d
}

// readParams reads the names of the parameters. It answers false for a mistake.
func (l *loader) readParams(d *definition, content *hcl.BodyContent) bool {
	list, diags := hcl.ExprList(content.Attributes["params"].Expr)
	l.add(diags...)
	if v, given := content.Attributes["variadic_param"]; given {
		list = append(slices.Clone(list), v.Expr)
	}
	seen := map[string]bool{}
	for _, e := range list {
		name := hcl.ExprAsKeyword(e)
		switch {
		case name == "":
			diags = append(diags, rules.Mistake(e.Range(), "Unsuitable name", "A parameter is a name without quotes, as in params = [a, b]."))
		case seen[name]:
			diags = append(diags, rules.Mistake(e.Range(), "Duplicate name", "There are two parameters called %s.", name))
		}
		seen[name] = true
		d.Params = append(d.Params, name)
	}
	l.add(diags...)
	if _, given := content.Attributes["variadic_param"]; given {
		last := len(d.Params) - 1
		d.Params, d.Variadic = d.Params[:last], d.Params[last]
	}
	return !diags.HasErrors()
}

// seesParams reports references of a result to anything but parameters.
func (l *loader) seesParams(d *definition, result hcl.Expression) bool {
	known := slices.Clone(d.Params)
	if d.Variadic != "" {
		known = append(known, d.Variadic)
	}
	sound := true
	for _, t := range result.Variables() {
		if name := t.RootName(); !slices.Contains(known, name) {
			l.add(rules.Mistake(t.SourceRange(), "Reference to an undeclared name",
				"A function sees its parameters alone, and %s is none.%s", quote(name), didYouMean(name, known)))
			sound = false
		}
	}
	return sound
}

// sourceText returns the text of an attribute's expression.
func (l *loader) sourceText(a *hcl.Attribute) string {
	r := a.Expr.Range()
	return string(r.SliceBytes(l.recipe.Files[r.Filename].Bytes))
}

// callInJSON finds the names before an opening parenthesis. HCL does not tell what an
// expression in JSON calls; a name in plain text is found too.
var callInJSON = regexp.MustCompile(`([\pL_][\pL\pN_-]*)\s*\(`)

// callsIn returns the names of the functions that an expression calls.
func callsIn(text string, e hcl.Expression, inJSON bool) (names []string) {
	if inJSON {
		for _, m := range callInJSON.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return names
	}
	native, ok := e.(hclsyntax.Expression)
	if !ok {
		return nil
	}
	_ = hclsyntax.VisitAll(native, func(e hclsyntax.Node) hcl.Diagnostics {
		if call, ok := e.(*hclsyntax.FunctionCallExpr); ok {
			names = append(names, call.Name)
		}
		return nil
	})
	return names
}

// refuseRecursion reports functions that call themselves, directly or not.
func (l *loader) refuseRecursion(own map[string]*definition) {
	s := recursion{own: own, state: map[string]state{}}
	for _, name := range sortedKeys(own) {
		if chain := s.visit(name, nil); chain != nil {
			l.add(rules.Mistake(own[chain[0]].at, "Cycle of functions",
				"%s\nA function may not call itself, directly or not: take one of these calls away.", strings.Join(chain, " → ")))
			for _, member := range chain {
				own[member].result = nil
			}
		}
	}
}

// A recursion is a depth-first search through calls.
type recursion struct {
	own   map[string]*definition
	state map[string]state
}

// visit returns the chain of calls from a function back to itself, or nil.
func (s *recursion) visit(name string, path []string) []string {
	d, defined := s.own[name]
	path = append(slices.Clone(path), name)
	switch {
	case !defined || d.result == nil || s.state[name] == done:
		return nil
	case s.state[name] == open:
		return path[slices.Index(path, name):]
	}
	s.state[name] = open
	for _, called := range d.calls {
		if chain := s.visit(called, path); chain != nil {
			return chain
		}
	}
	s.state[name] = done
	return nil
}

// withDefinitions returns all functions and those that a recipe defines over them.
func withDefinitions(all map[string]function.Function, own map[string]*definition) map[string]function.Function {
	all = maps.Clone(all)
	for name, d := range own {
		all[name] = d.over(all, d.result)
	}
	return all
}

// over returns the function with this result, which calls those of all. Without a result
// its values are unknown.
func (d *Definition) over(all map[string]function.Function, result hcl.Expression) function.Function {
	spec := &function.Spec{}
	for _, p := range d.Params {
		spec.Params = append(spec.Params, function.Parameter{Name: p, Type: cty.DynamicPseudoType, AllowNull: true})
	}
	if d.Variadic != "" {
		spec.VarParam = &function.Parameter{Name: d.Variadic, Type: cty.DynamicPseudoType, AllowNull: true}
	}
	value := func(args []cty.Value) (cty.Value, error) {
		if result == nil {
			return cty.DynamicVal, nil
		}
		names := map[string]cty.Value{}
		for i, p := range d.Params {
			names[p] = args[i]
		}
		if d.Variadic != "" {
			names[d.Variadic] = cty.TupleVal(args[len(d.Params):])
		}
		v, diags := result.Value(&hcl.EvalContext{Variables: names, Functions: all})
		if diags.HasErrors() {
			return cty.DynamicVal, fmt.Errorf("%s: %s", subject(diags[0]), strings.TrimRight(diags[0].Detail, "."))
		}
		return v, nil
	}
	// To find the type by the value would evaluate it twice, and calls of calls 2ⁿ times.
	spec.Type = function.StaticReturnType(cty.DynamicPseudoType)
	spec.Impl = func(args []cty.Value, _ cty.Type) (cty.Value, error) { return value(args) }
	return function.New(spec)
}

// reached returns the definitions that an expression which calls these functions needs,
// in the order of their names.
func reached(own map[string]*definition, calls []string) (needed []Definition) {
	seen := map[string]bool{}
	for next := slices.Clone(calls); len(next) > 0; next = next[1:] {
		if d, ok := own[next[0]]; ok && !seen[d.Name] {
			seen[d.Name] = true
			needed = append(needed, d.Definition)
			next = append(next, d.calls...)
		}
	}
	slices.SortFunc(needed, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return needed
}
