package recipes

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// overlay returns base with the attributes and blocks of over in the place of its own: an
// attribute takes that of the same name, or removes it if it is null; a block takes those of
// the same type and labels.
func overlay(base, over hcl.Body) hcl.Body {
	b, baseNative := base.(*hclsyntax.Body)
	o, overNative := over.(*hclsyntax.Body)
	switch {
	case baseNative && overNative:
		return overlayNative(b, o)
	case baseNative:
		return layer(strip(b, over), &without{over, nullsIn(over)})
	}
	return layer(&without{base, namesIn(over)}, &without{over, nullsIn(over)})
}

// nullsIn returns the names of the attributes in a body that are null.
func nullsIn(body hcl.Body) map[string]bool {
	names := map[string]bool{}
	attrs, _ := body.JustAttributes()
	for name, a := range attrs {
		names[name] = isNull(a.Expr)
	}
	return names
}

func overlayNative(base, over *hclsyntax.Body) *hclsyntax.Body {
	merged := *base
	merged.Attributes = hclsyntax.Attributes{}
	for name, a := range base.Attributes {
		merged.Attributes[name] = a
	}
	for name, a := range over.Attributes {
		if isNull(a.Expr) {
			delete(merged.Attributes, name)
		} else {
			merged.Attributes[name] = a
		}
	}
	merged.Blocks = slices.DeleteFunc(slices.Clone(base.Blocks), func(b *hclsyntax.Block) bool {
		return slices.ContainsFunc(over.Blocks, func(o *hclsyntax.Block) bool {
			return o.Type == b.Type && slices.Equal(o.Labels, b.Labels)
		})
	})
	merged.Blocks = append(merged.Blocks, over.Blocks...)
	return &merged
}

// namesIn returns the names of the attributes in a body. In JSON blocks are among them:
// which is which is not known there.
func namesIn(body hcl.Body) map[string]bool {
	names := map[string]bool{}
	if native, ok := body.(*hclsyntax.Body); ok {
		for _, b := range native.Blocks {
			names[b.Type] = true
		}
		for name := range native.Attributes {
			names[name] = true
		}
		return names
	}
	attrs, _ := body.JustAttributes()
	for name := range attrs {
		names[name] = true
	}
	return names
}

// strip returns base without what over, which is JSON, says too.
func strip(base *hclsyntax.Body, over hcl.Body) *hclsyntax.Body {
	names := namesIn(over)
	stripped := *base
	stripped.Attributes = hclsyntax.Attributes{}
	for name, a := range base.Attributes {
		if !names[name] {
			stripped.Attributes[name] = a
		}
	}
	stripped.Blocks = slices.DeleteFunc(slices.Clone(base.Blocks), func(b *hclsyntax.Block) bool { return names[b.Type] })
	return &stripped
}

// without is a body in JSON less some attributes and blocks.
type without struct {
	hcl.Body
	names map[string]bool
}

// Content implements hcl.Body.
func (w *without) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	content, diags := w.Body.Content(schema)
	return w.less(content), diags
}

// PartialContent implements hcl.Body.
func (w *without) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	content, rest, diags := w.Body.PartialContent(schema)
	return w.less(content), &without{rest, w.names}, diags
}

// JustAttributes implements hcl.Body.
func (w *without) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	attrs, diags := w.Body.JustAttributes()
	for name := range attrs {
		if w.names[name] {
			delete(attrs, name)
		}
	}
	return attrs, diags
}

func (w *without) less(content *hcl.BodyContent) *hcl.BodyContent {
	for name := range content.Attributes {
		if w.names[name] {
			delete(content.Attributes, name)
		}
	}
	content.Blocks = slices.DeleteFunc(content.Blocks, func(b *hcl.Block) bool { return w.names[b.Type] })
	return content
}

// layered is a body whose attributes and blocks are in several bodies, of which no two have
// the same.
type layered struct {
	hcl.Body // all of them
	layers   []hcl.Body
}

func layer(layers ...hcl.Body) *layered { return &layered{hcl.MergeBodies(layers), layers} }

// PartialContent implements hcl.Body.
func (b *layered) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	content, _, diags := b.Body.PartialContent(schema)
	var rest []hcl.Body
	for _, l := range b.layers {
		_, r, _ := l.PartialContent(schema)
		rest = append(rest, r)
	}
	return content, layer(rest...), diags
}
