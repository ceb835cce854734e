package prism

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"bonsai/kernels"
	"bonsai/ops"
	"bonsai/ops/gguf"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
)

// Verify reads a file back and compares it with what it was made of: the list of tensors
// and their bits a weight with the plan; every code, scale and value with its artifact;
// every key of the metadata; and, through Load, the logits of a few tokens.
//
// Inputs: 0 the file; then those of the Write that made it. The output is a Report.
//
// Errors wrap ErrMismatch and name the tensor or key, or are those of Write and Load.
type Verify struct {
	Write Write // what made the file

	engine *mlx.Engine
}

// On returns v computing logits on engine.
func (v Verify) On(engine *mlx.Engine) Verify {
	v.engine = engine
	return v
}

// AppendText implements engine.Op.
func (v Verify) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "gguf.verify", 1, v)
}

// Peak returns the most bytes that Run holds for a model, beside mapped files: the weights
// of a layer, twice.
func (v Verify) Peak(c *model.Config) int64 {
	var layer int64
	for _, t := range c.LayerTensors(0) {
		layer += t.Size() * 4
	}
	return v.Write.Peak() + 2*layer
}

// A Report is what Verify found, as JSON.
type Report struct {
	Version       int     `json:"version"` // of the report's form, 1
	Format        string  `json:"format"`
	Architecture  string  `json:"architecture"`
	Tensors       int     `json:"tensors"`
	Ternary       int     `json:"ternary"` // tensors, as planned
	Keys          int     `json:"keys"`    // of metadata
	Weights       int64   `json:"weights"`
	Bytes         int64   `json:"bytes"`           // of tensors with padding
	BitsPerWeight float64 `json:"bits_per_weight"` // planned and actual
	Logits        Logits  `json:"logits"`
}

// Logits compares the logits of the file, as Load reads it, with those of the artifacts.
type Logits struct {
	Positions int     `json:"positions"`
	Rows      int     `json:"rows"`           // of the tables that took part
	KL        float64 `json:"kl"`             // mean over positions, nats
	Largest   float64 `json:"max_difference"` // of two logits
}

// maxKL is the most that Logits.KL may be. Both sides compute with the same weights; what
// differs is rounded numbers in the metadata.
const maxKL = 1e-6

// Run implements engine.Op.
func (v Verify) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) (err error) {
	if v.engine == nil {
		return errors.New("no tensor engine")
	}
	if len(in) == 0 {
		return errors.New("no file to verify")
	}
	o, err := v.Write.open(in[1:])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	f, err := gguf.Open(in[0], in[0].Size(), "the file")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	c := &comparison{f: f, o: o, report: report}
	for _, step := range []func(context.Context) error{c.keys, c.list, c.tensors} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	logits, err := c.logits(v.engine)
	if err != nil {
		return err
	}
	return v.write(out[0], c, logits, report)
}

// write writes the report.
func (v Verify) write(w io.Writer, c *comparison, logits Logits, report func(float64, string)) error {
	l := c.o.layout
	text, err := json.MarshalIndent(Report{
		Version: 1, Format: v.Write.Format, Architecture: l.Arch,
		Tensors: len(l.Tensors), Ternary: l.Ternary(), Keys: len(c.o.meta),
		Weights: l.Weights, Bytes: l.Bytes, BitsPerWeight: l.BitsPerWeight(), Logits: logits,
	}, "", "  ")
	if err != nil {
		return err
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return err
	}
	report(1, fmt.Sprintf("%d tensors and %d keys as planned, %.3f bits a weight, logits within %.2g", len(l.Tensors), len(c.o.meta), l.BitsPerWeight(), logits.Largest))
	return nil
}

// A comparison holds the file beside what it was made of.
type comparison struct {
	f      *gguf.File
	o      *inputs
	report func(float64, string)
}

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
}

// keys compares the metadata.
func (c *comparison) keys(context.Context) error {
	for _, want := range c.o.meta {
		got, ok := c.f.Value(want.Key)
		if !ok {
			return mismatch("key %s is missing", want.Key)
		}
		if !reflect.DeepEqual(got, want.Value) {
			return mismatch("key %s is %.80s, want %.80s", want.Key, fmt.Sprint(got), fmt.Sprint(want.Value))
		}
	}
	for _, got := range c.f.Meta() {
		if !slices.ContainsFunc(c.o.meta, func(kv gguf.KV) bool { return kv.Key == got.Key }) {
			return mismatch("key %s was not to be written", got.Key)
		}
	}
	return nil
}

// list compares the list of tensors and the bytes they take.
func (c *comparison) list(context.Context) error {
	have := c.f.Tensors()
	var bytes int64
	for i, want := range c.o.layout.Tensors {
		got, ok := c.f.Lookup(want.Name)
		switch {
		case !ok:
			return mismatch("tensor %s is missing", want.Name)
		case got.Type != want.Type, !slices.Equal(got.Shape, want.Shape), got.Size() != want.Bytes:
			return mismatch("tensor %s is %v %v of %d bytes, planned %v %v of %d", want.Name, got.Type, got.Shape, got.Size(), want.Type, want.Shape, want.Bytes)
		case have[i].Name != want.Name:
			return mismatch("tensor %s stands where %s was planned", have[i].Name, want.Name)
		}
		bytes += padded(got.Size())
	}
	if extra := have[len(c.o.layout.Tensors):]; len(extra) > 0 {
		return mismatch("tensor %s was not planned", extra[0].Name)
	}
	if bytes != c.o.layout.Bytes {
		return mismatch("%d bytes of tensors, planned %d", bytes, c.o.layout.Bytes)
	}
	return nil
}

// tensors compares every element.
func (c *comparison) tensors(ctx context.Context) error {
	var done int64
	for _, t := range c.o.layout.Tensors {
		c.report(0.9*float64(done)/float64(c.o.layout.Bytes), t.Name)
		compare := c.floats
		if t.Type.IsTernary() {
			compare = c.codes
		}
		err := c.o.chunks(t, func(want chunk) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return compare(t, want)
		})
		if err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		done += padded(t.Bytes)
	}
	return nil
}

func (c *comparison) codes(t Tensor, want chunk) error {
	codes, scales := make([]int8, len(want.codes)), make([]uint16, len(want.scales))
	if err := c.f.ReadCodes(t.Name, codes, scales, want.first); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	for i, code := range codes {
		if code != want.codes[i] {
			return mismatch("code %d is %d, want %d", want.first+int64(i), code, want.codes[i])
		}
	}
	for i, s := range scales {
		if s != want.scales[i] {
			return mismatch("scale %d is %#04x, want %#04x", want.first/kernels.Group+int64(i), s, want.scales[i])
		}
	}
	return nil
}

func (c *comparison) floats(t Tensor, want chunk) error {
	values := make([]float32, len(want.floats))
	if err := c.f.ReadFloats(t.Name, values, want.first); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	round(want.floats, t.Type)
	for i, v := range values {
		if v != want.floats[i] {
			return mismatch("element %d is %v, want %v", want.first+int64(i), v, want.floats[i])
		}
	}
	return nil
}

// round gives x the precision that a tensor of high precision has in the file.
func round(x []float32, t gguf.Type) {
	if t != gguf.BF16 {
		return
	}
	b := make([]byte, 2*min(len(x), 1<<16))
	for len(x) > 0 {
		n := min(len(x), 1<<16)
		kernels.F32ToBF16(b[:2*n], x[:n])
		kernels.BF16ToF32(x[:n], b[:2*n])
		x = x[n:]
	}
}
