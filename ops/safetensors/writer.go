package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"bonsai/kernels"
)

// A Spec says what one tensor of a file to write will be.
type Spec struct {
	Name  string
	DType DType
	Shape []int64 // outermost axis first
}

// Size returns the bytes of the tensor. Errors wrap ErrFormat.
func (s Spec) Size() (int64, error) { return byteSize(s.DType, s.Shape) }

// A Writer writes a file's tensors one after the other, none of them held.
type Writer struct {
	w       io.Writer
	tensors []Tensor // with offsets from the start of the data
	at      int64    // bytes of data written
	next    int      // first tensor that is not complete
}

// NewWriter writes the header of a file with these tensors, in this order, and returns
// the writer of their bytes. metadata may be nil.
//
// The same arguments give the same bytes. Errors wrap ErrFormat for a name that comes
// twice, an unknown dtype or a shape that overflows.
func NewWriter(w io.Writer, specs []Spec, metadata map[string]string) (*Writer, error) {
	out := &Writer{w: w}
	seen := map[string]bool{metadataKey: true}
	var at int64
	for _, s := range specs {
		size, err := s.Size()
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(s.Name), err)
		}
		if seen[s.Name] || at > math.MaxInt64-size {
			return nil, fmt.Errorf("tensor %s: %w: name or size cannot be written", quote(s.Name), ErrFormat)
		}
		seen[s.Name] = true
		out.tensors = append(out.tensors, Tensor{s.Name, s.DType, slices.Clone(s.Shape), at, at + size})
		at += size
	}
	text, err := out.header(metadata)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	out.skipEmpty()
	return out, err
}

// header returns the length and the text of the header, filled with blanks to a
// multiple of 8 bytes.
func (w *Writer) header(metadata map[string]string) ([]byte, error) {
	b := []byte("\x00\x00\x00\x00\x00\x00\x00\x00{")
	if len(metadata) > 0 {
		b = fmt.Appendf(b, "%s:{", quoteJSON(metadataKey))
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			b = fmt.Appendf(b, "%s%s:%s", comma(i), quoteJSON(key), quoteJSON(metadata[key]))
		}
		b = append(b, '}')
	}
	for i, t := range w.tensors {
		shape, err := json.Marshal(append([]int64{}, t.Shape...))
		if err != nil {
			return nil, err
		}
		b = fmt.Appendf(b, `%s%s:{"dtype":%s,"shape":%s,"data_offsets":[%d,%d]}`,
			comma(i+len(metadata)), quoteJSON(t.Name), quoteJSON(string(t.DType)), shape, t.begin, t.end)
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	if len(b)-8 > maxHeader {
		return nil, refuse("header of %d bytes, more than the limit of %d", len(b)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b, nil
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// quoteJSON returns s as a JSON string, with only what JSON demands escaped.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes into a buffer
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Write writes the next bytes of a tensor: all of them, or as many calls as it takes.
// Tensors come in the order of NewWriter; another name, or more bytes than the tensor
// has, is an error.
func (w *Writer) Write(name string, p []byte) error {
	if w.next == len(w.tensors) {
		return fmt.Errorf("write tensor %s: all tensors are written", quote(name))
	}
	t := w.tensors[w.next]
	if t.Name != name {
		return fmt.Errorf("write tensor %s: %s comes first, %d of its %d bytes are written", quote(name), quote(t.Name), w.at-t.begin, t.Size())
	}
	if int64(len(p)) > t.end-w.at {
		return fmt.Errorf("write tensor %s: %d bytes more than its %d", quote(name), int64(len(p))-(t.end-w.at), t.Size())
	}
	n, err := w.w.Write(p)
	w.at += int64(n)
	w.skipEmpty()
	if err != nil {
		return fmt.Errorf("write tensor %s: %w", quote(name), err)
	}
	return nil
}

// skipEmpty moves on to the first tensor that lacks bytes.
func (w *Writer) skipEmpty() {
	for w.next < len(w.tensors) && w.at >= w.tensors[w.next].end {
		w.next++
	}
}

// WriteFloats is Write of x in the tensor's dtype, F32, F16 or BF16, rounded to nearest
// even. An element that is not finite, or not finite once rounded, is a *NotFiniteError
// that counts elements from the start of the tensor.
func (w *Writer) WriteFloats(name string, x []float32) error {
	if w.next == len(w.tensors) {
		return w.Write(name, nil)
	}
	t := w.tensors[w.next]
	if !t.DType.IsFloat() {
		return fmt.Errorf("write tensor %s: floats into dtype %s", quote(name), t.DType)
	}
	width := t.DType.bits() / 8
	raw := make([]byte, width*int64(min(len(x), chunk)))
	for len(x) > 0 {
		n := min(len(x), chunk)
		b := raw[:int64(n)*width]
		if i := encode(b, x[:n], t.DType); i >= 0 {
			return &NotFiniteError{"output", name, (w.at-t.begin)/width + int64(i), x[i]}
		}
		if err := w.Write(name, b); err != nil {
			return err
		}
		x = x[n:]
	}
	return nil
}

// encode fills b from x and returns the index of the first element that is not finite
// in b, or -1.
func encode(b []byte, x []float32, d DType) int {
	switch d {
	case BF16:
		kernels.F32ToBF16(b, x)
	case F16:
		kernels.F32ToF16(b, x)
	default:
		for i, v := range x {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
	}
	return decode(make([]float32, len(x)), b, d)
}

// Close checks that every tensor is complete. It does not close the file below.
func (w *Writer) Close() error {
	if w.next < len(w.tensors) {
		t := w.tensors[w.next]
		return fmt.Errorf("tensor %s: %w: %d of %d bytes", quote(t.Name), errIncomplete, w.at-t.begin, t.Size())
	}
	return nil
}

var errIncomplete = errors.New("file closed before it was complete")
