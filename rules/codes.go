package rules

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/model"
	"bonsai/ops/quantize"
)

// Weights is the value of a codes and of an endpoints step: a checkpoint, some of whose
// tensors are ternary.
type Weights struct {
	Checkpoint *Checkpoint
	Rotation   *Rotation
	Ternary    []model.Tensor // those with codes, in data-flow order, then head and embedding

	kind   string
	chosen codesBlock         // settings that endpoints inherit
	codes  []*engine.Artifact // files of codes, together those of Ternary
	final  *engine.Artifact   // hidden states after the last layer
	tokens int64              // of the calibration
	length int                // tokens of a block of it
}

// Kind says in a diagnostic what this is.
func (w *Weights) Kind() string { return w.kind }

// Artifacts returns what a target of the step builds.
func (w *Weights) Artifacts() []*engine.Artifact { return w.codes }

type codesBlock struct {
	Model       hcl.Expression `hcl:"model"`
	Calibration hcl.Expression `hcl:"calibration"`
	Rotation    hcl.Expression `hcl:"rotation"`
	Method      string         `hcl:"method,optional"`
	Damping     *float64       `hcl:"damping,optional"`
	Keep        hcl.Expression `hcl:"keep,optional"`
	FewTokens   bool           `hcl:"few_tokens,optional"`
}

// damping returns the setting or its default, 1 % of the mean of the Hessian's diagonal.
func (b codesBlock) damping() float64 {
	if b.Damping == nil {
		return 0.01
	}
	return *b.Damping
}

// codesRule makes the layers of a model ternary, one input group after the other, each
// with the inputs that the quantized groups before it produce.
type codesRule struct{ settings Settings }

// Schema implements Described.
func (codesRule) Schema() Schema {
	return SchemaOf(codesBlock{}, "Makes the layers of a model ternary, each group of weights with the inputs that those before it give.", map[string]Attribute{
		"model":       {Refers: []string{"checkpoint"}, Doc: "The checkpoint whose layers become ternary."},
		"calibration": {Refers: []string{"calibration"}, Doc: "The tokens that the weights are fitted to."},
		"rotation":    {Refers: []string{"rotation"}, Doc: "The rotation of the inputs, of the same widths as the model."},
		"method": {
			Default: strconv.Quote(quantize.GPTQ), Values: []string{quantize.GPTQ, quantize.RTN},
			Doc: "How codes are chosen: gptq lets later columns make up for the error of earlier ones, rtn rounds, to compare with.",
		},
		"damping":    {Default: "0.01", Range: "from 0 to 100, of the mean of the Hessian's diagonal", Doc: "What is added to the Hessian's diagonal before it is inverted."},
		"keep":       {Type: "list(string)", Default: "[]", Doc: "Patterns of the names of tensors that stay as they are, such as \"*.v_proj.weight\"."},
		"few_tokens": {Default: "false", Doc: "Allows a calibration with fewer tokens than the widest inputs have columns."},
	})
}

