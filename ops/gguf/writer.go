package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"

	"bonsai/kernels"
)

// A Spec says what one tensor of a file to write will be.
type Spec struct {
	Name  string
	Type  Type
	Shape []int64 // outermost axis first
}

// Size returns the bytes of the tensor without padding. Errors wrap ErrFormat.
func (s Spec) Size() (int64, error) { return s.Type.Size(s.Shape) }

// A Writer writes a file's tensors one after the other, none of them held. Each is
// followed by zeros up to the alignment.
type Writer struct {
	w         io.Writer
	alignment int64
	tensors   []Tensor // with offsets from the start of the data
	at        int64    // bytes of data written
	next      int      // first tensor that is not complete
}

// NewWriter writes the head of a file of version 3 with these keys and tensors, in this
// order, and returns the writer of the tensors' bytes. A key general.alignment, a uint32,
// sets the alignment.
//
// Errors wrap ErrFormat for a key or name that comes twice or is too long, a value that
// GGUF has no type for, a type or shape whose size is not known.
func NewWriter(w io.Writer, meta []KV, specs []Spec) (*Writer, error) {
	out := &Writer{w: w, alignment: defaultAlignment}
	b := binary.LittleEndian.AppendUint32([]byte(magic), 3)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(specs)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(meta)))
	b, err := out.appendMeta(b, meta)
	if err != nil {
		return nil, err
	}
	if b, err = out.appendTensors(b, specs); err != nil {
		return nil, err
	}
	b = append(b, make([]byte, align(int64(len(b)), out.alignment)-int64(len(b)))...)
	_, err = w.Write(b)
	return out, err
}

// appendMeta appends the metadata and takes the alignment from it.
func (w *Writer) appendMeta(b []byte, meta []KV) ([]byte, error) {
	seen := map[string]bool{}
	for _, kv := range meta {
		if seen[kv.Key] {
			return nil, refuse("key %s comes twice", quote(kv.Key))
		}
		seen[kv.Key] = true
		var err error
		if b, err = appendKV(b, kv); err != nil {
			return nil, err
		}
		if kv.Key == alignmentKey {
			n, _ := kv.Value.(uint32)
			w.alignment = int64(n)
		}
	}
	return b, checkAlignment(w.alignment)
}

// appendTensors appends the tensor list and gives each its place.
func (w *Writer) appendTensors(b []byte, specs []Spec) ([]byte, error) {
	seen := map[string]bool{}
	var at int64
	for _, s := range specs {
		size, err := s.Size()
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(s.Name), err)
		}
		if seen[s.Name] || s.Name == "" || len(s.Name) > maxName || at > math.MaxInt64/2-size {
			return nil, refuse("tensor %s: a name that comes twice or has no or over %d bytes, or a size too large", quote(s.Name), maxName)
		}
		seen[s.Name] = true
		b = appendString(b, s.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Shape)))
		for _, n := range slices.Backward(s.Shape) {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(s.Type))
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
		w.tensors = append(w.tensors, Tensor{s.Name, s.Type, slices.Clone(s.Shape), at, size})
		at = align(at+size, w.alignment)
	}
	return b, nil
}

// Write writes the next bytes of a tensor: all of them, or as many calls as it takes.
// Tensors come in the order of NewWriter; another name, or more bytes than the tensor
// has, is an error.
func (w *Writer) Write(name string, p []byte) error {
	t, err := w.current(name)
	if err != nil {
		return err
	}
	if int64(len(p)) > t.offset+t.size-w.at {
		return fmt.Errorf("write tensor %s: %d bytes more than its %d", quote(name), int64(len(p))-(t.offset+t.size-w.at), t.size)
	}
	n, err := w.w.Write(p)
	w.at += int64(n)
	if err == nil && w.at == t.offset+t.size {
		err = w.pad()
	}
	if err != nil {
		return fmt.Errorf("write tensor %s: %w", quote(name), err)
	}
	return nil
}

// current returns the tensor that is to be written, which must have that name.
func (w *Writer) current(name string) (Tensor, error) {
	if w.next == len(w.tensors) {
		return Tensor{}, fmt.Errorf("write tensor %s: all tensors are written", quote(name))
	}
	t := w.tensors[w.next]
	if t.Name != name {
		return Tensor{}, fmt.Errorf("write tensor %s: %s comes first, %d of its %d bytes are written", quote(name), quote(t.Name), w.at-t.offset, t.size)
	}
	return t, nil
}

// pad ends the current tensor.
func (w *Writer) pad() error {
	n, err := w.w.Write(make([]byte, align(w.at, w.alignment)-w.at))
	w.at += int64(n)
	w.next++
	return err
}

