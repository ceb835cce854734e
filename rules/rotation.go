package rules

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/quantize"
)

// A Rotation is the value of a rotation step: the signs and the block of the Hadamard
// rotation of a model's input widths.
type Rotation struct {
	Block  int
	Widths []int // distinct, ascending

	signs *engine.Artifact
}

// Kind says in a diagnostic what this is.
func (*Rotation) Kind() string { return "a rotation" }

// Artifacts returns what a target of the step builds.
func (r *Rotation) Artifacts() []*engine.Artifact { return []*engine.Artifact{r.signs} }

type rotationBlock struct {
	Model hcl.Expression `hcl:"model"`
	Seed  uint64         `hcl:"seed,optional"`
	Block *int           `hcl:"block,optional"`
}

// rotationRule draws one vector of signs for each input width of a model.
type rotationRule struct{}

// Schema implements Described.
func (rotationRule) Schema() Schema {
	return SchemaOf(rotationBlock{}, "Draws the signs of a rotation that spreads outliers over the inputs of the weights.", map[string]Attribute{
		"model": {Refers: []string{"checkpoint"}, Doc: "The checkpoint whose input widths are rotated."},
		"seed":  {Default: "0", Doc: "Chooses the signs."},
		"block": {
			Absent: "the largest power of two that divides all widths, at most 4096",
			Range:  "a power of two, at least 128, that divides all widths", Doc: "How many inputs are mixed together.",
		},
	})
}

// Expand implements Rule.
func (rotationRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := decode[rotationBlock](body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	c, more := referenceTo[*Checkpoint](block.Model, ctx, "a checkpoint")
	if diags = append(diags, more...); diags.HasErrors() {
		return nil, diags
	}
	op := quantize.Rotation{Seed: block.Seed, Widths: c.Config.Widths()}
	most, err := quantize.DefaultBlock(op.Widths...)
	if err != nil {
		return nil, append(diags, Mistake(block.Model.Range(), "Model that cannot be rotated",
			"%v: each input width must be a multiple of 128, since one scale serves 128 weights. "+
				"The model cannot be made ternary.", err))
	}
	op.Block = most
	if block.Block != nil {
		op.Block = *block.Block
	}
	if err := op.Check(); err != nil {
		return nil, append(diags, Mistake(attributeRange(body, "block", x.Range), "Unusable Hadamard block",
			"%v. Leave block out for the largest that fits, %d.", err, most))
	}
	signs := x.add("", op, work{peak: op.Peak()}, nil, engine.Output{Size: int64(sum(op.Widths))})
	return &Rotation{Block: op.Block, Widths: slices.Clone(op.Widths), signs: signs[0]}, diags
}

func sum(n []int) (total int) {
	for _, v := range n {
		total += v
	}
	return total
}
