// Package rulestest holds two toy rules, for tests of the language, the engine and the
// command line on graphs of any size. Their actions take no time and little room.
//
//	file "in" { path = "in.txt" }
//
//	mix "a" {
//	  of    = [file.in]
//	  text  = "salt"
//	  bytes = 4096
//	}
//
// Start at [Catalogue].
package rulestest

import (
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/zclconf/go-cty/cty"

	"bonsai/engine"
	"bonsai/rules"
)

// Catalogue is the catalogue of the toys: file and mix.
func Catalogue() rules.Catalogue {
	schema, _ := gohcl.ImpliedBodySchema(mixBlock{})
	return rules.Catalogue{"file": fileRule{}, "mix": mixRule{schema}}
}

// A Toy is the value of a step of either rule.
type Toy struct {
	artifact *engine.Artifact
	name     string
}

// Artifacts returns what a target of the step builds.
func (t *Toy) Artifacts() []*engine.Artifact { return []*engine.Artifact{t.artifact} }

// FileName returns its name in a target's folder.
func (t *Toy) FileName() string { return t.name }

// Facts implements rules.Factual.
func (t *Toy) Facts() map[string]cty.Value {
	return map[string]cty.Value{"bytes": cty.NumberIntVal(t.artifact.Output().Size), "file": cty.StringVal(t.name)}
}

// fileRule makes a file of the user's a step.
type fileRule struct{}

// Expand implements rules.Rule.
func (fileRule) Expand(x *rules.Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	var block struct {
		Path string `hcl:"path"`
	}
	if diags := gohcl.DecodeBody(body, ctx, &block); diags.HasErrors() {
		return nil, diags
	}
	return &Toy{artifact: x.Graph.Source(filepath.Join(x.Dir, block.Path))}, nil
}

type mixBlock struct {
	Of        hcl.Expression `hcl:"of,optional"`
	Text      string         `hcl:"text,optional"`
	Bytes     int64          `hcl:"bytes,optional"`
	Constant  bool           `hcl:"constant,optional"`
	Transient bool           `hcl:"transient,optional"`
	Takes     string         `hcl:"takes,optional"`
	Fails     string         `hcl:"fails,optional"`
	Peak      int64          `hcl:"peak,optional"`
	Cost      float64        `hcl:"cost,optional"`
	File      string         `hcl:"file,optional"`
}

// mixRule makes one action, which runs a Mix of the toys that the block refers to.
type mixRule struct{ schema *hcl.BodySchema }

// decode is gohcl.DecodeBody of a mix, which would look at the struct anew for each of ten
// thousand blocks: that takes longer than all else that is done with them.
func (m mixRule) decode(body hcl.Body, ctx *hcl.EvalContext) (b mixBlock, diags hcl.Diagnostics) {
	content, diags := body.Content(m.schema)
	b.Of = hcl.StaticExpr(cty.NullVal(cty.DynamicPseudoType), body.MissingItemRange())
	fields := map[string]any{
		"text": &b.Text, "bytes": &b.Bytes, "constant": &b.Constant, "transient": &b.Transient, "takes": &b.Takes,
		"fails": &b.Fails, "peak": &b.Peak, "cost": &b.Cost, "file": &b.File,
	}
	for name, a := range content.Attributes {
		if name == "of" {
			b.Of = a.Expr
			continue
		}
		diags = append(diags, gohcl.DecodeExpression(a.Expr, ctx, fields[name])...)
	}
	return b, diags
}

// Expand implements rules.Rule.
func (m mixRule) Expand(x *rules.Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := m.decode(body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	in, diags := toys(block.Of, ctx)
	op := Mix{Text: block.Text, Bytes: block.Bytes, Constant: block.Constant, fails: block.Fails}
	if block.Takes != "" {
		var err error
		if op.takes, err = time.ParseDuration(block.Takes); err != nil {
			diags = append(diags, rules.Mistake(x.Range, "Wrong duration", "%v.", err))
		}
	}
	if diags.HasErrors() {
		return nil, diags
	}
	made := x.Graph.Add(engine.Action{
		Step: x.Step, Op: op, In: in, Peak: block.Peak, Cost: block.Cost,
		Outputs: []engine.Output{{Transient: block.Transient, Size: block.Bytes}},
	})
	return &Toy{artifact: made[0], name: block.File}, nil
}

// toys returns the artifacts of the toys that expr refers to: one, or a collection.
func toys(expr hcl.Expression, ctx *hcl.EvalContext) ([]*engine.Artifact, hcl.Diagnostics) {
	v, diags := expr.Value(ctx)
	if diags.HasErrors() || v.IsNull() {
		return nil, diags
	}
	values := []cty.Value{v}
	if v.CanIterateElements() {
		values = nil
		for _, element := range v.Elements() {
			values = append(values, element)
		}
	}
	var in []*engine.Artifact
	for _, v := range values {
		step, _ := rules.Value(v)
		t, ok := step.(*Toy)
		if !ok {
			return nil, hcl.Diagnostics{rules.Mistake(expr.Range(), "Wrong kind of reference",
				"This must refer to files and mixes, and there is %s in it.", v.Type().FriendlyName())}
		}
		in = append(in, t.artifact)
	}
	return in, nil
}
