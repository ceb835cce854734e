package quantize

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"bonsai/kernels"
	"bonsai/ops"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// Hessian computes E[x xᵀ] over the input vectors x of one group of projections, in the
// rotated basis.
//
// Inputs: 0 the hidden states that the group's input is computed from (model.Group.From);
// 1 the rotation; from 2 on weights: the shards that hold the layer's norms, biases and
// other tensors without codes, and the codes of the groups above it in the layer.
//
// Its output is a safetensors file with a tensor "hessian", F32 [width, width], the mean
// over all tokens, and "tokens" in its metadata. Tokens are summed in float32 by 2048 and
// then in float64, whatever the batch.
type Hessian struct {
	Config model.Config
	Layer  int
	Group  string // model.GroupQKV, GroupO, GroupGateUp or GroupDown

	on machine
}

// On returns h computing on that engine and that many threads, GOMAXPROCS if 0.
func (h Hessian) On(engine *mlx.Engine, threads int) Hessian {
	h.on.engine, h.on.threads = engine, threads
	return h
}

// AppendText implements engine.Op.
func (h Hessian) AppendText(b []byte) ([]byte, error) { return ops.AppendManifest(b, "hessian", 1, h) }

// Run implements engine.Op.
func (h Hessian) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := wantInputs(in, 3, "hidden states, rotation, weights"); err != nil {
		return err
	}
	group, err := groupOf(&h.Config, h.Layer, h.Group)
	if err != nil {
		return err
	}
	p, err := openLayer(h.on, &h.Config, h.Layer, in)
	if err != nil {
		return err
	}
	defer p.close()
	g, err := newGram(p.signs, group.Width, h.on.threads)
	if err != nil {
		return err
	}
	err = p.state.each(h.on.sequences(p.state.length), func(x []float32, seqs, before int) error {
		if err := step(ctx, report, before, p.state.tokens); err != nil {
			return err
		}
		v, err := p.layer.Input(h.Group, x, seqs, p.state.length)
		if err != nil {
			return err
		}
		return g.add(v)
	})
	if err != nil {
		return err
	}
	if err := writeMean(out[0], g, report); err != nil {
		return fmt.Errorf("layer %d: inputs of %s: %w", h.Layer, h.Group, err)
	}
	return nil
}

// FinalHessian computes E[x xᵀ] over the hidden states x after the final norm, the inputs
// of the head, in the rotated basis.
//
// Inputs: 0 the last layer's output states; 1 the rotation; from 2 on the shard that holds
// the final norm. Its output is that of Hessian.
type FinalHessian struct {
	Config model.Config

	on machine
}

// On returns h computing on that engine and that many threads, GOMAXPROCS if 0.
func (h FinalHessian) On(engine *mlx.Engine, threads int) FinalHessian {
	h.on.engine, h.on.threads = engine, threads
	return h
}

// AppendText implements engine.Op.
func (h FinalHessian) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "final hessian", 1, h)
}

// Run implements engine.Op.
func (h FinalHessian) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := wantInputs(in, 3, "hidden states, rotation, weights"); err != nil {
		return err
	}
	if h.on.engine == nil {
		return errNoEngine
	}
	s, err := openState(in[0], h.Config.Hidden)
	if err != nil {
		return err
	}
	defer s.file.Close()
	w, signs, err := openRotated(in[1], in[2:])
	if err != nil {
		return err
	}
	defer w.Close()
	g, err := newGram(signs, h.Config.Hidden, h.on.threads)
	if err != nil {
		return err
	}
	runner := model.NewRunner(h.on.engine, &h.Config)
	err = s.each(h.on.sequences(s.length), func(x []float32, _, before int) error {
		if err := step(ctx, report, before, s.tokens); err != nil {
			return err
		}
		v, err := runner.Final(w, x)
		if err != nil {
			return err
		}
		return g.add(v)
	})
	if err != nil {
		return err
	}
	return writeMean(out[0], g, report)
}

// GainHessian writes the Hessian that stands in for the embedding's, whose inputs are not
// vectors: diag(γ²) with γ the gain of the first layer's input norm, which says how much
// that layer sees of each dimension, carried into the rotated basis.
//
// Inputs: 0 the rotation; from 1 on the shard that holds that norm. Its output is that of
// Hessian with 0 tokens.
type GainHessian struct {
	Tensor string // the norm's name
	Width  int    // its length
}

// AppendText implements engine.Op.
func (h GainHessian) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "gain hessian", 1, h)
}

// Run implements engine.Op.
func (h GainHessian) Run(_ context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := wantInputs(in, 2, "rotation, weights"); err != nil {
		return err
	}
	w, signs, err := openRotated(in[0], in[1:])
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := signs.Of(h.Width)
	if err != nil {
		return err
	}
	gain, err := w.Floats(h.Tensor)
	if err != nil {
		return err
	}
	if len(gain) != h.Width {
		return fmt.Errorf("tensor %s: %d elements, want %d", h.Tensor, len(gain), h.Width)
	}
	v := make([]float32, h.Width*h.Width)
	for i, g := range gain {
		v[i*h.Width+i] = g * g
	}
	kernels.RotateGram(v, s, signs.Block)
	if err := checkHessian(v, h.Width); err != nil {
		return fmt.Errorf("tensor %s: %w", h.Tensor, err)
	}
	report(1, "")
	return writeHessian(out[0], &hessian{values: v, width: h.Width})
}

// A hessian is what the artifact of that name holds.
type hessian struct {
	values []float32 // [width, width]
	width  int
	tokens int // 0 if it is not a mean over tokens
}

const hessianName = "hessian"

func writeMean(out io.Writer, g *gram, report reporter) error {
	h := &hessian{width: len(g.signs), tokens: g.rows}
	var err error
	if h.values, err = g.mean(); err != nil {
		return err
	}
	report(1, fmt.Sprintf("%d tokens, %.1f a column", h.tokens, float64(h.tokens)/float64(h.width)))
	return writeHessian(out, h)
}

func writeHessian(out io.Writer, h *hessian) error {
	n := int64(h.width)
	spec := safetensors.Spec{Name: hessianName, DType: safetensors.F32, Shape: []int64{n, n}}
	f, err := safetensors.NewWriter(out, []safetensors.Spec{spec}, map[string]string{"tokens": strconv.Itoa(h.tokens)})
	if err != nil {
		return err
	}
	if err := f.WriteFloats(hessianName, h.values); err != nil {
		return err
	}
	return f.Close()
}

func readHessian(r *io.SectionReader, width int) (*hessian, error) {
	f, err := safetensors.OpenInput(r, "")
	if err != nil {
		return nil, fmt.Errorf("Hessian: %w", err)
	}
	defer f.Close()
	h := &hessian{width: width}
	if h.tokens, err = strconv.Atoi(f.Metadata()["tokens"]); err != nil || h.tokens < 0 {
		return nil, fmt.Errorf("%s: not a Hessian", f.Name())
	}
	if h.values, err = f.Floats(hessianName); err != nil {
		return nil, err
	}
	if len(h.values) != width*width {
		return nil, fmt.Errorf("%s: Hessian of %d elements, want %d × %d", f.Name(), len(h.values), width, width)
	}
	return h, checkHessian(h.values, width)
}
