package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"bonsai/kernels"
)

// blocks is how many blocks are converted at a time, so that the buffer of raw bytes
// stays small beside the tensor.
const blocks = 1 << 12

// A NotFiniteError is a value or scale that no computation can use.
type NotFiniteError struct {
	File, Tensor string
	Index        int64 // of the element, row-major from 0; of a scale, its first element
	Value        float32
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("%s: tensor %s: element %d is %v", e.File, quote(e.Tensor), e.Index, e.Value)
}

// A CodeError is a PQ2_0 code of 2, which the block can hold and a ternary model cannot.
type CodeError struct {
	File, Tensor string
	Index        int64 // of the element, row-major from 0
}

func (e *CodeError) Error() string {
	return fmt.Sprintf("%s: tensor %s: element %d has code +2, which is not ternary", e.File, quote(e.Tensor), e.Index)
}

// Section returns a reader of a tensor's bytes, without padding.
// Errors wrap ErrMissing, or ErrFormat where the size is not known.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, err := f.tensor(name)
	if err != nil {
		return nil, err
	}
	if t.size < 0 {
		return nil, f.undecodable(t)
	}
	return io.NewSectionReader(f.r, t.offset, t.size), nil
}

// Bytes returns a tensor's bytes, without padding. Errors are those of Section, or tell
// that reading failed.
func (f *File) Bytes(name string) ([]byte, error) {
	s, err := f.Section(name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, s.Size())
	if _, err := io.ReadFull(s, b); err != nil {
		return nil, fmt.Errorf("%s: read tensor %s: %w", f.name, quote(name), err)
	}
	return b, nil
}

// Floats returns the values of an F32, F16, BF16, PTQ1_0 or PQ2_0 tensor, row-major.
//
// Errors: ErrMissing; another type, which is named; a *NotFiniteError.
func (f *File) Floats(name string) ([]float32, error) {
	t, err := f.tensor(name)
	if err != nil {
		return nil, err
	}
	if !t.decodes() {
		return nil, f.undecodable(t)
	}
	x := make([]float32, t.Len())
	return x, f.ReadFloats(name, x, 0)
}

// ReadFloats fills x with a tensor's values from element first on. For a ternary type
// first and len(x) are multiples of 128. Errors are those of Floats, and x reaching past
// the end of the tensor.
func (f *File) ReadFloats(name string, x []float32, first int64) error {
	t, err := f.tensor(name)
	if err != nil {
		return err
	}
	if !t.decodes() {
		return f.undecodable(t)
	}
	if t.Type.IsTernary() {
		return f.readTernary(t, first, int64(len(x)), func(at int64, codes []int8, scales []uint16) error {
			kernels.Dequantize(x[at-first:][:len(codes)], codes, scales)
			return nil
		})
	}
	return f.readBlocks(t, first, int64(len(x)), func(at int64, b []byte) error {
		n := int64(len(b)) / t.unit()
		if i := decode(x[at-first:][:n], b, t.Type); i >= 0 {
			return &NotFiniteError{f.name, name, at + int64(i), x[at-first+int64(i)]}
		}
		return nil
	})
}

// Codes returns the contents of a PTQ1_0 or PQ2_0 tensor.
//
//	codes   [rows, cols], each −1, 0 or 1
//	scales  [rows, cols/128] binary16 bits, finite
//
// Errors: ErrMissing; another type, which is named; a *NotFiniteError for a scale; a
// *CodeError.
func (f *File) Codes(name string) (codes []int8, scales []uint16, err error) {
	t, err := f.tensor(name)
	if err != nil {
		return nil, nil, err
	}
	if !t.Type.IsTernary() {
		return nil, nil, f.notTernary(t)
	}
	codes = make([]int8, t.Len())
	scales = make([]uint16, t.Len()/kernels.Group)
	return codes, scales, f.ReadCodes(name, codes, scales, 0)
}

// ReadCodes fills codes and scales with a tensor's contents from element first on, a
// multiple of 128 as is len(codes) = 128 len(scales). Errors are those of Codes, and
// codes reaching past the end of the tensor.
func (f *File) ReadCodes(name string, codes []int8, scales []uint16, first int64) error {
	t, err := f.tensor(name)
	if err != nil {
		return err
	}
	if !t.Type.IsTernary() {
		return f.notTernary(t)
	}
	return f.readTernary(t, first, int64(len(codes)), func(at int64, c []int8, s []uint16) error {
		for i, v := range c {
			if v > 1 {
				return &CodeError{f.name, name, at + int64(i)}
			}
		}
		copy(codes[at-first:], c)
		copy(scales[(at-first)/kernels.Group:], s)
		return nil
	})
}