// Expand implements Rule.
func (r codesRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	w, cal, diags := decodeCodes(x, body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	keep, more := keepPatterns(w.chosen.Keep, ctx, w.Checkpoint.Config)
	if diags = append(diags, more...); diags.HasErrors() {
		return nil, diags
	}
	l := &layers{settings: r.settings, x: x, w: w, keep: keep}
	l.embed(cal)
	for layer := range w.Checkpoint.Config.Layers {
		l.add(layer)
	}
	w.final = l.state
	return w, diags
}

// decodeCodes reads a codes block and checks that its parts belong to one model.
func decodeCodes(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (*Weights, *Calibration, hcl.Diagnostics) {
	block, diags := decode[codesBlock](body, ctx)
	if diags.HasErrors() {
		return nil, nil, diags
	}
	c, more := referenceTo[*Checkpoint](block.Model, ctx, "a checkpoint")
	diags = append(diags, more...)
	cal, more := referenceTo[*Calibration](block.Calibration, ctx, "a calibration")
	diags = append(diags, more...)
	rot, more := referenceTo[*Rotation](block.Rotation, ctx, "a rotation")
	diags = append(diags, more...)
	if block.Method == "" {
		block.Method = quantize.GPTQ
	}
	if block.Method != quantize.GPTQ && block.Method != quantize.RTN {
		diags = append(diags, Mistake(attributeRange(body, "method", x.Range), "Unknown method",
			"The methods are %q and, to compare with, %q; this is %q.", quantize.GPTQ, quantize.RTN, block.Method))
	}
	if d := block.damping(); !(d >= 0 && d <= 100) {
		diags = append(diags, Mistake(attributeRange(body, "damping", x.Range), "Damping out of range",
			"Damping is relative to the mean of the Hessian's diagonal, between 0 and 100; this is %g.", d))
	}
	if diags.HasErrors() {
		return nil, nil, diags
	}
	if !slices.Equal(rot.Widths, c.Config.Widths()) {
		diags = append(diags, Mistake(block.Rotation.Range(), "Rotation of another model",
			"The rotation is for input widths %v, and the model has %v.", rot.Widths, c.Config.Widths()))
	}
	if cal.Checkpoint.Config.Vocab != c.Config.Vocab {
		diags = append(diags, Mistake(block.Calibration.Range(), "Calibration of another model",
			"The calibration has token ids of a vocabulary of %d, and the model's has %d.",
			cal.Checkpoint.Config.Vocab, c.Config.Vocab))
	}
	if d := block.tooFew(cal, rot.Widths); d != nil {
		diags = append(diags, d)
	}
	return &Weights{kind: "codes", Checkpoint: c, Rotation: rot, chosen: block, tokens: cal.Tokens, length: cal.Length}, cal, diags
}

// tooFew returns a diagnostic if a Hessian of the widest inputs would be noise.
func (b codesBlock) tooFew(cal *Calibration, widths []int) *hcl.Diagnostic {
	widest := int64(slices.Max(widths))
	if cal.Tokens >= quantize.MinRatio*widest || b.FewTokens {
		return nil
	}
	return Mistake(b.Calibration.Range(), "Too few tokens to calibrate on",
		"The calibration has %d tokens, and the widest inputs have %d columns: at least %d a column are needed, "+
			"and %d are usual. Take more blocks, at least %d, or set few_tokens = true.",
		cal.Tokens, widest, quantize.MinRatio, quantize.WarnRatio,
		(quantize.MinRatio*widest+int64(cal.Length)-1)/int64(cal.Length))
}

// keepPatterns reads the patterns of tensors that stay as they are. One that matches no
// tensor is a mistake: it would be ignored.
func keepPatterns(expr hcl.Expression, ctx *hcl.EvalContext, c *model.Config) ([]string, hcl.Diagnostics) {
	patterns, diags := stringList(expr, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	var names []string
	for _, t := range c.Tensors() {
		if t.Group != "" {
			names = append(names, t.Name)
		}
	}
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			diags = append(diags, Mistake(expr.Range(), "Malformed pattern",
				"%q is no pattern: * stands for any characters, ? for one, [a-z] for one of a set.", p))
		} else if !slices.ContainsFunc(names, func(n string) bool { return matches([]string{p}, n) }) {
			diags = append(diags, Mistake(expr.Range(), "Pattern without a tensor",
				"No weight of the model matches %q. Names look like %s.", p, names[min(1, len(names)-1)]))
		}
	}
	return patterns, diags
}

// matches reports whether a tensor's name matches one of the patterns.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}

// layers adds the actions of one layer after the other.
type layers struct {
	settings Settings
	x        *Expansion
	w        *Weights
	keep     []string

	state *engine.Artifact   // hidden states so far
	here  []*engine.Artifact // codes of the layer so far
}

// embed adds the hidden states that enter the first layer.
func (l *layers) embed(cal *Calibration) {
	c := l.w.Checkpoint
	op := quantize.Embed{Vocab: c.Config.Vocab, Hidden: c.Config.Hidden}
	in := append([]*engine.Artifact{cal.tokens}, c.shardsOf(model.EmbedName)...)
	w := work{peak: op.Peak(int(l.w.tokens), l.w.length)}
	l.state = l.x.add("embed", op, w, in, l.stateOutput())[0]
}

// add adds one layer: for each input group its Hessian and its codes, and after each half
// the hidden states.
func (l *layers) add(layer int) {
	l.here = nil
	for _, g := range l.w.Checkpoint.Config.Groups(layer) {
		if g.From == model.MidResidual && g.Name == model.GroupGateUp {
			l.advance(layer, quantize.Mid)
		}
		l.group(layer, g)
	}
	l.advance(layer, quantize.Out)
}

// group adds the Hessian and the codes of one input group, unless all of it is kept.
func (l *layers) group(layer int, g model.Group) {
	tensors := l.tensorsOf(layer, g)
	if len(tensors) == 0 {
		return
	}
	c := l.w.Checkpoint
	name := fmt.Sprintf("layer %d %s", layer, g.Name)
	h := quantize.Hessian{Config: *c.Config, Layer: layer, Group: g.Name}.On(l.settings.Engine, l.settings.Threads)
	w := l.settings.work(h.Cost(int(l.w.tokens), l.w.length), h.Peak(l.w.length))
	hessian := l.x.add(name+" hessian", h, w, l.layerInputs(layer), hessianOutput(g.Width))
	l.here = append(l.here, l.w.code(l.x, l.settings, name+" codes", hessian[0], tensors))
}

// tensorsOf returns the tensors of a group that are not kept.
func (l *layers) tensorsOf(layer int, g model.Group) (tensors []model.Tensor) {
	for _, t := range l.w.Checkpoint.Config.LayerTensors(layer) {
		if t.Group == g.Name && !matches(l.keep, t.Name) {
			tensors = append(tensors, t)
		}
	}
	return tensors
}

// advance adds the hidden states after half a layer.
func (l *layers) advance(layer int, half string) {
	op := quantize.Inputs{Config: *l.w.Checkpoint.Config, Layer: layer, Half: half}.On(l.settings.Engine, l.settings.Threads)
	name := fmt.Sprintf("layer %d %s", layer, half)
	w := l.settings.work(op.Cost(int(l.w.tokens), l.w.length), op.Peak(l.w.length))
	l.state = l.x.add(name, op, w, l.layerInputs(layer), l.stateOutput())[0]
}

// layerInputs returns what an op on a layer reads: the hidden states, the rotation, the
// shards of the layer and the codes made so far.
func (l *layers) layerInputs(layer int) []*engine.Artifact {
	c := l.w.Checkpoint
	in := []*engine.Artifact{l.state, l.w.Rotation.signs}
	return append(append(in, c.shardsOf(c.layerNames(layer)...)...), l.here...)
}

func (l *layers) stateOutput() engine.Output {
	return engine.Output{Transient: true, Size: l.w.tokens * int64(l.w.Checkpoint.Config.Hidden) * 2}
}

func hessianOutput(width int) engine.Output {
	return engine.Output{Transient: true, Size: int64(width) * int64(width) * 4}
}

// code adds the action that quantizes tensors against a Hessian, and returns its file.
func (w *Weights) code(x *Expansion, s Settings, name string, hessian *engine.Artifact, tensors []model.Tensor) *engine.Artifact {
	var names []string
	var size int64
	for _, t := range tensors {
		names = append(names, t.Name)
		size += t.Size()/4 + t.Size()/128*2
	}
	op := quantize.Codes{
		Tensors: tensors, Method: w.chosen.Method, Damping: w.chosen.damping(), FewTokens: w.chosen.FewTokens,
	}.On(s.Threads)
	in := append([]*engine.Artifact{hessian, w.Rotation.signs}, w.Checkpoint.shardsOf(names...)...)
	file := x.add(name, op, s.work(op.Cost(), op.Peak()), in, engine.Output{Size: size})[0]
	w.codes, w.Ternary = append(w.codes, file), append(w.Ternary, tensors...)
	return file
}
