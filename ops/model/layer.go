package model

import (
	"fmt"
	"strings"
	"sync"

	"bonsai/ops/mlx"
)

// A Layer is one layer whose weights are read when a part first needs them, and kept until Free.
// It may be used from several goroutines, but not during Free.
type Layer struct {
	r      *Runner
	w      *weights
	index  int
	window int
}

// LoadLayer returns a layer of the model. Nothing is read yet.
func (r *Runner) LoadLayer(src Source, layer int) (*Layer, error) {
	if layer < 0 || layer >= r.c.Layers {
		return nil, fmt.Errorf("layer %d of a model with %d", layer, r.c.Layers)
	}
	w := newWeights(r.engine, src, tensorName(layer, ""))
	return &Layer{r: r, w: w, index: layer, window: r.c.Window(layer)}, nil
}

// Free gives the memory of the layer's weights back.
func (l *Layer) Free() { l.w.free() }

// Input returns the input vectors of a group, [tokens, width], from the state that Group.From names, for seqs
// sequences of the same length side by side. Only the weights above the group are read.
func (l *Layer) Input(group string, state []float32, seqs, length int) ([]float32, error) {
	c := l.r.c
	switch group {
	case GroupQKV:
		return l.flat("norm", "the input of self_attn.q_proj", c.Hidden, state, seqs, length, l.rows("input_layernorm.weight"))
	case GroupO:
		return l.deep("attention", "the input of self_attn.o_proj", c.Heads*c.HeadDim, state, seqs, length, l.attention())
	case GroupGateUp:
		return l.flat("norm", "the input of mlp.gate_proj", c.Hidden, state, seqs, length, l.rows("post_attention_layernorm.weight"))
	case GroupDown:
		return l.flat("gated", "the input of mlp.down_proj", c.Intermediate, state, seqs, length, l.gated())
	}
	return nil, fmt.Errorf("layer %d has no group %q", l.index, group)
}

// Mid returns y = x + attention, [tokens, hidden], of the layer's input x, [tokens, hidden].
func (l *Layer) Mid(x []float32, seqs, length int) ([]float32, error) {
	w := append(l.attention(), l.dense(l.r.c.OutBias, l.r.c.Heads*l.r.c.HeadDim, "self_attn.o_proj")...)
	return l.deep("mid", "the state after attention", l.r.c.Hidden, x, seqs, length, w)
}

// Out returns the state that leaves the layer, [tokens, hidden], of the result of Mid, [tokens, hidden].
func (l *Layer) Out(y []float32, seqs, length int) ([]float32, error) {
	w := append(l.gated(), l.dense(l.r.c.MLPBias, l.r.c.Intermediate, "mlp.down_proj")...)
	return l.flat("out", "the state after the MLP", l.r.c.Hidden, y, seqs, length, w)
}

// A load reads one argument of a part.
type load func() (*mlx.Tensor, error)

// rows are vectors, as [1, n].
func (l *Layer) rows(names ...string) []load {
	var loads []load
	for _, n := range names {
		loads = append(loads, func() (*mlx.Tensor, error) { return l.w.row(n) })
	}
	return loads
}

// dense is a product with the weights of the projections side by side, [in, out], and their biases, if any.
func (l *Layer) dense(bias bool, in int, projections ...string) []load {
	suffixed := func(suffix string) []string {
		var names []string
		for _, p := range projections {
			names = append(names, p+suffix)
		}
		return names
	}
	loads := []load{func() (*mlx.Tensor, error) { return l.w.matrix(in, suffixed(".weight")...) }}
	if bias {
		loads = append(loads, func() (*mlx.Tensor, error) { return l.w.row(suffixed(".bias")...) })
	}
	return loads
}

