package rules

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/model"
	"bonsai/ops/quantize"
)

type endpointsBlock struct {
	Codes hcl.Expression `hcl:"codes"`
}

// endpointsRule makes the head and the embedding ternary, after all layers.
type endpointsRule struct{ settings Settings }

// Schema implements Described.
func (endpointsRule) Schema() Schema {
	return SchemaOf(endpointsBlock{}, "Makes the head and the embedding of a model ternary, after its layers.", map[string]Attribute{
		"codes": {Refers: []string{"codes"}, Doc: "The codes of the layers, whose settings hold here too."},
	})
}

// Expand implements Rule.
func (r endpointsRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := decode[endpointsBlock](body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	w, more := referenceTo[*Weights](block.Codes, ctx, "codes")
	if diags = append(diags, more...); diags.HasErrors() {
		return nil, diags
	}
	if w.kind != "codes" {
		return nil, append(diags, Mistake(block.Codes.Range(), "Wrong kind of reference",
			"This must refer to codes, whose head and embedding are still as in the checkpoint, and it is %s.", w.kind))
	}
	if w.Checkpoint.Config.Tied {
		return nil, append(diags, Mistake(x.Range, "Endpoints of a tied model",
			"The model's head is its embedding (tie_word_embeddings), and the file format has no rotated table that "+
				"serves as both: it stays BF16. Remove this block and refer to the codes instead."))
	}
	ends := *w
	ends.kind = "endpoints"
	ends.codes, ends.Ternary = slices.Clone(w.codes), slices.Clone(w.Ternary)
	ends.addHead(x, r.settings)
	ends.addEmbedding(x, r.settings)
	return &ends, diags
}

// addHead adds the codes of the head against the Hessian of the final hidden states.
func (w *Weights) addHead(x *Expansion, s Settings) {
	c := w.Checkpoint
	op := quantize.FinalHessian{Config: *c.Config}.On(s.Engine, s.Threads)
	in := append([]*engine.Artifact{w.final, w.Rotation.signs}, c.shardsOf(model.NormName)...)
	expected := s.work(op.Cost(int(w.tokens)), op.Peak(w.length))
	hessian := x.add("head hessian", op, expected, in, hessianOutput(c.Config.Hidden))
	w.code(x, s, "head codes", hessian[0], w.tables(model.GroupHead))
}

// addEmbedding adds the codes of the embedding against the gain of the first layer's norm.
func (w *Weights) addEmbedding(x *Expansion, s Settings) {
	c := w.Checkpoint
	norm := c.Config.LayerTensors(0)[0]
	op := quantize.GainHessian{Tensor: norm.Name, Width: c.Config.Hidden}
	in := append([]*engine.Artifact{w.Rotation.signs}, c.shardsOf(norm.Name)...)
	hessian := x.add("embedding hessian", op, work{peak: op.Peak()}, in, hessianOutput(c.Config.Hidden))
	w.code(x, s, "embedding codes", hessian[0], w.tables(model.GroupEmbed))
}

// tables returns the tensors of a group outside the layers.
func (w *Weights) tables(group string) (tensors []model.Tensor) {
	for _, t := range w.Checkpoint.Config.Tensors() {
		if t.Group == group {
			tensors = append(tensors, t)
		}
	}
	return tensors
}
