package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"

	"bonsai/rules"
)

// A part is one of the recipes that are read together: the one that was asked for, or one
// that another part includes.
type part struct {
	id        string                       // what tells it from others
	name      string                       // as the include block says it
	dir       string                       // which relative paths start from
	outer     *part                        // the one that includes it; nil for the one that was asked for
	functions map[string]function.Function // what its expressions can call
	own       map[string]*definition       // those of them that it defines
	headed    *hcl.Block                   // its recipe block
}

// A sourced block is a block with the recipe that it is of.
type sourced struct {
	*hcl.Block
	part *part
}

var includeSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "from"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "variables"}, {Type: "override", LabelNames: []string{"type", "name"}}},
}

// include returns the blocks of the recipe that an include block names, those included
// there too, with what the block overrides. It answers false if the syntax of one is wrong.
func (l *loader) include(b sourced) (blocks []sourced, ok bool) {
	l.checkLabel(b.Block)
	content, diags := b.Body.Content(includeSchema)
	l.add(diags...)
	from, at, found := l.sourceOf(b, content)
	if !found {
		l.partLost()
		return nil, true
	}
	files, p, wrong := l.open(from, b.part)
	if wrong != "" {
		l.add(rules.Mistake(at, "Recipe not found", "%s", wrong))
		l.partLost()
		return nil, true
	}
	if chain := p.cycle(); chain != "" {
		l.add(rules.Mistake(at, "Cycle of includes", "%s\nTake one of these includes away.", chain))
		l.partLost()
		return nil, true
	}
	if first, again := l.included[p.id]; again {
		l.checkAgain(content, at, first)
		return nil, true
	}
	l.included[p.id] = at
	if blocks, ok = l.parse(files, p); !ok {
		return nil, false
	}
	l.override(blocks, content.Blocks.OfType("override"), p)
	l.set(blocks, content.Blocks.OfType("variables"), b.part, p)
	return blocks, true
}

// sourceOf returns what an include block includes: what from says or else its own name.
func (l *loader) sourceOf(b sourced, content *hcl.BodyContent) (from string, at hcl.Range, ok bool) {
	if a, given := content.Attributes["from"]; given {
		from, ok = l.constant(a, &hcl.EvalContext{Functions: b.part.functions})
		return from, a.Expr.Range(), ok
	}
	if len(b.Labels) == 0 {
		return "", b.DefRange, false
	}
	return b.Labels[0], b.LabelRanges[0], true
}

// partLost remembers that names may be missing which are not at fault.
func (l *loader) partLost() { l.nameless[""], l.variablesLost = true, true }

// open reads the recipe that a part includes: what is on disk comes before what is built in.
// wrong says in sentences why it cannot, or is "".
func (l *loader) open(from string, by *part) (files []File, p *part, wrong string) {
	path := under(by.dir, from)
	p = &part{name: from, outer: by}
	files, dir, err := read(path, l.opt.Saw)
	if errors.Is(err, fs.ErrNotExist) {
		if files, err = Builtin(from); err != nil {
			return nil, nil, fmt.Sprintf("There is no file or folder %s, and %s is not built in.%s Built in are: %s. "+
				"Paths are relative to the folder of the recipe that they are in.",
				path, quote(from), didYouMean(from, BuiltinNames()), strings.Join(BuiltinNames(), ", "))
		}
		dir = by.dir
	}
	if err != nil {
		return nil, nil, capital(err.Error()) + "."
	}
	p.id, p.dir, p.functions = identityOf(files), dir, l.functionsIn(dir)
	return files, p, ""
}

// identityOf returns what tells the recipe of these files from others.
func identityOf(files []File) string {
	var names []string
	for _, f := range files {
		name := f.Name
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
		names = append(names, name)
	}
	return strings.Join(names, "\n")
}

// cycle returns the chain of includes that leads from a part back to itself, or "".
func (p *part) cycle() string {
	chain := []string{p.name}
	for o := p.outer; o != nil; o = o.outer {
		name := o.name
		if o.id == p.id {
			name = p.name
		}
		chain = append(chain, name)
		if o.id == p.id {
			slices.Reverse(chain)
			return strings.Join(chain, " → ")
		}
	}
	return ""
}

// checkAgain reports settings for a recipe that is included already. Without any, to
// include it again changes nothing.
func (l *loader) checkAgain(content *hcl.BodyContent, at, first hcl.Range) {
	if len(content.Blocks) > 0 {
		l.add(rules.Mistake(at, "Recipe included twice",
			"This recipe is already included at %s. What is set and overridden stands in one include block.", first))
	}
}

// set remembers the values that an include block gives to variables of what it includes.
// An outer include comes after the inner ones and takes their place.
func (l *loader) set(blocks []sourced, variables hcl.Blocks, by, in *part) {
	var known []string
	for _, b := range blocks {
		if b.Type == "variable" && len(b.Labels) > 0 {
			known = append(known, b.Labels[0])
		}
	}
	for _, b := range variables {
		attrs, diags := b.Body.JustAttributes()
		l.add(diags...)
		for _, a := range inOrder(attrs) {
			if slices.Contains(known, a.Name) {
				l.settings[a.Name] = &setting{attribute: a, part: by}
			} else if !l.variablesLost {
				l.misspelled[nearest(a.Name, known)] = true
				l.add(rules.Mistake(a.NameRange, "Value for an unknown variable", "Recipe %s declares no variable %s.%s",
					quote(in.name), quote(a.Name), didYouMean(a.Name, known)))
			}
		}
	}
}

// override puts what override blocks say into the blocks that they name.
func (l *loader) override(blocks []sourced, overrides hcl.Blocks, in *part) {
	var known []string
	at := map[string]int{}
	for i, b := range blocks {
		if len(b.Labels) == 1 && b.Type != "include" {
			known = append(known, b.Type+"."+b.Labels[0])
			at[b.Type+"."+b.Labels[0]] = i
		}
	}
	for _, o := range overrides {
		address := strings.Join(o.Labels, ".")
		i, ok := at[address]
		if !ok {
			if !l.nameless[""] {
				l.add(rules.Mistake(o.DefRange, "Override of an undeclared name", "Recipe %s declares no %s.%s",
					quote(in.name), address, didYouMean(address, known)))
			}
			continue
		}
		merged := *blocks[i].Block
		merged.Body = overlay(merged.Body, o.Body)
		blocks[i].Block = &merged
	}
}

// capital returns s with its first letter in upper case, as a sentence begins.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// isNull says whether an expression is the word null.
func isNull(e hcl.Expression) bool {
	if _, isTemplate := e.(*hclsyntax.TemplateExpr); isTemplate || len(e.Variables()) > 0 {
		return false
	}
	v, diags := e.Value(nil)
	return !diags.HasErrors() && v.IsNull()
}
