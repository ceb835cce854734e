package assist

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"bonsai/recipes"
	"bonsai/rules"
)

// longValue is how much of a value is shown, in bytes.
const longValue = 400

// Hover says in Markdown what stands at a place, and where what it tells of stands. It returns
// "" if it knows nothing about it.
func (r *Recipe) Hover(at Place) (string, hcl.Range) {
	f, ok := r.file(at.File)
	if !ok {
		return "", hcl.Range{}
	}
	if root, name, where, ok := r.nameAt(at); ok {
		return r.hoverName(root, name), where
	}
	for _, call := range r.scans[at.File].calls {
		if covers(call.Range, at.Byte) {
			if fn := r.language.Function(string(call.Bytes)); fn != nil {
				return code(fn.Signature) + fn.Doc, call.Range
			}
		}
	}
	return r.hoverWord(f, at.Byte)
}

// hoverWord says what a word is that begins a statement: a block's type or an attribute's name.
func (r *Recipe) hoverWord(f recipes.File, at int) (string, hcl.Range) {
	for _, t := range r.scans[f.Name].tokens {
		if t.Type != hclsyntax.TokenIdent || !covers(t.Range, at) {
			continue
		}
		s := scanFile(f, t.Range.Start.Byte)
		if !s.top().body || len(s.statement) > 0 {
			continue
		}
		word := string(t.Bytes)
		if len(s.frames) == 1 {
			if b := r.language.Block(word); b != nil {
				return blockText(b.Type, b.Label, b.Schema), t.Range
			}
			continue
		}
		schema := r.schemaOf(s.frames[1:])
		if a := schema.Attribute(word); a != nil {
			return code(a.Name+": "+a.Takes()) + a.Explain(), t.Range
		}
		if n := schema.Nested(word); n != nil {
			return blockText(n.Type, n.Label, n.Schema), t.Range
		}
	}
	return "", hcl.Range{}
}

// schemaOf returns what the innermost of nested blocks may hold.
func (r *Recipe) schemaOf(blocks []frame) rules.Schema {
	b := r.language.Block(blocks[0].kind)
	if b == nil {
		return rules.Schema{}
	}
	s := b.Schema
	if b.Step {
		s.Attributes = append(append([]rules.Attribute{}, s.Attributes...), r.language.Steps.Attributes...)
		s.Blocks = append(append([]rules.Nested{}, s.Blocks...), r.language.Steps.Blocks...)
	}
	for _, f := range blocks[1:] {
		if over := r.language.Block(first(f.labels)); f.kind == "override" && over != nil {
			s = over.Schema
			continue
		}
		n := s.Nested(f.kind)
		if !f.body || n == nil {
			return rules.Schema{}
		}
		s = n.Schema
	}
	return s
}

func first(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return labels[0]
}

// hoverName says what a name stands for, and its value if it has one.
func (r *Recipe) hoverName(root, name string) string {
	text := code(root + "." + name)
	if root == "function" {
		text = code(name + "(…)")
	}
	if b := r.language.Block(root); b != nil {
		text += b.Doc
	}
	for _, d := range r.survey.Declared {
		if d.Root != root || d.Name != name {
			continue
		}
		if v, ok := valueText(d.Value); ok && !d.Step {
			text = code(root + "." + name + " = " + v)
		}
		if d.Included {
			text += fmt.Sprintf("\n\nDeclared in %s.", d.Range.Filename)
		}
	}
	return text
}

// valueText returns a value as an expression. It answers false for what is none, or not known.
func valueText(v cty.Value) (string, bool) {
	if v == cty.NilVal || !v.IsWhollyKnown() || v.ContainsMarked() || hasStep(v) {
		return "", false
	}
	text := string(hclwrite.TokensForValue(v).Bytes())
	if len(text) > longValue {
		text = strings.ToValidUTF8(text[:longValue], "") + "…"
	}
	return text, true
}

// hasStep says whether a value is a step or holds one.
func hasStep(v cty.Value) bool {
	found := false
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		found = found || v.Type().IsCapsuleType()
		return !found, nil
	})
	return found
}

// blockText tells what a block may hold.
func blockText(kind, label string, s rules.Schema) string {
	if label != "" {
		kind += fmt.Sprintf(" %q", label)
	}
	var b strings.Builder
	b.WriteString(code(kind+" { … }") + s.Doc + "\n")
	for _, a := range s.Attributes {
		fmt.Fprintf(&b, "\n- `%s` %s. %s", a.Name, a.Takes(), a.Explain())
	}
	for _, n := range s.Blocks {
		fmt.Fprintf(&b, "\n- `%s { … }` %s", n.Type, n.Doc)
	}
	return b.String()
}

func code(text string) string { return "```hcl\n" + text + "\n```\n" }
