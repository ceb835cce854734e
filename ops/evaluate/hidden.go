package evaluate

import (
	"context"
	"fmt"
	"io"

	"bonsai/kernels"
	"bonsai/ops"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// Hidden runs a model on windows of tokens, each by itself.
//
// Inputs: 0 the output of Tokens; from 1 on the model's files.
//
// Its output is a safetensors file with a tensor "hidden", F32 [tokens, hidden]: the states
// after the final norm, which the head multiplies.
type Hidden struct {
	Model Model

	on machine
}

// On returns h computing on that engine and that many threads, GOMAXPROCS if 0.
func (h Hidden) On(engine *mlx.Engine, threads int) Hidden {
	h.on = machine{engine, threads}
	return h
}

// AppendText implements engine.Op.
func (h Hidden) AppendText(b []byte) ([]byte, error) { return ops.AppendManifest(b, "hidden", 1, h) }

// Run implements engine.Op.
func (h Hidden) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if len(in) != 1+h.Model.Files {
		return fmt.Errorf("%d inputs, want 1 of tokens and %d of the model", len(in), h.Model.Files)
	}
	if h.on.engine == nil {
		return errNoEngine
	}
	text, err := readWindows(in[0])
	if err != nil {
		return err
	}
	m, err := h.Model.opened(in[1:])
	if err != nil {
		return err
	}
	defer m.close()
	if err := text.check(m.config.Vocab); err != nil {
		return err
	}
	spec := safetensors.Spec{
		Name: hiddenName, DType: safetensors.F32,
		Shape: []int64{int64(len(text.ids)), int64(m.config.Hidden)},
	}
	f, err := safetensors.NewWriter(out[0], []safetensors.Spec{spec}, nil)
	if err != nil {
		return err
	}
	p := pass{model: m, runner: model.NewRunner(h.on.engine, m.config), length: text.window}
	slab := max(1, slabTokens/text.window) * text.window
	for at := 0; at < len(text.ids); at += slab {
		x, err := p.run(ctx, text.ids[at:min(at+slab, len(text.ids))], func(part float64) {
			report(min(0.999, (float64(at)+part*float64(slab))/float64(len(text.ids))), "")
		})
		if err != nil {
			return err
		}
		if err := f.WriteFloats(hiddenName, x); err != nil {
			return err
		}
	}
	report(1, fmt.Sprintf("%d tokens", len(text.ids)))
	return f.Close()
}

const hiddenName = "hidden"

// slabTokens is how many tokens go through all layers before the next do: their states
// stay in memory, while every layer is loaded once for each slab.
const slabTokens = 1 << 16

// batchTokens is how many tokens go through a layer at once, rounded to whole windows.
const batchTokens = 2048

// A pass is a forward pass of a model, layer by layer.
type pass struct {
	model  *opened
	runner *model.Runner
	length int // tokens of a window
}

// run returns the states of ids after the final norm, [len(ids), hidden].
func (p pass) run(ctx context.Context, ids []int32, progress func(part float64)) ([]float32, error) {
	x, err := p.embed(ids)
	if err != nil {
		return nil, fmt.Errorf("embedding: %w", err)
	}
	layers := p.model.config.Layers
	for l := range layers {
		progress(float64(l) / float64(layers))
		if err := p.layer(ctx, l, x); err != nil {
			return nil, fmt.Errorf("layer %d: %w", l, err)
		}
	}
	if x, err = p.runner.Final(p.model.source, x); err != nil {
		return nil, fmt.Errorf("final norm: %w", err)
	}
	return x, nil
}

// embed returns the embeddings of ids, [len(ids), hidden]. Where rows can be read alone the
// whole table, which may be gigabytes, is not.
func (p pass) embed(ids []int32) ([]float32, error) {
	rows, ok := p.model.source.(rowReader)
	if !ok {
		return p.runner.Embed(p.model.source, ids)
	}
	width := p.model.config.Hidden
	x := make([]float32, len(ids)*width)
	for i, id := range ids {
		if err := rows.ReadFloats(model.EmbedName, x[i*width:(i+1)*width], int64(id)*int64(width)); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// layer replaces states by the output of one layer.
func (p pass) layer(ctx context.Context, l int, x []float32) error {
	layer, err := p.runner.LoadLayer(p.model.source, l)
	if err != nil {
		return err
	}
	defer layer.Free()
	size := max(1, batchTokens/p.length) * p.length * p.model.config.Hidden
	for at := 0; at < len(x); at += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := x[at:min(at+size, len(x))]
		seqs := len(part) / p.model.config.Hidden / p.length
		y, err := layer.Mid(part, seqs, p.length)
		if err != nil {
			return err
		}
		if y, err = layer.Out(y, seqs, p.length); err != nil {
			return err
		}
		if i := kernels.NotFinite(y); i >= 0 {
			return fmt.Errorf("hidden state of token %d is %v", (at+i)/p.model.config.Hidden, y[i])
		}
		copy(part, y)
	}
	return nil
}

// readHidden opens the output of Hidden.
func readHidden(r *io.SectionReader, tokens, width int) (*safetensors.File, error) {
	f, err := safetensors.OpenInput(r, "")
	if err != nil {
		return nil, fmt.Errorf("hidden states: %w", err)
	}
	t, ok := f.Lookup(hiddenName)
	if !ok || len(t.Shape) != 2 || t.Shape[0] != int64(tokens) || t.Shape[1] != int64(width) {
		return nil, fmt.Errorf("%s: hidden states %v, want [%d %d]", f.Name(), t.Shape, tokens, width)
	}
	return f, nil
}