// WriteFloats is Write of x in the tensor's type, F32, F16 or BF16, rounded to nearest
// even. An element that is not finite, or not finite once rounded, is a *NotFiniteError
// that counts elements from the start of the tensor.
func (w *Writer) WriteFloats(name string, x []float32) error {
	t, err := w.current(name)
	if err != nil {
		return err
	}
	if t.Type.IsTernary() || !t.decodes() {
		return fmt.Errorf("write tensor %s: floats into %v", quote(name), t.Type)
	}
	const run = blocks * kernels.Group
	raw := make([]byte, t.unit()*int64(min(len(x), run)))
	back := make([]float32, min(len(x), run))
	for len(x) > 0 {
		n := min(len(x), run)
		b := raw[:int64(n)*t.unit()]
		encode(b, x[:n], t.Type)
		if i := decode(back[:n], b, t.Type); i >= 0 {
			return &NotFiniteError{"output", name, (w.at-t.offset)/t.unit() + int64(i), x[i]}
		}
		if err := w.Write(name, b); err != nil {
			return err
		}
		x = x[n:]
	}
	return nil
}

// encode fills b from x.
func encode(b []byte, x []float32, t Type) {
	switch t {
	case BF16:
		kernels.F32ToBF16(b, x)
	case F16:
		kernels.F32ToF16(b, x)
	default:
		for i, v := range x {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
	}
}

// WriteCodes is Write of ternary codes in the tensor's type, PTQ1_0 or PQ2_0.
//
//	codes   whole blocks of 128, each −1, 0 or 1
//	scales  len(codes)/128 binary16 bits, finite
//
// Errors: a *CodeError or *NotFiniteError that counts elements from the start of the tensor.
func (w *Writer) WriteCodes(name string, codes []int8, scales []uint16) error {
	t, err := w.current(name)
	if err != nil {
		return err
	}
	if !t.Type.IsTernary() || len(codes) != len(scales)*kernels.Group {
		return fmt.Errorf("write tensor %s: %d codes and %d scales into %v", quote(name), len(codes), len(scales), t.Type)
	}
	raw := make([]byte, 0, t.unit()*int64(min(len(scales), blocks)))
	for len(scales) > 0 {
		n := min(len(scales), blocks)
		at := (w.at - t.offset) / t.unit() * kernels.Group
		b, err := t.pack(raw, codes[:n*kernels.Group], scales[:n], at)
		if err != nil {
			return err
		}
		if err := w.Write(name, b); err != nil {
			return err
		}
		codes, scales = codes[n*kernels.Group:], scales[n:]
	}
	return nil
}

// pack appends blocks to b; at is the index of the first code.
func (t Tensor) pack(b []byte, codes []int8, scales []uint16, at int64) ([]byte, error) {
	for i, c := range codes {
		if c < -1 || c > 1 {
			return nil, &CodeError{"output", t.Name, at + int64(i)}
		}
	}
	for i, scale := range scales {
		if v := kernels.HalfToFloat(scale); !isFinite(v) {
			return nil, &NotFiniteError{"output", t.Name, at + int64(i)*kernels.Group, v}
		}
	}
	b = append(b, make([]byte, int(t.unit())*len(scales))...)
	pack := kernels.PackPQ2
	if t.Type == PTQ1 {
		pack = kernels.PackPTQ1
	}
	eachBlock(len(scales), func(i int) {
		pack(b[i*int(t.unit()):][:t.unit()], codes[i*kernels.Group:][:kernels.Group], scales[i])
	})
	return b, nil
}

// eachBlock calls do for 0 to n-1 from as many goroutines as there are processors.
func eachBlock(n int, do func(i int)) {
	const least = 256 // fewer are done before a goroutine has started
	workers := max(min(runtime.GOMAXPROCS(0), n/least), 1)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w * n / workers; i < (w+1)*n/workers; i++ {
				do(i)
			}
		})
	}
	group.Wait()
}

// Size returns the bytes of data that the finished file holds after its head, padding
// included.
func (w *Writer) Size() int64 {
	if len(w.tensors) == 0 {
		return 0
	}
	t := w.tensors[len(w.tensors)-1]
	return align(t.offset+t.size, w.alignment)
}

// Close checks that every tensor is complete. It does not close the file below.
func (w *Writer) Close() error {
	if w.next < len(w.tensors) {
		t := w.tensors[w.next]
		return fmt.Errorf("tensor %s: %w: %d of %d bytes", quote(t.Name), errIncomplete, w.at-t.offset, t.size)
	}
	return nil
}

var errIncomplete = errors.New("file closed before it was complete")