// readTernary calls each with runs of n elements from first on, unpacked.
func (f *File) readTernary(t Tensor, first, n int64, each func(at int64, codes []int8, scales []uint16) error) error {
	unpack := kernels.UnpackPQ2
	if t.Type == PTQ1 {
		unpack = kernels.UnpackPTQ1
	}
	run := min(max(n, 0)/kernels.Group, blocks)
	codes := make([]int8, run*kernels.Group)
	scales := make([]uint16, run)
	return f.readBlocks(t, first, n, func(at int64, b []byte) error {
		count := int(int64(len(b)) / t.unit())
		eachBlock(count, func(i int) {
			scales[i] = unpack(codes[i*kernels.Group:][:kernels.Group], b[i*int(t.unit()):][:t.unit()])
		})
		for i, scale := range scales[:count] {
			if v := kernels.HalfToFloat(scale); !isFinite(v) {
				return &NotFiniteError{f.name, t.Name, at + int64(i)*kernels.Group, v}
			}
		}
		return each(at, codes[:count*kernels.Group], scales[:count])
	})
}

// readBlocks calls each with the bytes of runs of n elements from first on.
func (f *File) readBlocks(t Tensor, first, n int64, each func(at int64, b []byte) error) error {
	weights, bytes, _ := t.Type.Block()
	if first < 0 || n < 0 || first > t.Len()-n || first%weights != 0 || n%weights != 0 {
		return fmt.Errorf("%s: tensor %s: elements %d to %d of %d in blocks of %d", f.name, quote(t.Name), first, first+n, t.Len(), weights)
	}
	raw := make([]byte, min(n/weights, t.run())*bytes)
	for at := first; at < first+n; {
		count := min((first+n-at)/weights, t.run())
		b := raw[:count*bytes]
		if got, err := f.r.ReadAt(b, t.offset+at/weights*bytes); got < len(b) {
			return fmt.Errorf("%s: read tensor %s: %w", f.name, quote(t.Name), err)
		}
		if err := each(at, b); err != nil {
			return err
		}
		at += count * weights
	}
	return nil
}

// run is how many blocks readBlocks reads at a time.
func (t Tensor) run() int64 {
	if t.Type.IsTernary() {
		return blocks
	}
	return blocks * kernels.Group
}

// unit returns the bytes of a block of a known type.
func (t Tensor) unit() int64 {
	_, bytes, _ := t.Type.Block()
	return bytes
}

// decodes reports whether Floats reads the tensor's type.
func (t Tensor) decodes() bool {
	return t.Type.IsTernary() || t.Type == F32 || t.Type == F16 || t.Type == BF16
}

// decode fills x from b and returns the index of the first element that is not finite,
// or -1.
func decode(x []float32, b []byte, t Type) int {
	switch t {
	case BF16:
		kernels.BF16ToF32(x, b)
	case F16:
		kernels.F16ToF32(x, b)
	default:
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	for i, v := range x {
		if !isFinite(v) {
			return i
		}
	}
	return -1
}

// isFinite reports whether x is a number that can be computed with.
func isFinite(x float32) bool { return math.Float32bits(x)&0x7f800000 != 0x7f800000 }

// tensor is Lookup with an error.
func (f *File) tensor(name string) (Tensor, error) {
	t, ok := f.Lookup(name)
	if !ok {
		return Tensor{}, fmt.Errorf("%s: tensor %s: %w", f.name, quote(name), ErrMissing)
	}
	return t, nil
}

// undecodable is the error for a type that is listed but not read.
func (f *File) undecodable(t Tensor) error {
	if t.Type == legacyQ2 {
		return fmt.Errorf("%s: %w: tensor %s: type 42 means Q2_0, 18 bytes for 64 weights, or in files of Prism's fork from before July 2026 34 bytes for 128; the file does not say which", f.name, ErrFormat, quote(t.Name))
	}
	return fmt.Errorf("%s: tensor %s: %v where F32, F16, BF16, PTQ1_0 or PQ2_0 is needed", f.name, quote(t.Name), t.Type)
}

func (f *File) notTernary(t Tensor) error {
	if t.Type == legacyQ2 {
		return f.undecodable(t)
	}
	return fmt.Errorf("%s: tensor %s: %v where PTQ1_0 or PQ2_0 is needed", f.name, quote(t.Name), t.Type)
}
