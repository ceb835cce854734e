package prism

import (
	"fmt"
	"math"

	"bonsai/ops/gguf"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
)

const (
	// sampleRows is how many rows of the tables take part in the comparison of logits, so
	// that a large vocabulary costs no more than a layer.
	sampleRows = 256
	// sampleTokens is the length of the sequence.
	sampleTokens = 24
)

// logits compares the logits of the file with those of the artifacts.
func (c *comparison) logits(engine *mlx.Engine) (Logits, error) {
	c.report(0.9, "logits")
	config, weights, err := Load(c.f)
	if err != nil {
		return Logits{}, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	if config.Vocab != c.o.config.Vocab || config.Hidden != c.o.config.Hidden {
		return Logits{}, mismatch("%d tokens of width %d, want %d of %d", config.Vocab, config.Hidden, c.o.config.Vocab, c.o.config.Hidden)
	}
	rows := sampled(config.Vocab)
	got, err := forward(engine, config, weights, rows)
	if err != nil {
		return Logits{}, err
	}
	want, err := forward(engine, c.o.config, planned{c.o}, rows)
	if err != nil {
		return Logits{}, err
	}
	l := Logits{Positions: sampleTokens, Rows: len(rows)}
	for i := range sampleTokens {
		a, b := want[i*len(rows):][:len(rows)], got[i*len(rows):][:len(rows)]
		l.KL += divergence(a, b) / sampleTokens
		for j := range a {
			l.Largest = max(l.Largest, math.Abs(float64(a[j])-float64(b[j])))
		}
	}
	if !(l.KL <= maxKL) {
		return l, mismatch("logits: KL %.3g of %d tokens, want at most %g", l.KL, sampleTokens, maxKL)
	}
	return l, nil
}

// sampled returns rows spread evenly over a vocabulary.
func sampled(vocab int) []int {
	rows := make([]int, min(vocab, sampleRows))
	for i := range rows {
		rows[i] = i * vocab / len(rows)
	}
	return rows
}

// forward returns the logits, [sampleTokens, rows], of a fixed sequence of the sampled
// tokens, for those tokens.
func forward(engine *mlx.Engine, c *model.Config, src rowSource, rows []int) ([]float32, error) {
	small := *c
	small.Vocab = len(rows)
	ids := make([]int32, sampleTokens)
	for i := range ids {
		ids[i] = int32((7*i + 3) % len(rows))
	}
	r := model.NewRunner(engine, &small)
	defer r.Free()
	return r.Forward(sample{src, &small, rows}, ids, sampleTokens)
}

// A rowSource is a model.Source that can read some rows.
type rowSource interface {
	model.Source
	ReadFloats(name string, x []float32, first int64) error
}

// A sample is a source whose tables have only some of the rows.
type sample struct {
	rowSource
	config *model.Config
	rows   []int
}

// Floats implements model.Source.
func (s sample) Floats(name string) ([]float32, error) {
	if name != model.EmbedName && name != s.config.HeadName() {
		return s.rowSource.Floats(name)
	}
	x := make([]float32, len(s.rows)*s.config.Hidden)
	for i, row := range s.rows {
		if err := s.ReadFloats(name, x[i*s.config.Hidden:][:s.config.Hidden], int64(row)*int64(s.config.Hidden)); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// planned is the source of the artifacts, in the precision that the file has.
type planned struct{ o *inputs }

// Floats implements model.Source.
func (p planned) Floats(name string) ([]float32, error) {
	x, err := p.o.coded.Floats(name)
	round(x, p.typeOf(name))
	return x, err
}

// ReadFloats fills x with whole rows of a tensor from element first on.
func (p planned) ReadFloats(name string, x []float32, first int64) error {
	err := p.o.coded.ReadFloats(name, x, first)
	round(x, p.typeOf(name))
	return err
}

func (p planned) typeOf(name string) gguf.Type {
	for _, t := range p.o.layout.Tensors {
		if t.From == name {
			return t.Type
		}
	}
	return gguf.F32
}

// divergence returns KL(p ‖ q) in nats of two distributions given as logits.
func divergence(p, q []float32) float64 {
	a, b := logSumExp(p), logSumExp(q)
	var kl float64
	for i := range p {
		logP, logQ := float64(p[i])-a, float64(q[i])-b
		kl += math.Exp(logP) * (logP - logQ)
	}
	return kl
}

func logSumExp(x []float32) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, float64(v))
	}
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}
