package recipes

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// A Survey is what a recipe declares, and what refers to it: for what looks at a recipe
// rather than building it.
type Survey struct {
	*Recipe
	Declared []*Declaration // in the order of the source, included recipes after what includes them
}

// A Declaration is a name that a recipe declares.
type Declaration struct {
	Root, Name string    // as in a reference: var model, local x, codes body; target gguf
	Range      hcl.Range // of the header, or of a local's name
	Included   bool      // by an include block: it is in another recipe
	Step       bool
	Target     bool
	Value      cty.Value // of a variable or a local; DynamicVal if it has none because of a mistake
	Uses       []Use     // what it refers to, in the order of the source
}

// Address returns the name as references say it.
func (d *Declaration) Address() string { return d.Root + "." + d.Name }

// A Use is a reference to a declaration.
type Use struct {
	Address string // of what it refers to
	Range   hcl.Range
}

// Examine is Load for those who want to know what is declared and used. With mistakes
// the survey holds what could be found out.
func Examine(files []File, opt Options) (*Survey, hcl.Diagnostics) {
	l := load(files, opt)
	more := map[*decl][]hcl.Traversal{} // references that are not among the uses of a declaration
	for _, v := range l.variables {
		for _, c := range v.validations {
			more[v.decl] = append(more[v.decl], traversalsOf(c.block.Body)...)
		}
		if s, ok := l.settings[v.decl.name]; ok {
			more[v.decl] = append(more[v.decl], s.attribute.Expr.Variables()...)
		}
	}
	s := &Survey{}
	for _, d := range l.all {
		declared := &Declaration{
			Root: d.root, Name: d.name, Range: d.at, Included: d.part != nil && d.part.outer != nil,
			Step: d.rule != nil, Target: d.target, Value: d.value,
		}
		if d.failed {
			declared.Value = cty.DynamicVal
		}
		for _, u := range d.uses {
			declared.Uses = append(declared.Uses, Use{u.root + "." + u.name, u.at})
		}
		for _, t := range more[d] {
			if name, ok := attribute(t, 1); ok {
				declared.Uses = append(declared.Uses, Use{t.RootName() + "." + name, t.SourceRange()})
			}
		}
		s.Declared = append(s.Declared, declared)
	}
	var diags hcl.Diagnostics
	s.Recipe, diags = l.finish()
	return s, diags
}
