package recipes

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"bonsai/rules"
)

// A use is one reference: to a declaration or, if a name is not declared, to one that
// stands in for it and counts as failed.
type use struct {
	root, name string // as written; no name: the root is all there is
	to         *decl
	at         hcl.Range
	key        string // of the instance it refers to, if keyed
	keyed      bool
}

// link finds what d refers to and reports what is not declared.
func (l *loader) link(d *decl) {
	if d.root == "var" {
		return // a variable refers to nothing; validations come after all values
	}
	for _, t := range d.traversals() {
		switch root := t.RootName(); {
		case root == "self" && d.rule != nil && isIn(d.postconditions, t.SourceRange()):
		case root == "self" && d.rule != nil:
			l.add(rules.Mistake(t.SourceRange(), "Reference outside a postcondition",
				"self stands for what a step made, in the postcondition blocks of its block."))
			d.uses = append(d.uses, standIn("self", "", t))
		case root != "each":
			d.uses = append(d.uses, l.resolve(t))
		case d.forEach == nil || d.forEach.Range().Overlaps(t.SourceRange()):
			l.add(rules.Mistake(t.SourceRange(), "Reference outside for_each",
				"each.key and each.value stand for one element of for_each, in the other attributes of its block."))
			d.uses = append(d.uses, standIn("each", "", t))
		}
	}
}

// traversals returns every reference in d, in the order of the source.
func (d *decl) traversals() []hcl.Traversal {
	if d.expr != nil {
		return d.expr.Variables()
	}
	return traversalsOf(d.block.Body)
}

// traversalsOf returns every reference in a body and the blocks in it. For JSON, whose
// blocks cannot be told from attributes, the texts in both are searched.
func traversalsOf(body hcl.Body) []hcl.Traversal {
	var all []hcl.Traversal
	if b, ok := body.(*layered); ok {
		for _, l := range b.layers {
			all = append(all, traversalsOf(l)...)
		}
		return all
	}
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		attrs, _ := body.JustAttributes()
		return variablesOf(attrs)
	}
	all = variablesOf(attributesOf(native))
	for _, b := range native.Blocks {
		all = append(all, traversalsOf(b.Body)...)
	}
	return all
}

// attributesOf returns the attributes of a body, whatever blocks are beside them.
func attributesOf(body *hclsyntax.Body) hcl.Attributes {
	attrs := hcl.Attributes{}
	for name, a := range body.Attributes {
		attrs[name] = a.AsHCLAttribute()
	}
	return attrs
}

func variablesOf(attrs hcl.Attributes) []hcl.Traversal {
	var all []hcl.Traversal
	for _, a := range inOrder(attrs) {
		all = append(all, a.Expr.Variables()...)
	}
	return all
}

// resolve returns what a reference refers to.
func (l *loader) resolve(t hcl.Traversal) use {
	root := t.RootName()
	if !l.roots[root] {
		l.unknownRoot(t)
		return standIn(root, "", t)
	}
	name, ok := attribute(t, 1)
	if !ok {
		l.add(rules.Mistake(t.SourceRange(), "Incomplete reference",
			"%[1]s is not a value by itself: name one, as in %[1]s.%[2]s.", root, l.exampleOf(root)))
		return standIn(root, "", t)
	}
	d, ok := l.named[root+"."+name]
	if !ok {
		return l.undeclared(t, root, name)
	}
	u := use{root: root, name: name, to: d, at: t.SourceRange()}
	if d.rule != nil {
		u.key, u.keyed = attribute(t, 2)
		if l.reachesInto(d, t) {
			u.to = standIn(root, name, t).to
		}
	}
	return u
}

// standIn returns a use of something that is not there and has been reported.
func standIn(root, name string, t hcl.Traversal) use {
	d := &decl{root: root, name: name}
	d.fail()
	return use{root: root, name: name, to: d, at: t.SourceRange()}
}

// attribute returns the name at place i of a reference, which is x in both .x and ["x"].
func attribute(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	switch step := t[i].(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

// reachesInto reports a reference to a part of a step: a step is one value.
func (l *loader) reachesInto(d *decl, t hcl.Traversal) bool {
	depth := 2
	if d.forEach != nil {
		depth = 3
	}
	if len(t) <= depth {
		return false
	}
	detail := "A step is passed on whole: write %s."
	if _, index := t[depth].(hcl.TraverseIndex); index && depth == 2 {
		detail = "Only a step with for_each has instances: write %s."
	}
	l.add(rules.Mistake(t.SourceRange(), "Reference into a step", detail, d.address()))
	return true
}

// exampleOf returns a name declared under root.
func (l *loader) exampleOf(root string) string {
	if names := l.namesUnder(root); len(names) > 0 {
		return names[0]
	}
	return "name"
}

// namesUnder returns the names declared under a root, in order.
func (l *loader) namesUnder(root string) []string {
	names := map[string]bool{}
	for _, d := range l.all {
		if d.root == root && d.name != "" {
			names[d.name] = true
		}
	}
	return sortedKeys(names)
}

// undeclared reports a reference to a name that nothing declares: a misspelled one
// wherever it is, one that is like no other the first time, since what is missing is one
// declaration. It is silent if a block was refused whose name is not known: it may be
// the one that is meant.
func (l *loader) undeclared(t hcl.Traversal, root, name string) use {
	u := standIn(root, name, t)
	if l.nameless[root] || l.nameless[""] {
		return u
	}
	advice := "Did you mean " + quote(l.meant(root, name)) + "?"
	if l.meant(root, name) == "" {
		advice = adviceToDeclare(root)
		l.named[u.to.address()] = u.to
	}
	l.add(rules.Mistake(u.at, "Reference to an undeclared name", "There is no %s. %s", u.to.address(), advice))
	return u
}

// meant returns the address that root.name was probably meant to be: of a similar name
// under the root or else of this very name under another one. It returns "" if there is none.
func (l *loader) meant(root, name string) string {
	if near := nearest(name, l.namesUnder(root)); near != "" {
		return root + "." + near
	}
	for _, d := range l.all {
		if d.name == name && d.rule != nil {
			return d.address()
		}
	}
	return ""
}

// adviceToDeclare says how a name under a root comes to be.
func adviceToDeclare(root string) string {
	switch root {
	case "var":
		return "Declare it in a variable block."
	case "local":
		return "Declare it in a locals block."
	}
	return "Declare it in a " + root + " block, or refer to a step that there is."
}

// unknownRoot reports a reference whose first word is nothing.
func (l *loader) unknownRoot(t hcl.Traversal) {
	root := t.RootName()
	detail := "There is no " + quote(root) + ": expressions refer to var.…, local.…, each.… and steps, such as type.name."
	switch near := nearest(root, append(sortedKeys(l.roots), "each")); {
	case root == "variable":
		detail = "Refer to a variable as var.name."
	case root == "locals":
		detail = "Refer to a local as local.name."
	case root == "target" || root == "recipe":
		detail = "A " + root + " block is not a value. Refer to steps instead."
	case len(t) == 1:
		detail = "There is no " + quote(root) + ". If it is a text, put it in quotes."
	case near != "":
		detail = "There is no " + quote(root) + ". Did you mean " + quote(near) + "?"
	}
	l.add(rules.Mistake(t.SourceRange(), "Unknown name", "%s", detail))
}
