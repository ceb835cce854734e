package rules

import (
	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/calibrate"
)

// A Calibration is the value of a calibration step: blocks of tokens, all of one length.
type Calibration struct {
	Checkpoint *Checkpoint // whose tokenizer made the tokens
	Length     int         // tokens a block
	Tokens     int64       // in all blocks

	tokens *engine.Artifact
}

// Kind says in a diagnostic what this is.
func (*Calibration) Kind() string { return "a calibration" }

// Artifacts returns what a target of the step builds.
func (c *Calibration) Artifacts() []*engine.Artifact { return []*engine.Artifact{c.tokens} }

// maxTokens bounds what is computed with the tokens of a calibration or of a text to score:
// times the width of any model, in bytes, they fit in 63 bits.
const maxTokens = 1 << 40

type calibrationBlock struct {
	Model     hcl.Expression `hcl:"model"`
	Length    int            `hcl:"length"`
	Seed      uint64         `hcl:"seed,optional"`
	Separator string         `hcl:"separator,optional"`
	Takes     []takeBlock    `hcl:"take,block"`
}

type takeBlock struct {
	Name string         `hcl:"name,label"`
	From hcl.Expression `hcl:"from"`
	N    int            `hcl:"n"`
	Seed uint64         `hcl:"seed,optional"`
	Body hcl.Body       `hcl:",body"`
	Rest hcl.Body       `hcl:",remain"`
}

// calibrationRule packs documents into blocks of tokens and draws some of them.
type calibrationRule struct{}

// Schema implements Described.
func (calibrationRule) Schema() Schema {
	return SchemaOf(calibrationBlock{}, "Packs documents into blocks of tokens, some of which the weights are fitted to.", map[string]Attribute{
		"model":     {Refers: []string{"checkpoint"}, Doc: "The checkpoint whose tokenizer makes the tokens."},
		"length":    {Range: "tokens, from 2 to the model's context", Doc: "How long a block is."},
		"seed":      {Default: "0", Doc: "Chooses which blocks are drawn, in all takes."},
		"separator": {Absent: "the tokenizer's end of text", Doc: "The token that stands between documents."},
		"take":      {Required: true, Doc: "Draws blocks from one dataset."},
		"take.from": {Refers: []string{"dataset"}, Doc: "The dataset to draw from."},
		"take.n":    {Range: "blocks, at least 1", Doc: "How many blocks to draw."},
		"take.seed": {Default: "0", Doc: "Chooses which blocks are drawn, in this take."},
	})
}

// Expand implements Rule.
func (calibrationRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := decode[calibrationBlock](body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	c, more := referenceTo[*Checkpoint](block.Model, ctx, "a checkpoint")
	if diags = append(diags, more...); diags.HasErrors() {
		return nil, diags
	}
	diags = append(diags, c.needTokenizer(block.Model.Range())...)
	op, documents, more := block.takes(ctx)
	diags = append(diags, more...)
	if most := min(c.Config.Context, calibrate.MaxLength); block.Length < 2 || block.Length > most {
		diags = append(diags, Mistake(attributeRange(body, "length", x.Range), "Length out of range",
			"A block has from 2 tokens up to the model's context, %d; this is %d.", most, block.Length))
	}
	if len(block.Takes) == 0 {
		diags = append(diags, Mistake(x.Range, "Calibration on nothing",
			"A calibration needs at least one block take %q { from = dataset…, n = … }.", "name"))
	}
	if diags.HasErrors() {
		return nil, diags
	}
	tokens := int64(0)
	for _, t := range op.Takes {
		tokens += int64(t.Blocks) * int64(block.Length)
	}
	if tokens > maxTokens {
		return nil, append(diags, Mistake(x.Range, "Too many tokens",
			"The takes draw %d tokens together; a calibration has %d at most.", tokens, maxTokens))
	}
	out := x.add("", op, work{}, append(documents, c.tokenizerFiles()...), engine.Output{Size: 4 * tokens})
	return &Calibration{Checkpoint: c, Length: block.Length, Tokens: tokens, tokens: out[0]}, diags
}

// takes reads the take blocks: the op without its tokenizer, and its documents.
func (b calibrationBlock) takes(ctx *hcl.EvalContext) (calibrate.Calibrate, []*engine.Artifact, hcl.Diagnostics) {
	op := calibrate.Calibrate{Length: b.Length, Seed: b.Seed, Separator: b.Separator}
	var documents []*engine.Artifact
	var diags hcl.Diagnostics
	names := map[string]bool{}
	for _, t := range b.Takes {
		d, more := referenceTo[*Dataset](t.From, ctx, "a dataset")
		diags = append(append(diags, unexpected(t.Rest)...), more...)
		if t.N < 1 || t.N > calibrate.MaxBlocks {
			diags = append(diags, Mistake(attributeRange(t.Body, "n", t.From.Range()), "Number of blocks out of range",
				"take %q must draw from 1 to %d blocks, and n is %d.", t.Name, calibrate.MaxBlocks, t.N))
		}
		if names[t.Name] {
			diags = append(diags, Mistake(t.From.Range(), "Duplicate take",
				"There are two blocks take %q. Give each a name of its own.", t.Name))
		}
		names[t.Name] = true
		if diags.HasErrors() {
			continue
		}
		op.Takes = append(op.Takes, calibrate.Take{Name: t.Name, Blocks: t.N, Seed: t.Seed})
		documents = append(documents, d.documents)
	}
	return op, documents, diags
}