// attention are the arguments of the part of that name, without the tables.
func (l *Layer) attention() []load {
	loads := l.rows("input_layernorm.weight")
	loads = append(loads, l.dense(l.r.c.QKVBias, l.r.c.Hidden, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")...)
	if l.r.c.QKNorm {
		loads = append(loads, l.rows("self_attn.q_norm.weight", "self_attn.k_norm.weight")...)
	}
	return loads
}

// gated are the arguments of the part of that name.
func (l *Layer) gated() []load {
	loads := l.rows("post_attention_layernorm.weight")
	loads = append(loads, l.dense(l.r.c.MLPBias, l.r.c.Hidden, "mlp.gate_proj")...)
	return append(loads, l.dense(l.r.c.MLPBias, l.r.c.Hidden, "mlp.up_proj")...)
}

// flat runs a part in which tokens do not meet.
func (l *Layer) flat(part, what string, out int, x []float32, seqs, length int, loads []load) ([]float32, error) {
	if err := l.check(x, seqs, length); err != nil {
		return nil, err
	}
	w, err := loadAll(loads)
	if err != nil {
		return nil, err
	}
	return l.r.run(call{part: part, what: l.name(what), out: out}, x, seqs*length, 1, w)
}

// deep runs a part with attention.
func (l *Layer) deep(part, what string, out int, x []float32, seqs, length int, loads []load) ([]float32, error) {
	if err := l.check(x, seqs, length); err != nil {
		return nil, err
	}
	w, err := loadAll(loads)
	if err != nil {
		return nil, err
	}
	tables, err := l.r.rotary(length)
	if err != nil {
		return nil, err
	}
	c := call{part: windowed(part, l.window), what: l.name(what), out: out, deep: true}
	return l.r.run(c, x, seqs, length, append(tables[:2:2], w...))
}

func (l *Layer) name(what string) string { return fmt.Sprintf("layer %d: %s", l.index, what) }

func (l *Layer) check(x []float32, seqs, length int) error {
	if seqs < 1 || length < 1 || len(x) != seqs*length*l.r.c.Hidden {
		return fmt.Errorf("layer %d: %d values are no states of width %d of %d sequences of %d",
			l.index, len(x), l.r.c.Hidden, seqs, length)
	}
	return nil
}

func loadAll(loads []load) ([]*mlx.Tensor, error) {
	w := make([]*mlx.Tensor, len(loads))
	for i, load := range loads {
		var err error
		if w[i], err = load(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// weights are tensors of a source in an engine's memory.
type weights struct {
	engine *mlx.Engine
	src    Source
	prefix string // of every name

	mu   sync.Mutex
	held map[string]*mlx.Tensor
}

func newWeights(engine *mlx.Engine, src Source, prefix string) *weights {
	return &weights{engine: engine, src: src, prefix: prefix, held: map[string]*mlx.Tensor{}}
}

func (w *weights) free() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.held {
		t.Free()
	}
	clear(w.held)
}

// row returns vectors one after another, as [1, n].
func (w *weights) row(names ...string) (*mlx.Tensor, error) {
	return w.hold(names, func(all [][]float32) (*mlx.Tensor, error) {
		var row []float32
		for _, v := range all {
			row = append(row, v...)
		}
		return w.engine.Upload(row, 1, len(row))
	})
}

// matrix returns weights of shape [out, in], transposed and side by side: [in, all outs].
func (w *weights) matrix(in int, names ...string) (*mlx.Tensor, error) {
	return w.hold(names, func(all [][]float32) (*mlx.Tensor, error) {
		width := 0
		for i, v := range all {
			if len(v) == 0 || len(v)%in != 0 {
				return nil, fmt.Errorf("%s%s has %d weights, which are no rows of %d", w.prefix, names[i], len(v), in)
			}
			width += len(v) / in
		}
		return w.engine.Fill([]int{in, width}, func(dst []float32) {
			for _, v := range all {
				transpose(dst, width, v, in)
				dst = dst[len(v)/in:]
			}
		})
	})
}

// hold returns what make gives for the named tensors, and keeps it.
func (w *weights) hold(names []string, make func([][]float32) (*mlx.Tensor, error)) (*mlx.Tensor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := strings.Join(names, " ")
	if t, ok := w.held[key]; ok {
		return t, nil
	}
	var all [][]float32
	for _, n := range names {
		v, err := w.src.Floats(w.prefix + n)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	t, err := make(all)
	if err != nil {
		return nil, err
	}
	w.held[key] = t
	return t, nil
}

// transpose writes the rows of src, each of length in, to the columns of dst, whose rows are stride apart.
func transpose(dst []float32, stride int, src []float32, in int) {
	const tile = 16 // a cache line of float32
	out := len(src) / in
	for j0 := 0; j0 < out; j0 += tile {
		for i0 := 0; i0 < in; i0 += tile {
			for j := j0; j < min(j0+tile, out); j++ {
				for i := i0; i < min(i0+tile, in); i++ {
					dst[i*stride+j] = src[j*in+i]
				}
			}
		}
	}
}

// floats reads a tensor that must have n elements.
func floats(src Source, name string, n int) ([]float32, error) {
	v, err := src.Floats(name)
	if err != nil {
		return nil, err
	}
	if len(v) != n {
		return nil, fmt.Errorf("%s has %d values, want %d", name, len(v), n)
	}
	return v, nil
}
