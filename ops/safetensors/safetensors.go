// Package safetensors reads and writes files of named tensors in the safetensors
// format: an 8-byte length, a JSON header, and the tensors' bytes.
//
// It knows the format, folders of shards and their index; it does not know models,
// nor which tensors belong together. A header is checked as a whole before a tensor
// is handed out: a file that Open accepts has no tensor that overlaps another, leaves
// a hole or reaches past the end. Tensors are read when asked for, one at a time.
//
// Start at Open for one file, OpenDir for a checkpoint, NewWriter to write.
package safetensors

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// ErrFormat is wrapped by the error of every file or index that breaks the format.
var ErrFormat = errors.New("invalid safetensors file")

// ErrMissing is wrapped by the error for a tensor that a file or folder does not hold.
var ErrMissing = errors.New("no such tensor")

// A DType names the type of a tensor's elements as headers spell it.
type DType string

// The types that bonsai writes; Size knows the others.
const (
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	U8   DType = "U8"
	I8   DType = "I8"
	I32  DType = "I32"
)

// bits returns the bits of one element, or 0 for a type that the format does not know.
// Types under 8 bits are packed without padding inside a tensor.
func (d DType) bits() int64 {
	switch d {
	case "F4":
		return 4
	case "F6_E2M3", "F6_E3M2":
		return 6
	case "BOOL", U8, I8, "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ":
		return 8
	case "U16", "I16", F16, BF16:
		return 16
	case "U32", I32, F32:
		return 32
	case "U64", "I64", "F64", "C64":
		return 64
	default:
		return 0
	}
}

// IsFloat reports whether Floats can read the type: F32, F16 and BF16.
func (d DType) IsFloat() bool { return d == F32 || d == F16 || d == BF16 }

// A Tensor is the header's entry of one tensor.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // outermost axis first; empty for a scalar

	begin, end int64 // bytes from the start of the file
}

// Len returns the number of elements.
func (t Tensor) Len() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Size returns the number of bytes.
func (t Tensor) Size() int64 { return t.end - t.begin }

// A File is an open safetensors file. Its methods may be called from many goroutines
// at once, Close excepted.
type File struct {
	name     string
	r        io.ReaderAt
	close    func() error
	tensors  []Tensor // in the order of their bytes
	index    map[string]int
	metadata map[string]string
}

// Open reads and checks the header of the size bytes of r. name is the file's name in
// errors. It holds r, and never more of it than the header.
//
// Errors wrap ErrFormat unless reading fails.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	h, err := readHeader(r, size, name)
	if err != nil {
		return nil, err
	}
	f := &File{
		name: name, r: r, close: func() error { return nil },
		tensors: h.tensors, index: make(map[string]int, len(h.tensors)), metadata: h.metadata,
	}
	for i, t := range f.tensors {
		f.index[t.Name] = i
	}
	return f, nil
}

// Close gives the file back. No tensor can be read afterwards.
func (f *File) Close() error { return f.close() }

// Name returns the name that Open was given.
func (f *File) Name() string { return f.name }

// Tensors returns all tensors in the order of their bytes in the file.
func (f *File) Tensors() []Tensor { return slices.Clone(f.tensors) }

// Lookup returns the tensor of that name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Metadata returns the header's __metadata__, empty if it has none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Section returns a reader of a tensor's bytes, for copying without holding them.
// Errors wrap ErrMissing.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, err := f.tensor(name)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f.r, t.begin, t.Size()), nil
}

// Bytes returns a tensor's bytes as they are in the file: little-endian, row-major.
// Errors wrap ErrMissing, or tell that reading failed.
func (f *File) Bytes(name string) ([]byte, error) {
	t, err := f.tensor(name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, t.Size())
	if err := f.read(t, b, 0); err != nil {
		return nil, err
	}
	return b, nil
}

// tensor is Lookup with an error.
func (f *File) tensor(name string) (Tensor, error) {
	t, ok := f.Lookup(name)
	if !ok {
		return Tensor{}, fmt.Errorf("%s: %w: %s", f.name, ErrMissing, quote(name))
	}
	return t, nil
}

// read fills b with t's bytes from offset on.
func (f *File) read(t Tensor, b []byte, offset int64) error {
	n, err := f.r.ReadAt(b, t.begin+offset)
	if n == len(b) {
		return nil
	}
	return fmt.Errorf("%s: read tensor %s: %w", f.name, quote(t.Name), err)
}

// quote returns a name from a file for use in a message, cut to a readable length.
func quote(name string) string {
	const most = 200
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
