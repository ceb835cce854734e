package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"bonsai/kernels"
	"bonsai/ops/gguf"
	"bonsai/ops/safetensors"
)

// chunk is how many elements of a tensor are held: whole groups, a megabyte of floats.
const chunk = 1 << 18

// buffer is how many bytes are compared at a time.
const buffer = 1 << 18

// A tensor is one of a file, with what can be read of it.
type tensor struct {
	name string
	Layout
	n     int64                                                  // elements
	codes func(codes []int8, scales []uint16, first int64) error // nil: it is not ternary
	reals func(x []float32, first int64) error                   // nil: it is not of floats
	bytes func() (io.Reader, error)
}

func ggufTensors(f *gguf.File) (list []tensor) {
	for _, t := range f.Tensors() {
		c := tensor{name: t.Name, Layout: Layout{t.Type.String(), t.Shape}, n: t.Len()}
		if t.Size() >= 0 {
			c.bytes = func() (io.Reader, error) { return f.Section(t.Name) }
		}
		switch {
		case t.Type.IsTernary():
			c.codes = func(codes []int8, scales []uint16, first int64) error {
				return f.ReadCodes(t.Name, codes, scales, first)
			}
			c.reals = func(x []float32, first int64) error { return f.ReadFloats(t.Name, x, first) }
		case t.Type == gguf.F32 || t.Type == gguf.F16 || t.Type == gguf.BF16:
			c.reals = func(x []float32, first int64) error { return f.ReadFloats(t.Name, x, first) }
		}
		list = append(list, c)
	}
	return list
}

const (
	codesSuffix  = ".codes"
	scalesSuffix = ".scales"
)

// safeTensors returns the tensors of a file, its codes with their scales as one, and its
// format.
func safeTensors(f *safetensors.File) (list []tensor, format string) {
	format = Safetensors
	for _, t := range f.Tensors() {
		if base, ok := strings.CutSuffix(t.Name, scalesSuffix); ok {
			if codes, ok := f.Lookup(base + codesSuffix); ok && isPair(codes, t) {
				continue // told of with its codes
			}
		}
		if base, ok := strings.CutSuffix(t.Name, codesSuffix); ok {
			if scales, ok := f.Lookup(base + scalesSuffix); ok && isPair(t, scales) {
				list = append(list, pair(f, base, t))
				format = Codes
				continue
			}
		}
		c := tensor{name: t.Name, Layout: Layout{string(t.DType), t.Shape}, n: t.Len()}
		c.bytes = func() (io.Reader, error) { return f.Section(t.Name) }
		if t.DType.IsFloat() {
			c.reals = func(x []float32, first int64) error { return f.ReadFloats(t.Name, x, first) }
		}
		list = append(list, c)
	}
	return list, format
}

// isPair reports whether two tensors are codes and their scales.
func isPair(codes, scales safetensors.Tensor) bool {
	return codes.DType == safetensors.U8 && scales.DType == safetensors.F16 && codes.Len()*4 == scales.Len()*kernels.Group
}

// pair returns codes and their scales as one ternary tensor.
func pair(f *safetensors.File, name string, t safetensors.Tensor) tensor {
	shape := slices.Clone(t.Shape)
	shape[len(shape)-1] *= 4
	c := tensor{name: name, Layout: Layout{Codes, shape}, n: t.Len() * 4}
	c.bytes = func() (io.Reader, error) {
		codes, err := f.Section(name + codesSuffix)
		if err != nil {
			return nil, err
		}
		scales, err := f.Section(name + scalesSuffix)
		return io.MultiReader(codes, scales), err
	}
	c.codes = func(codes []int8, scales []uint16, first int64) error {
		packed, bits := make([]byte, len(codes)/4), make([]byte, len(scales)*2)
		for suffix, part := range map[string]struct {
			b  []byte
			at int64
		}{codesSuffix: {packed, first / 4}, scalesSuffix: {bits, first / kernels.Group * 2}} {
			s, err := f.Section(name + suffix)
			if err != nil {
				return err
			}
			if n, err := s.ReadAt(part.b, part.at); n < len(part.b) {
				return fmt.Errorf("%s: read tensor %s: %w", f.Name(), name+suffix, err)
			}
		}
		kernels.UnpackCodes(codes, packed)
		for i := range scales {
			scales[i] = uint16(bits[2*i]) | uint16(bits[2*i+1])<<8
		}
		return nil
	}
	return c
}

// tensors compares two lists by name.
func tensors(ctx context.Context, a, b []tensor) (list []Tensor, err error) {
	second := make(map[string]tensor, len(b))
	for _, t := range b {
		second[t.name] = t
	}
	for _, t := range a {
		now, ok := second[t.name]
		if !ok {
			list = append(list, Tensor{Name: t.name, Status: Removed, Old: &t.Layout})
			continue
		}
		delete(second, t.name)
		d, err := pairOf(ctx, t, now)
		if err != nil {
			return list, err
		}
		list = append(list, d)
	}
	for _, t := range b {
		if _, left := second[t.name]; left {
			list = append(list, Tensor{Name: t.name, Status: Added, New: &t.Layout})
		}
	}
	return list, nil
}

