package recipes

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Find returns where a setting of a step stands in the recipe's files: its attribute, in
// the step's block or one inside it, or else the header of the block. setting is the name
// that a manifest gives it, such as damping or takes[1].n. It answers false if there is
// no such step.
func (r *Recipe) Find(address, setting string) (hcl.Range, bool) {
	for _, s := range r.Steps {
		if s.Address != address {
			continue
		}
		if b := r.block(s.Range); b != nil {
			if at, ok := findAttribute(b.Body, setting); ok {
				return at, true
			}
		}
		return s.Range, true
	}
	return hcl.Range{}, false
}

// block returns the block whose header is at a place; nil if its file is of another syntax.
func (r *Recipe) block(at hcl.Range) *hclsyntax.Block {
	file := r.Files[at.Filename]
	if file == nil {
		return nil
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	for _, b := range body.Blocks {
		if b.DefRange().Start == at.Start {
			return b
		}
	}
	return nil
}

// findAttribute looks for the last part of a setting's name, and then for the first, as
// an attribute of a body and of the blocks in it.
func findAttribute(body *hclsyntax.Body, setting string) (hcl.Range, bool) {
	parts := strings.FieldsFunc(setting, func(r rune) bool { return strings.ContainsRune(".[]0123456789", r) })
	if len(parts) == 0 {
		return hcl.Range{}, false
	}
	for _, name := range []string{parts[len(parts)-1], parts[0]} {
		if at, ok := attributeNamed(body, name); ok {
			return at, true
		}
	}
	return hcl.Range{}, false
}

func attributeNamed(body *hclsyntax.Body, name string) (at hcl.Range, ok bool) {
	if a := body.Attributes[name]; a != nil {
		return a.SrcRange, true
	}
	found := 0
	for _, b := range body.Blocks {
		if inner, ok := attributeNamed(b.Body, name); ok {
			at = inner
			found++
		}
	}
	return at, found == 1 // with several it is not known which is meant
}
