package quantize

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"bonsai/kernels"
	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// Weights gives the weights of a model in the checkpoint's own basis: of a tensor that has
// codes, what these stand for with the rotation undone; of any other, the checkpoint's.
// It is a model.Source. Its methods may be called from many goroutines at once.
type Weights struct {
	base  model.Source
	codes *safetensors.Set
	signs *Signs
	files []*safetensors.File
}

// Overlay lays codes over the weights of base. signs may be nil if there are no codes.
// It returns an error for a tensor with codes in two files, or of a rotation other than signs.
func Overlay(base model.Source, codes []*safetensors.File, signs *Signs) (*Weights, error) {
	set, err := safetensors.NewSet(codes...)
	if err != nil {
		return nil, err
	}
	w := &Weights{base: base, codes: set, signs: signs}
	for _, f := range codes {
		if err := w.checkRotation(f); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// OpenWeights opens the inputs of an op that are weights, in any order: shards of a
// checkpoint, files of codes, and the rotation of the codes. Close it after use.
func OpenWeights(in []*io.SectionReader) (*Weights, error) {
	var shards, codes, all []*safetensors.File
	var signs *Signs
	fail := func(err error) (*Weights, error) {
		return nil, errors.Join(err, closeAll(all))
	}
	for i, r := range in {
		f, err := safetensors.OpenInput(r, nameOf(r, i))
		if err != nil {
			return fail(err)
		}
		all = append(all, f)
		switch {
		case holds(f, codesSuffix):
			codes = append(codes, f)
		case strings.HasPrefix(firstTensor(f), "signs."):
			if signs, err = ReadSigns(f); err != nil {
				return fail(err)
			}
		default:
			shards = append(shards, f)
		}
	}
	base, err := safetensors.NewSet(shards...)
	if err != nil {
		return fail(err)
	}
	w, err := Overlay(base, codes, signs)
	if err != nil {
		return fail(err)
	}
	w.files = all
	return w, nil
}

// Close closes the files that OpenWeights opened.
func (w *Weights) Close() error { return closeAll(w.files) }

// HasCodes reports whether a tensor has codes.
func (w *Weights) HasCodes(name string) bool {
	_, ok := w.codes.Lookup(name + codesSuffix)
	return ok
}

// Floats implements model.Source.
func (w *Weights) Floats(name string) ([]float32, error) {
	if !w.HasCodes(name) {
		return w.base.Floats(name)
	}
	c, err := w.coded(name)
	if err != nil {
		return nil, err
	}
	x := make([]float32, c.rows*c.cols)
	return x, c.read(x, 0)
}

// ReadFloats fills x with elements of a tensor from element first on. Of a tensor with
// codes they must be whole rows.
func (w *Weights) ReadFloats(name string, x []float32, first int64) error {
	if w.HasCodes(name) {
		c, err := w.coded(name)
		if err != nil {
			return err
		}
		return c.read(x, first)
	}
	if r, ok := w.base.(rowReader); ok {
		return r.ReadFloats(name, x, first)
	}
	all, err := w.base.Floats(name)
	if err != nil {
		return err
	}
	if first < 0 || first+int64(len(x)) > int64(len(all)) {
		return fmt.Errorf("tensor %s: elements %d to %d of %d", name, first, first+int64(len(x)), len(all))
	}
	copy(x, all[first:])
	return nil
}

// A rowReader is a source that reads a part of a tensor.
type rowReader interface {
	ReadFloats(name string, x []float32, first int64) error
}

// coded is a tensor of codes.
type coded struct {
	name       string
	rows, cols int
	signs      []int8
	block      int

	codes, scales *io.SectionReader
}

func (w *Weights) coded(name string) (*coded, error) {
	f, err := w.codes.File(name + codesSuffix)
	if err != nil {
		return nil, err
	}
	packed, _ := f.Lookup(name + codesSuffix)
	scales, ok := f.Lookup(name + scalesSuffix)
	switch {
	case !ok, packed.DType != safetensors.U8, scales.DType != safetensors.F16,
		len(packed.Shape) != 2, len(scales.Shape) != 2, packed.Shape[0] != scales.Shape[0],
		packed.Shape[1]*4 != scales.Shape[1]*kernels.Group:
		return nil, fmt.Errorf("%s: tensor %s: codes %v without scales that fit", f.Name(), name, packed.Shape)
	}
	c := &coded{name: name, rows: int(packed.Shape[0]), cols: int(packed.Shape[1]) * 4, block: w.signs.Block}
	if c.signs, err = w.signs.Of(c.cols); err != nil {
		return nil, fmt.Errorf("tensor %s: %w", name, err)
	}
	if c.codes, err = f.Section(name + codesSuffix); err != nil {
		return nil, err
	}
	c.scales, err = f.Section(name + scalesSuffix)
	return c, err
}

// read fills x with whole rows from element first on.
func (c *coded) read(x []float32, first int64) error {
	if int(first)%c.cols != 0 || len(x)%c.cols != 0 || first < 0 || int(first)+len(x) > c.rows*c.cols {
		return fmt.Errorf("tensor %s: elements %d to %d of %d rows of %d", c.name, first, int(first)+len(x), c.rows, c.cols)
	}
	packed, codes := make([]byte, c.cols/4), make([]int8, c.cols)
	half, scales := make([]byte, c.cols/kernels.Group*2), make([]uint16, c.cols/kernels.Group)
	for row := int(first) / c.cols; len(x) > 0; row++ {
		if _, err := c.codes.ReadAt(packed, int64(row)*int64(len(packed))); err != nil {
			return fmt.Errorf("tensor %s: codes of row %d: %w", c.name, row, err)
		}
		if _, err := c.scales.ReadAt(half, int64(row)*int64(len(half))); err != nil {
			return fmt.Errorf("tensor %s: scales of row %d: %w", c.name, row, err)
		}
		kernels.UnpackCodes(codes, packed)
		for g := range scales {
			scales[g] = uint16(half[2*g]) | uint16(half[2*g+1])<<8
		}
		kernels.Dequantize(x[:c.cols], codes, scales)
		kernels.Unrotate(x[:c.cols], c.signs, c.block)
		x = x[c.cols:]
	}
	return nil
}

// checkRotation returns an error unless the codes of f are of the rotation w.signs.
func (w *Weights) checkRotation(f *safetensors.File) error {
	metadata := f.Metadata()
	for _, t := range f.Tensors() {
		name, ok := strings.CutSuffix(t.Name, codesSuffix)
		if !ok || len(t.Shape) != 2 {
			continue
		}
		have, err := w.signs.Name(int(t.Shape[1]) * 4)
		if err != nil {
			return fmt.Errorf("%s: tensor %s: %w", f.Name(), name, err)
		}
		if have != metadata["rotation"] {
			return fmt.Errorf("%s: tensor %s: codes of rotation %q, not of %q", f.Name(), name, metadata["rotation"], have)
		}
	}
	return nil
}

// The tensors of a file of codes: for each tensor NAME, NAME.codes, U8 [rows, cols/4], four
// codes a byte, low bits first, code+1 each; and NAME.scales, F16 [rows, cols/128].
const (
	codesSuffix  = ".codes"
	scalesSuffix = ".scales"
)

func holds(f *safetensors.File, suffix string) bool {
	for _, t := range f.Tensors() {
		if strings.HasSuffix(t.Name, suffix) {
			return true
		}
	}
	return false
}

func firstTensor(f *safetensors.File) string {
	if t := f.Tensors(); len(t) > 0 {
		return t[0].Name
	}
	return ""
}

func closeAll(files []*safetensors.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// nameOf returns the name of a file of weights in errors: empty where it is that of the
// file on disk.
func nameOf(r *io.SectionReader, i int) string {
	if outer, _, _ := r.Outer(); outer != nil {
		if _, ok := outer.(interface{ Name() string }); ok {
			return ""
		}
	}
	return fmt.Sprintf("weights %d", i)
}
