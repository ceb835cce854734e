package recipes

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"bonsai/rules"
)

// parse returns the blocks of all files of a recipe, in the order of file names and lines,
// and then those of the recipes that it includes. It answers false if the syntax of one
// file is wrong.
func (l *loader) parse(files []File, p *part) (blocks []sourced, ok bool) {
	var bodies []hcl.Body
	for _, f := range files {
		if body := l.parseFile(f); body != nil {
			bodies = append(bodies, body)
		}
	}
	if len(bodies) < len(files) {
		return nil, false
	}
	for _, body := range bodies {
		for _, b := range l.blocksOf(body) {
			blocks = append(blocks, sourced{b, p})
		}
	}
	slices.SortStableFunc(blocks, func(a, b sourced) int { return compareRanges(a.DefRange, b.DefRange) })
	ok = true
	for _, b := range slices.Clone(blocks) {
		if b.Type == "include" {
			more, parsed := l.include(b)
			blocks, ok = append(blocks, more...), ok && parsed
		}
	}
	return blocks, ok
}

// parseFile returns the body of a file, or nil if its syntax is wrong.
func (l *loader) parseFile(f File) hcl.Body {
	if strings.HasSuffix(f.Name, ".json") {
		f.Bytes = bytes.TrimPrefix(f.Bytes, []byte("\ufeff")) // as HCL does in its own syntax
	}
	l.recipe.Files[f.Name] = &hcl.File{Bytes: f.Bytes}
	if !l.checkLimits(f) {
		return nil
	}
	parse := func(b []byte, name string) (*hcl.File, hcl.Diagnostics) {
		return hclsyntax.ParseConfig(b, name, hcl.InitialPos)
	}
	if strings.HasSuffix(f.Name, ".json") {
		parse = hcljson.Parse
	}
	file, diags := parse(f.Bytes, f.Name)
	if file != nil {
		l.recipe.Files[f.Name] = file
	}
	l.add(diags...)
	if diags.HasErrors() {
		return nil
	}
	return file.Body
}

// blocksOf returns the blocks at the top of a file.
func (l *loader) blocksOf(body hcl.Body) []*hcl.Block {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		content, diags := body.Content(l.schema())
		l.nameless[""] = l.nameless[""] || diags.HasErrors()
		l.add(diags...)
		return content.Blocks
	}
	for _, a := range native.Attributes {
		l.add(rules.Mistake(a.NameRange, "Attribute outside a block",
			"A recipe is made of blocks. To give %s a name for other blocks, put it in a locals block.", quote(a.Name)))
	}
	var blocks []*hcl.Block
	for _, b := range native.Blocks {
		blocks = append(blocks, b.AsHCLBlock())
	}
	return blocks
}

// schema returns the block types of a recipe, for syntaxes in which a block cannot be
// told from an attribute without knowing.
func (l *loader) schema() *hcl.BodySchema {
	s := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "recipe"}, {Type: "locals"}}}
	for _, name := range append([]string{"variable", "target", "include", "function"}, sortedKeys(l.opt.Catalogue)...) {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: name, LabelNames: []string{"name"}})
	}
	return s
}
