package recipes

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A Console evaluates expressions as if they stood in a recipe.
type Console struct{ loader *loader }

// Converse is Load for those who have questions about the recipe. With mistakes in the recipe
// only Files of what it returns are of use.
func Converse(files []File, opt Options) (*Console, *Recipe, hcl.Diagnostics) {
	l := load(files, opt)
	r, diags := l.finish()
	return &Console{l}, r, diags
}

// Evaluate returns what an expression comes to, as an expression and in the JSON
// syntax. name is what diagnostics call the place of the text, and is added to the
// recipe's Files.
func (c *Console) Evaluate(name, text string) (Value, hcl.Diagnostics) {
	l := c.loader
	named := maps.Clone(l.named) // what is not declared is remembered there
	defer func() { l.named, l.diags, l.reported = named, nil, map[string]bool{} }()
	l.diags, l.reported = nil, map[string]bool{}
	file := File{Name: name, Bytes: []byte(text)}
	l.recipe.Files[name] = &hcl.File{Bytes: file.Bytes}
	if !l.checkLimits(file) {
		return Value{}, l.diags
	}
	expr, diags := hclsyntax.ParseExpression(file.Bytes, name, hcl.InitialPos)
	l.add(diags...)
	if diags.HasErrors() {
		return Value{}, l.diags
	}
	d := &decl{root: "console", name: "expression", at: expr.Range(), expr: expr, part: l.root}
	l.link(d)
	l.evaluateLocal(d)
	if l.diags.HasErrors() {
		return Value{}, l.diags
	}
	return l.valueOfName(d), l.diags
}
