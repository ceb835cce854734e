package recipes

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// report keeps what a rule found wrong with a block in ctx, less what only follows from
// a mistake elsewhere, and less what other instances of the block have wrong at the
// same place.
func (x *expansion) report(diags hcl.Diagnostics, ctx *hcl.EvalContext) {
	var s spoiled
	s.search(x.body, ctx)
	if !x.sound || len(s.values) > 0 {
		s.headers = append(s.headers, x.decl.at)
		diags = append(slices.DeleteFunc(diags, s.covers), s.diags...)
	}
	for _, d := range diags {
		key := identity(d)
		if d.Summary == "Missing required argument" {
			key += d.Detail // all are missing from the same place
		}
		if !x.reported[key] {
			x.reported[key] = true
			x.loader.add(d)
		}
	}
}

// spoiled is what in a block has no value: because of a mistake in it, or one elsewhere that
// has been reported. A rule complains about these values too, and should not be heard.
type spoiled struct {
	values  []hcl.Range     // of attributes without a value
	headers []hcl.Range     // of the blocks that hold such
	diags   hcl.Diagnostics // the mistakes in them
}

// covers says whether d is about something spoiled or about a whole block that holds such.
func (s *spoiled) covers(d *hcl.Diagnostic) bool {
	return d.Subject == nil ||
		slices.Contains(s.headers, *d.Subject) ||
		slices.ContainsFunc(s.values, d.Subject.Overlaps)
}

// search adds what is spoiled in a body. For JSON, whose blocks cannot be told from
// attributes, a block counts as one value.
func (s *spoiled) search(body hcl.Body, ctx *hcl.EvalContext) {
	if b, ok := body.(*layered); ok {
		for _, l := range b.layers {
			s.search(l, ctx)
		}
		return
	}
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		attrs, _ := body.JustAttributes()
		s.try(attrs, ctx)
		return
	}
	s.try(attributesOf(native), ctx)
	for _, b := range native.Blocks {
		before := len(s.values)
		if s.search(b.Body, ctx); len(s.values) > before {
			s.headers = append(s.headers, b.DefRange())
		}
	}
}

// try adds the attributes that have no value in ctx.
func (s *spoiled) try(attrs hcl.Attributes, ctx *hcl.EvalContext) {
	for _, a := range inOrder(attrs) {
		v, diags := a.Expr.Value(ctx)
		if diags.HasErrors() || !v.IsWhollyKnown() {
			s.values = append(s.values, a.Range)
			s.diags = append(s.diags, diags...)
		}
	}
}
