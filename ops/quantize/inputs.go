package quantize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"bonsai/ops"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// Embed looks up the embeddings of calibration tokens: the states that enter layer 0.
//
// Inputs: 0 the calibration, a safetensors file with a tensor "tokens", I32 [blocks,
// length]; from 1 on the shard that holds the embedding.
//
// Its output is a safetensors file of hidden states: a tensor "x", BF16 [blocks*length,
// hidden], and "length" in its metadata.
type Embed struct {
	Vocab  int // rows of the embedding
	Hidden int // its columns
}

// AppendText implements engine.Op.
func (e Embed) AppendText(b []byte) ([]byte, error) { return ops.AppendManifest(b, "embed", 1, e) }

// Run implements engine.Op.
func (e Embed) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := wantInputs(in, 2, "calibration, weights"); err != nil {
		return err
	}
	ids, length, err := readTokens(in[0], e.Vocab)
	if err != nil {
		return err
	}
	w, err := OpenWeights(in[1:])
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := newStateWriter(out[0], len(ids), e.Hidden, length)
	if err != nil {
		return err
	}
	x := make([]float32, length*e.Hidden)
	for at := 0; at < len(ids); at += length {
		if err := step(ctx, report, at, len(ids)); err != nil {
			return err
		}
		for i, id := range ids[at : at+length] {
			row := x[i*e.Hidden : (i+1)*e.Hidden]
			if err := w.ReadFloats(model.EmbedName, row, int64(id)*int64(e.Hidden)); err != nil {
				return err
			}
		}
		if err := s.write(x); err != nil {
			return err
		}
	}
	report(1, fmt.Sprintf("%d sequences of %d tokens", len(ids)/length, length))
	return s.close()
}

// readTokens reads a calibration and checks its ids against the size of the vocabulary.
func readTokens(r *io.SectionReader, vocab int) (ids []int32, length int, err error) {
	f, err := safetensors.OpenInput(r, "")
	if err != nil {
		return nil, 0, fmt.Errorf("calibration: %w", err)
	}
	defer f.Close()
	if ids, err = f.Int32s("tokens"); err != nil {
		return nil, 0, err
	}
	t, _ := f.Lookup("tokens")
	if len(t.Shape) != 2 || len(ids) == 0 {
		return nil, 0, fmt.Errorf("%s: tokens %v are not blocks of tokens", f.Name(), t.Shape)
	}
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return nil, 0, fmt.Errorf("%s: token %d is %d, outside the model's vocabulary of %d", f.Name(), i, id, vocab)
		}
	}
	return ids, int(t.Shape[1]), nil
}

// The halves of a layer.
const (
	Mid = "mid" // from the layer's input to what enters its MLP
	Out = "out" // from there to the layer's output
)

// Inputs computes the next hidden states: half a layer's forward pass, with codes in place
// of the weights that have them.
//
// Inputs: 0 the hidden states before it; 1 the rotation; from 2 on weights: the shards that
// hold what has no codes, and the codes of the half's groups.
//
// Its output is hidden states as Embed's.
type Inputs struct {
	Config model.Config
	Layer  int
	Half   string // Mid or Out

	on machine
}

// On returns n computing on that engine and that many threads, GOMAXPROCS if 0.
func (n Inputs) On(engine *mlx.Engine, threads int) Inputs {
	n.on.engine, n.on.threads = engine, threads
	return n
}

// AppendText implements engine.Op.
func (n Inputs) AppendText(b []byte) ([]byte, error) { return ops.AppendManifest(b, "inputs", 1, n) }

// Run implements engine.Op.
func (n Inputs) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := wantInputs(in, 3, "hidden states, rotation, weights"); err != nil {
		return err
	}
	if n.Half != Mid && n.Half != Out {
		return fmt.Errorf("half %q is neither %s nor %s", n.Half, Mid, Out)
	}
	p, err := openLayer(n.on, &n.Config, n.Layer, in)
	if err != nil {
		return err
	}
	defer p.close()
	s, err := newStateWriter(out[0], p.state.tokens, n.Config.Hidden, p.state.length)
	if err != nil {
		return err
	}
	forward := p.layer.Mid
	if n.Half == Out {
		forward = p.layer.Out
	}
	err = p.state.each(n.on.sequences(p.state.length), func(x []float32, seqs, before int) error {
		if err := step(ctx, report, before, p.state.tokens); err != nil {
			return err
		}
		y, err := forward(x, seqs, p.state.length)
		if err != nil {
			return err
		}
		return s.write(y)
	})
	if err != nil {
		return err
	}
	report(1, "")
	return s.close()
}

// An openedLayer is a layer and the states that go through it.
type openedLayer struct {
	state   *state
	weights *Weights
	signs   *Signs
	layer   *model.Layer
}

// openLayer opens the inputs of an op on a layer: states, rotation, weights.
func openLayer(on machine, c *model.Config, layer int, in []*io.SectionReader) (*openedLayer, error) {
	if on.engine == nil {
		return nil, errNoEngine
	}
	if layer < 0 || layer >= c.Layers {
		return nil, fmt.Errorf("layer %d of %d", layer, c.Layers)
	}
	s, err := openState(in[0], c.Hidden)
	if err != nil {
		return nil, err
	}
	p := &openedLayer{state: s}
	if p.weights, p.signs, err = openRotated(in[1], in[2:]); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	if p.layer, err = model.NewRunner(on.engine, c).LoadLayer(p.weights, layer); err != nil {
		return nil, errors.Join(err, s.file.Close(), p.weights.Close())
	}
	return p, nil
}

func (p *openedLayer) close() {
	p.layer.Free()
	_, _ = p.state.file.Close(), p.weights.Close() // of files read
}

// openRotated opens a rotation and weights.
func openRotated(rotation *io.SectionReader, weights []*io.SectionReader) (*Weights, *Signs, error) {
	all := append([]*io.SectionReader{rotation}, weights...)
	w, err := OpenWeights(all)
	if err != nil {
		return nil, nil, err
	}
	if w.signs == nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: not a rotation", strconv.Quote(w.files[0].Name())), w.Close())
	}
	return w, w.signs, nil
}

func groupOf(c *model.Config, layer int, name string) (model.Group, error) {
	if layer < 0 || layer >= c.Layers {
		return model.Group{}, fmt.Errorf("layer %d of %d", layer, c.Layers)
	}
	for _, g := range c.Groups(layer) {
		if g.Name == name {
			return g, nil
		}
	}
	return model.Group{}, fmt.Errorf("layer %d has no group %q", layer, name)
}
