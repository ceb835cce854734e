package recipes

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"bonsai/rules"
)

// A decl is what a recipe declares under a name: a variable, a local, a step or a target.
type decl struct {
	root, name string    // as in a reference: var.model, local.x, codes.body
	at         hcl.Range // the header, or a local's name
	block      *hcl.Block
	part       *part          // that it is declared in
	expr       hcl.Expression // of a local, which has no block
	rule       rules.Rule     // of a step
	target     bool

	own           // of a step: what its block holds beside what the rule reads
	body hcl.Body // what the rule reads

	uses   []use
	value  cty.Value       // what a reference gives
	failed bool            // reported, or behind something that was: say no more about it
	keys   map[string]bool // of the instances of a step with for_each
}

func (d *decl) address() string { return d.root + "." + d.name }

// fail makes references to d unknown, so that who uses it does not complain again.
func (d *decl) fail() { d.failed, d.value = true, cty.DynamicVal }

// declare gives every block its name.
func (l *loader) declare(blocks []sourced) {
	var strange []sourced
	for _, b := range blocks {
		rule, known := l.opt.Catalogue[b.Type]
		switch {
		case b.Type == "include", b.Type == "function": // done
		case b.Type == "recipe":
			l.declareHeader(b)
		case b.Type == "locals":
			l.declareLocals(b)
		case b.Type == "variable":
			l.declareVariable(b)
		case b.Type == "target":
			l.enterBlock(&decl{root: "target", block: b.Block, part: b.part, target: true})
		case known:
			d := &decl{root: b.Type, block: b.Block, part: b.part, rule: rule}
			d.own, d.body = l.ownOf(b.Body)
			l.enterBlock(d)
		default:
			strange = append(strange, b)
		}
	}
	for _, b := range strange {
		l.declareStrange(b)
	}
}

// declareStrange reports a block of a type that does not exist. Its name stays known, under
// this type and the one that was meant, as that of a step that failed.
func (l *loader) declareStrange(b sourced) {
	types := append([]string{"recipe", "variable", "locals", "target", "include", "function"}, sortedKeys(l.opt.Catalogue)...)
	l.add(rules.Mistake(b.TypeRange, "Unsupported block type",
		"There are no blocks of type %s.%s", quote(b.Type), didYouMean(b.Type, types)))
	l.roots[b.Type] = true
	d := &decl{root: b.Type, at: b.DefRange, block: b.Block, part: b.part}
	d.own, _ = l.ownOf(b.Body)
	d.fail()
	l.all = append(l.all, d)
	if len(b.Labels) == 0 {
		l.nameless[""] = true
		return
	}
	d.name = b.Labels[0]
	meant := map[string]string{"variable": "var"}[nearest(b.Type, types)]
	if meant == "" {
		meant = nearest(b.Type, types)
	}
	for _, root := range []string{b.Type, meant} {
		if _, taken := l.named[root+"."+d.name]; !taken {
			l.named[root+"."+d.name] = d
		}
	}
}

// enterBlock declares what has a block with one label. It answers false if the name
// is missing or taken; the block is checked all the same.
func (l *loader) enterBlock(d *decl) bool {
	d.at = d.block.DefRange
	if len(d.block.Labels) > 0 {
		d.name = d.block.Labels[0]
	}
	if l.checkLabel(d.block) {
		return l.enter(d)
	}
	l.all = append(l.all, d)
	l.nameless[d.root] = true
	return false
}

// checkLabel reports a block that does not have one label which references can name.
func (l *loader) checkLabel(b *hcl.Block) bool {
	switch {
	case len(b.Labels) == 0:
		l.add(rules.Mistake(b.DefRange, "Block without a name",
			"A block of type %s has a name in quotes between its type and the brace.", b.Type))
	case len(b.Labels) > 1:
		l.add(rules.Mistake(b.LabelRanges[1], "Block with several names", "A %s block has one name.", b.Type))
	case !hclsyntax.ValidIdentifier(b.Labels[0]):
		l.add(rules.Mistake(b.LabelRanges[0], "Unsuitable name",
			"A name is made of letters, digits, _ and -, and starts with a letter, so that expressions can refer to it; %s is not.",
			quote(b.Labels[0])))
	default:
		return true
	}
	return false
}

// enter makes d known by its address. A second declaration of a name is reported
// and checked, but not referred to.
func (l *loader) enter(d *decl) bool {
	l.all = append(l.all, d)
	first, taken := l.named[d.address()]
	if taken {
		l.add(rules.Mistake(d.at, "Duplicate name", "%s is already declared at %s. Names are unique in a recipe.",
			d.address(), first.at))
		return false
	}
	l.named[d.address()] = d
	return true
}

// declareLocals declares every attribute of a locals block.
func (l *loader) declareLocals(b sourced) {
	l.refuseLabels(b.Block)
	attrs, diags := b.Body.JustAttributes()
	l.add(diags...)
	for _, a := range inOrder(attrs) {
		l.enter(&decl{root: "local", name: a.Name, at: a.NameRange, part: b.part, expr: a.Expr})
	}
}

// refuseLabels reports a label on a block that has none.
func (l *loader) refuseLabels(b *hcl.Block) {
	if len(b.Labels) > 0 {
		l.add(rules.Mistake(b.LabelRanges[0], "Block with a name", "A %s block does not have a name.", b.Type))
	}
}

// inOrder returns attributes in the order of the source.
func inOrder(attrs hcl.Attributes) []*hcl.Attribute {
	var list []*hcl.Attribute
	for _, a := range attrs {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *hcl.Attribute) int { return compareRanges(a.NameRange, b.NameRange) })
	return list
}