// pairOf compares two tensors of one name.
func pairOf(ctx context.Context, a, b tensor) (Tensor, error) {
	t := Tensor{Name: a.name, Status: Differs, Old: &a.Layout, New: &b.Layout}
	if !slices.Equal(a.Shape, b.Shape) {
		return t, nil
	}
	if a.bytes == nil || b.bytes == nil {
		t.Note = "the layout of this type is not known"
		return t, nil
	}
	if a.Type == b.Type {
		same, err := sameBytes(ctx, a, b)
		if err != nil {
			return t, err
		}
		if same {
			t.Status = Equal
			return t, nil
		}
	}
	var err error
	switch {
	case a.codes != nil && b.codes != nil:
		t.Ternary, err = ternary(ctx, a, b)
		if err == nil && t.Ternary.Codes == 0 && t.Ternary.Scales == 0 {
			t.Status = Equal // in another layout
		}
	case a.reals != nil && b.reals != nil:
		t.Float, err = floats(ctx, a, b)
	}
	if err != nil && ctx.Err() == nil && !isRead(err) {
		t.Note, t.Ternary, t.Float, err = err.Error(), nil, nil, nil
	}
	return t, err
}

// isRead reports whether an error is one of reading, not of the values that were read.
func isRead(err error) bool {
	_, a := errors.AsType[*gguf.NotFiniteError](err)
	_, b := errors.AsType[*safetensors.NotFiniteError](err)
	_, c := errors.AsType[*gguf.CodeError](err)
	return !a && !b && !c
}

func sameBytes(ctx context.Context, a, b tensor) (bool, error) {
	r, err := a.bytes()
	if err != nil {
		return false, err
	}
	s, err := b.bytes()
	if err != nil {
		return false, err
	}
	at, err := firstDifference(ctx, r, s)
	return at < 0, err
}

// firstDifference returns the offset of the first byte in which two streams differ, or
// at which one ends; -1 if there is none.
func firstDifference(ctx context.Context, a, b io.Reader) (int64, error) {
	x, y := make([]byte, buffer), make([]byte, buffer)
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		for _, err := range []error{errA, errB} {
			if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) { //nolint:errorlint // ReadFull returns it bare
				return -1, err
			}
		}
		if k := min(n, m); !bytes.Equal(x[:k], y[:k]) {
			for i := range k {
				if x[i] != y[i] {
					return at + int64(i), nil
				}
			}
		}
		if n != m {
			return at + int64(min(n, m)), nil
		}
		if n < buffer {
			return -1, nil
		}
		at += int64(n)
	}
}

// ternary compares codes and scales.
func ternary(ctx context.Context, a, b tensor) (*Ternary, error) {
	t := &Ternary{Elements: a.n}
	size := min(a.n, chunk)
	var codes [2][]int8
	var scales [2][]uint16
	for i := range codes {
		codes[i], scales[i] = make([]int8, size), make([]uint16, size/kernels.Group)
	}
	var other, flips int64
	var zeros [2]int64
	var square, norm float64
	for at := int64(0); at < a.n; at += size {
		n := min(size, a.n-at)
		for i, f := range []tensor{a, b} {
			if err := errors.Join(ctx.Err(), f.codes(codes[i][:n], scales[i][:n/kernels.Group], at)); err != nil {
				return t, err
			}
		}
		for i, x := range codes[0][:n] {
			y := codes[1][i]
			if x != y {
				other++
			}
			if x*y < 0 {
				flips++
			}
			if x == 0 {
				zeros[0]++
			}
			if y == 0 {
				zeros[1]++
			}
		}
		for i, bits := range scales[0][:n/kernels.Group] {
			x, y := float64(kernels.HalfToFloat(bits)), float64(kernels.HalfToFloat(scales[1][i]))
			square += (y - x) * (y - x)
			norm += x * x
		}
	}
	all := float64(max(1, a.n))
	t.Codes, t.Flips = float64(other)/all, float64(flips)/all
	t.Zeros = [2]float64{float64(zeros[0]) / all, float64(zeros[1]) / all}
	t.Scales = ratio(square, norm)
	return t, nil
}

// floats compares values.
func floats(ctx context.Context, a, b tensor) (*Float, error) {
	f := &Float{}
	size := min(a.n, chunk)
	x, y := make([]float32, size), make([]float32, size)
	var square, norm float64
	for at := int64(0); at < a.n; at += size {
		n := min(size, a.n-at)
		if err := errors.Join(ctx.Err(), a.reals(x[:n], at), b.reals(y[:n], at)); err != nil {
			return f, err
		}
		for i := range x[:n] {
			d := float64(y[i]) - float64(x[i])
			f.Max = max(f.Max, math.Abs(d))
			square += d * d
			norm += float64(x[i]) * float64(x[i])
		}
	}
	f.Relative = ratio(square, norm)
	return f, nil
}

// ratio returns the RMS of a difference over that of what it is of, both as sums of
// squares: 0 if there is no difference, and the largest number if all was 0 before, since
// JSON has no infinity.
func ratio(square, norm float64) float64 {
	switch {
	case square == 0:
		return 0
	case norm == 0:
		return math.MaxFloat64
	default:
		return math.Sqrt(square / norm)
	}
}
