package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"bonsai/kernels"
)

// chunk is how many elements are converted at a time: the buffer of raw bytes stays
// small beside the tensor.
const chunk = 1 << 18

// A NotFiniteError is a value that no computation can use.
type NotFiniteError struct {
	File, Tensor string
	Index        int64 // of the element, row-major from 0
	Value        float32
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("%s: tensor %s: element %d is %v", e.File, quote(e.Tensor), e.Index, e.Value)
}

// Floats returns the elements of an F32, F16 or BF16 tensor, row-major.
//
// Errors: ErrMissing; another dtype, which is named; a *NotFiniteError for the first
// element that is NaN or infinite.
func (f *File) Floats(name string) ([]float32, error) {
	t, err := f.tensor(name)
	if err != nil {
		return nil, err
	}
	x := make([]float32, t.Len())
	return x, f.ReadFloats(name, x, 0)
}

// ReadFloats fills x with the elements of a tensor from element first on: rows r to
// r+n of a [rows, cols] matrix are n*cols elements from r*cols. Errors are those of
// Floats, and x reaching past the end of the tensor.
func (f *File) ReadFloats(name string, x []float32, first int64) error {
	t, err := f.tensor(name)
	if err != nil {
		return err
	}
	if !t.DType.IsFloat() {
		return fmt.Errorf("%s: tensor %s: dtype %s where F32, F16 or BF16 is needed", f.name, quote(name), t.DType)
	}
	if first < 0 || first > t.Len()-int64(len(x)) {
		return fmt.Errorf("%s: tensor %s: elements %d to %d of %d", f.name, quote(name), first, first+int64(len(x)), t.Len())
	}
	width := t.DType.bits() / 8
	raw := make([]byte, width*int64(min(len(x), chunk)))
	for len(x) > 0 {
		n := min(len(x), chunk)
		b := raw[:int64(n)*width]
		if err := f.read(t, b, first*width); err != nil {
			return err
		}
		if i := decode(x[:n], b, t.DType); i >= 0 {
			return &NotFiniteError{f.name, name, first + int64(i), x[i]}
		}
		x, first = x[n:], first+int64(n)
	}
	return nil
}

// decode fills x from b and returns the index of the first element that is not finite,
// or -1.
func decode(x []float32, b []byte, d DType) int {
	switch d {
	case BF16:
		kernels.BF16ToF32(x, b)
	case F16:
		kernels.F16ToF32(x, b)
	default:
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	return kernels.NotFinite(x)
}

// Int32s returns the elements of an I32 tensor. Errors wrap ErrMissing or name another dtype.
func (f *File) Int32s(name string) ([]int32, error) {
	b, err := f.typed(name, I32)
	x := make([]int32, len(b)/4)
	for i := range x {
		x[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x, err
}

// Int8s returns the elements of an I8 tensor. Errors wrap ErrMissing or name another dtype.
func (f *File) Int8s(name string) ([]int8, error) {
	b, err := f.typed(name, I8)
	x := make([]int8, len(b))
	for i := range x {
		x[i] = int8(b[i])
	}
	return x, err
}

// Halves returns the bits of the elements of an F16 tensor, which may be infinite or
// NaN. Errors wrap ErrMissing or name another dtype.
func (f *File) Halves(name string) ([]uint16, error) {
	b, err := f.typed(name, F16)
	x := make([]uint16, len(b)/2)
	for i := range x {
		x[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return x, err
}

// typed returns the bytes of a tensor that must have one dtype.
func (f *File) typed(name string, want DType) ([]byte, error) {
	t, err := f.tensor(name)
	if err != nil {
		return nil, err
	}
	if t.DType != want {
		return nil, fmt.Errorf("%s: tensor %s: dtype %s where %s is needed", f.name, quote(name), t.DType, want)
	}
	return f.Bytes(name)
}
