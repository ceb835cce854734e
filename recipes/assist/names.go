package assist

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"bonsai/recipes"
)

// Definition returns where what stands at a place is declared, if it is a reference, a
// declaration or the name of an included recipe.
func (r *Recipe) Definition(at Place) (hcl.Range, bool) {
	root, name, _, ok := r.nameAt(at)
	if !ok {
		return hcl.Range{}, false
	}
	if d := r.declaration(root, name); d != nil {
		return d.at, true
	}
	for _, d := range r.survey.Declared { // in an included recipe
		if d.Root == root && d.Name == name {
			return d.Range, true
		}
	}
	return hcl.Range{}, false
}

// nameAt returns the name that stands at a place, in a reference or where it is declared.
func (r *Recipe) nameAt(at Place) (root, name string, where hcl.Range, ok bool) {
	s := r.scans[at.File]
	if s == nil {
		return "", "", hcl.Range{}, false
	}
	for _, ref := range s.references {
		if covers(ref.whole, at.Byte) && r.isNamed(ref) {
			return ref.root, ref.name, ref.whole, true
		}
	}
	for _, d := range s.declared {
		if d.name != "" && covers(d.at, at.Byte) {
			return d.root, d.name, d.at, true
		}
	}
	return "", "", hcl.Range{}, false
}

// isNamed says whether a reference is to what a recipe declares: some functions are the
// language's.
func (r *Recipe) isNamed(ref reference) bool {
	if ref.root == "function" {
		return r.declaration(ref.root, ref.name) != nil
	}
	return r.isRoot(ref.root)
}

// isRoot says whether references begin with a word.
func (r *Recipe) isRoot(word string) bool {
	b := r.language.Block(word)
	return word == "var" || word == "local" || b != nil && b.Step
}

// declaration returns where the recipe's own files declare a name, or nil.
func (r *Recipe) declaration(root, name string) *declared {
	for _, f := range r.files {
		for i, d := range r.scans[f.Name].declared {
			if d.root == root && d.name == name {
				return &r.scans[f.Name].declared[i]
			}
		}
	}
	return nil
}

// References returns where the name that stands at a place is referred to, and where it is
// declared.
func (r *Recipe) References(at Place) (places []hcl.Range) {
	root, name, _, ok := r.nameAt(at)
	if !ok {
		return nil
	}
	if d := r.declaration(root, name); d != nil {
		places = append(places, d.at)
	}
	for _, f := range r.files {
		for _, ref := range r.scans[f.Name].references {
			if ref.root == root && ref.name == name {
				places = append(places, ref.at)
			}
		}
	}
	return places
}

// Rename returns the places that hold the name at a place, each to be given the new one. It
// returns an error if nothing there can be renamed, or not to that.
func (r *Recipe) Rename(at Place, name string) ([]hcl.Range, error) {
	root, old, _, ok := r.nameAt(at)
	switch {
	case !ok || r.declaration(root, old) == nil || root == "include":
		return nil, fmt.Errorf("there is no name to change here that this recipe declares")
	case !hclsyntax.ValidIdentifier(name):
		return nil, fmt.Errorf("%q is not a name: names are made of letters, digits, _ and -, and start with a letter", name)
	case name != old && r.declaration(root, name) != nil:
		return nil, fmt.Errorf("there is a %s.%s already", root, name)
	}
	return r.References(at), nil
}

// A Symbol is something that a file declares.
type Symbol struct {
	Name  string // such as codes.body
	Kind  string // type of its block, or local
	Range hcl.Range
	At    hcl.Range // of the name in it
}

// Symbols returns what a file declares, in its order.
func (r *Recipe) Symbols(file string) (list []Symbol) {
	s := r.scans[file]
	if s == nil {
		return nil
	}
	for _, d := range s.declared {
		name := d.kind
		if d.name != "" {
			name = d.root + "." + d.name
		}
		whole := d.at
		if d.end.Byte > whole.End.Byte {
			whole.End = d.end
		}
		list = append(list, Symbol{Name: name, Kind: d.kind, Range: whole, At: d.at})
	}
	return list
}

// Format returns a file in the one layout, or false if it has a mistake.
func (r *Recipe) Format(file string) ([]byte, bool) {
	f, ok := r.file(file)
	if !ok {
		return nil, false
	}
	text, diags := recipes.Format(f)
	return text, !diags.HasErrors()
}
