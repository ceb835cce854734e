package recipes_test

import (
	"context"
	"fmt"
	"io"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/zclconf/go-cty/cty"

	"bonsai/engine"
	"bonsai/rules"
)

// toys is a catalogue of two rules, enough to try the language: a word is text, and a
// join puts words and other joins together.
func toys() rules.Catalogue {
	return rules.Catalogue{"word": wordRule{}, "join": joinRule{}}
}

// A toy is the value of a step of either rule.
type toy struct {
	artifact *engine.Artifact
	letters  int
}

func (t toy) Facts() map[string]cty.Value {
	return map[string]cty.Value{"letters": cty.NumberIntVal(int64(t.letters))}
}

func (t toy) Artifacts() []*engine.Artifact { return []*engine.Artifact{t.artifact} }
func (t toy) FileName() string              { return "toy.txt" }

type wordRule struct{}

func (wordRule) Expand(x *rules.Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	var block struct {
		Text   string         `hcl:"text"`
		Times  int            `hcl:"times,optional"`
		Source hcl.Expression `hcl:"source,optional"`
	}
	diags := gohcl.DecodeBody(body, ctx, &block)
	if !diags.HasErrors() && block.Times < 0 {
		diags = append(diags, wrong(x.Range, "Negative number", "The block as a whole is at fault."))
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return toy{add(x, wordOp{Text: block.Text, Times: block.Times}, nil), len(block.Text)}, nil
}

type joinRule struct{}

func (joinRule) Expand(x *rules.Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	var block struct {
		Of        hcl.Expression `hcl:"of,optional"`
		Separator string         `hcl:"separator,optional"`
		Parts     []struct {
			Name  string         `hcl:"name,label"`
			Of    hcl.Expression `hcl:"of"`
			Times int            `hcl:"times,optional"`
		} `hcl:"part,block"`
	}
	diags := gohcl.DecodeBody(body, ctx, &block)
	if diags.HasErrors() {
		return nil, diags
	}
	in, diags := toysOf(block.Of, ctx)
	for _, p := range block.Parts {
		more, partDiags := toysOf(p.Of, ctx)
		in, diags = append(in, more...), append(diags, partDiags...)
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return toy{artifact: add(x, joinOp{Separator: block.Separator}, in)}, nil
}

// toysOf returns the artifacts of the toys that expr refers to: one, or a collection.
func toysOf(expr hcl.Expression, ctx *hcl.EvalContext) ([]*engine.Artifact, hcl.Diagnostics) {
	v, diags := expr.Value(ctx)
	if diags.HasErrors() || v.IsNull() {
		return nil, diags
	}
	values := []cty.Value{v}
	if v.CanIterateElements() {
		values = nil
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			values = append(values, element)
		}
	}
	var in []*engine.Artifact
	for _, v := range values {
		step, _ := rules.Value(v)
		t, ok := step.(toy)
		if !ok {
			return nil, hcl.Diagnostics{wrong(expr.Range(), "Wrong kind of reference",
				"This must refer to toys, and there is "+v.Type().FriendlyName()+" in it.")}
		}
		in = append(in, t.artifact)
	}
	return in, nil
}

func wrong(r hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &r}
}

func add(x *rules.Expansion, op engine.Op, in []*engine.Artifact) *engine.Artifact {
	return x.Graph.Add(engine.Action{Step: x.Step, Op: op, In: in, Outputs: []engine.Output{{}}})[0]
}

type wordOp struct {
	Text  string
	Times int
}

func (o wordOp) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op word v1\nset Text %q\nset Times %d\n", o.Text, o.Times), nil
}

func (o wordOp) Run(_ context.Context, _ []*io.SectionReader, out []io.Writer, _ func(float64, string)) error {
	_, err := io.WriteString(out[0], o.Text)
	return err
}

type joinOp struct{ Separator string }

func (o joinOp) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op join v1\nset Separator %q\n", o.Separator), nil
}

func (o joinOp) Run(_ context.Context, in []*io.SectionReader, out []io.Writer, _ func(float64, string)) error {
	for _, r := range in {
		if _, err := io.Copy(out[0], r); err != nil {
			return err
		}
	}
	return nil
}
