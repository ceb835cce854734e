package model

import (
	"fmt"
	"math"
	"sync"

	"bonsai/ops/mlx"
)

// A Runner computes the parts of a model's forward pass. Its graphs are compiled once per shape and serve every
// layer. It may be used from several goroutines.
type Runner struct {
	c      *Config
	engine *mlx.Engine
	parts  map[string]*mlx.Func

	mu     sync.Mutex
	tables map[int][]*mlx.Tensor // cos and sin, [length, dim], by length
}

// NewRunner returns a runner for a valid config. Nothing is computed or opened yet.
func NewRunner(engine *mlx.Engine, c *Config) *Runner {
	r := &Runner{c: c, engine: engine, parts: map[string]*mlx.Func{}, tables: map[int][]*mlx.Tensor{}}
	r.add("norm", norm)
	r.add("gated", gated)
	r.add("out", out)
	r.add("logits", logits)
	for _, w := range append([]int{0}, c.Windows...) {
		r.add(windowed("attention", w), attention(w))
		r.add(windowed("mid", w), mid(w))
	}
	return r
}

func windowed(name string, window int) string { return fmt.Sprintf("%s/%d", name, window) }

func (r *Runner) add(name string, p part) {
	r.parts[name] = r.engine.Func(name, func(in []*mlx.Node) []*mlx.Node {
		return []*mlx.Node{p(r.c, in[0], &args{in[1:]})}
	})
}

// Config returns the config that the runner was made for.
func (r *Runner) Config() *Config { return r.c }

// Free gives back the memory of the runner's tables. It can be used again.
func (r *Runner) Free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		t[0].Free()
		t[1].Free()
	}
	clear(r.tables)
}

// Embed returns the embeddings of ids, [tokens, hidden].
func (r *Runner) Embed(src Source, ids []int32) ([]float32, error) {
	table, err := floats(src, EmbedName, r.c.Vocab*r.c.Hidden)
	if err != nil {
		return nil, err
	}
	x := make([]float32, len(ids)*r.c.Hidden)
	for i, id := range ids {
		if id < 0 || int(id) >= r.c.Vocab {
			return nil, fmt.Errorf("token %d is %d, not in a vocabulary of %d", i, id, r.c.Vocab)
		}
		copy(x[i*r.c.Hidden:][:r.c.Hidden], table[int(id)*r.c.Hidden:])
	}
	return x, nil
}

// Final returns the last norm of x, [tokens, hidden]: what the head reads.
func (r *Runner) Final(src Source, x []float32) ([]float32, error) {
	w := newWeights(r.engine, src, "")
	defer w.free()
	gain, err := w.row(NormName)
	if err != nil {
		return nil, err
	}
	tokens, err := r.tokens(x)
	if err != nil {
		return nil, err
	}
	return r.run(call{part: "norm", what: NormName, out: r.c.Hidden}, x, tokens, 1, []*mlx.Tensor{gain})
}

// A Head multiplies with the table that turns hidden states into logits. Free it.
type Head struct {
	r *Runner
	w *weights
	t *mlx.Tensor
}

// LoadHead reads the head's table.
func (r *Runner) LoadHead(src Source) (*Head, error) {
	w := newWeights(r.engine, src, "")
	t, err := w.matrix(r.c.Hidden, r.c.HeadName())
	if err != nil {
		w.free()
		return nil, err
	}
	return &Head{r, w, t}, nil
}

// Logits returns the logits, [tokens, vocab], of the result of Runner.Final, [tokens, hidden].
// They are large: call it on a few hundred tokens at a time.
func (h *Head) Logits(hidden []float32) ([]float32, error) {
	tokens, err := h.r.tokens(hidden)
	if err != nil {
		return nil, err
	}
	return h.r.run(call{part: "logits", what: "the logits", out: h.r.c.Vocab}, hidden, tokens, 1, []*mlx.Tensor{h.t})
}

// Free gives the table's memory back.
func (h *Head) Free() { h.w.free() }

// Logits returns the logits, [tokens, vocab], of hidden, [tokens, hidden], as Final returns it. To compute them in
// several calls, use LoadHead.
func (r *Runner) Logits(src Source, hidden []float32) ([]float32, error) {
	h, err := r.LoadHead(src)
	if err != nil {
		return nil, err
	}
	defer h.Free()
	return h.Logits(hidden)
}

// Forward returns the logits, [tokens, vocab], of sequences of one length, side by side in ids.
func (r *Runner) Forward(src Source, ids []int32, length int) ([]float32, error) {
	x, err := r.Embed(src, ids)
	if err != nil {
		return nil, err
	}
	if length < 1 || len(ids)%length != 0 {
		return nil, fmt.Errorf("%d tokens are no sequences of %d", len(ids), length)
	}
	for i := range r.c.Layers {
		if x, err = r.step(src, i, x, len(ids)/length, length); err != nil {
			return nil, err
		}
	}
	if x, err = r.Final(src, x); err != nil {
		return nil, err
	}
	return r.Logits(src, x)
}

func (r *Runner) step(src Source, layer int, x []float32, seqs, length int) ([]float32, error) {
	l, err := r.LoadLayer(src, layer)
	if err != nil {
		return nil, err
	}
	defer l.Free()
	y, err := l.Mid(x, seqs, length)
	if err != nil {
		return nil, err
	}
	return l.Out(y, seqs, length)
}

// tokens returns how many tokens' states x holds.
func (r *Runner) tokens(x []float32) (int, error) {
	if len(x) == 0 || len(x)%r.c.Hidden != 0 {
		return 0, fmt.Errorf("%d values are no states of width %d", len(x), r.c.Hidden)
	}
	return len(x) / r.c.Hidden, nil
}

// rotary returns the cos and sin tables for positions up to length.
func (r *Runner) rotary(length int) ([]*mlx.Tensor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.tables[length]; ok {
		return t, nil
	}
	half := r.c.HeadDim / 2
	freqs, scale := r.c.Rope.Frequencies(r.c.HeadDim)
	var both []*mlx.Tensor
	for _, f := range []struct {
		of    func(float64) float64
		first float64 // sign of the first half
	}{{math.Cos, 1}, {math.Sin, -1}} {
		t, err := r.engine.Fill([]int{length, r.c.HeadDim}, func(dst []float32) {
			for p := range length {
				for j, w := range freqs {
					v := f.of(float64(p)*w) * scale
					dst[p*2*half+j], dst[p*2*half+half+j] = float32(f.first*v), float32(v)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		both = append(both, t)
	}
	r.tables[length] = both
	return both, nil
}
