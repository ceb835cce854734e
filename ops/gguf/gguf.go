// Package gguf reads and writes GGUF files: typed metadata, a list of tensors, and
// the tensors' bytes, aligned.
//
// It knows the container and the block types F32, F16, BF16, PTQ1_0 and PQ2_0; it does
// not know what a key or a tensor means to a model. A file that Open accepts has no
// key or tensor twice and no tensor that overlaps another or reaches past the end.
// Tensors are read when asked for, rows at a time where the caller wants that.
//
// Start at Open to read and NewWriter to write.
package gguf

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrFormat is wrapped by the error of every file that breaks the format.
var ErrFormat = errors.New("invalid GGUF file")

// ErrMissing is wrapped by the error for a key or tensor that a file does not hold.
var ErrMissing = errors.New("not in the file")

// A KV is one metadata pair. Value is a uint8, int8, uint16, int16, uint32, int32,
// uint64, int64, float32, float64, bool or string; or, for an array, a slice of one of
// these; or a []any of such slices for an array of arrays.
type KV struct {
	Key   string
	Value any
}

// A Tensor is one entry of the tensor list.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int64 // outermost axis first, [rows, cols]: the reverse of ggml's ne

	offset int64 // from the start of the file
	size   int64 // bytes, or -1 where the type's layout is not known
}

// Size returns the bytes of the tensor without padding, or -1 if its type's layout is
// not known.
func (t Tensor) Size() int64 { return t.size }

// Len returns the number of elements.
func (t Tensor) Len() int64 { return elements(t.Shape) }

// Width returns the innermost axis: the input width of a matrix.
func (t Tensor) Width() int64 {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// A File is an open GGUF file. Its methods may be called from many goroutines at once.
type File struct {
	name      string
	r         io.ReaderAt
	version   uint32
	alignment int64
	data      int64 // offset of the first tensor's bytes
	meta      []KV
	tensors   []Tensor // in the order of the list
	keys      map[string]int
	index     map[string]int
}

// Open reads and checks the head of the size bytes of r: versions 2 and 3,
// little-endian. name is the file's name in errors.
//
// Errors wrap ErrFormat unless reading fails. It never holds more than a small multiple
// of what the file does.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{name: name, r: r, keys: map[string]int{}, index: map[string]int{}}
	if err := f.readHead(size); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Name returns the name that Open was given.
func (f *File) Name() string { return f.name }

// Version returns the version of the container, 2 or 3.
func (f *File) Version() uint32 { return f.version }

// Alignment returns the bytes to whose multiples tensors are aligned, 32 by default.
func (f *File) Alignment() int64 { return f.alignment }

// DataOffset returns where the tensors' bytes begin.
func (f *File) DataOffset() int64 { return f.data }

// Meta returns all metadata in the order of the file. The values are shared: do not
// change them.
func (f *File) Meta() []KV { return slices.Clone(f.meta) }

// Tensors returns all tensors in the order of the file's list.
func (f *File) Tensors() []Tensor { return slices.Clone(f.tensors) }

// Lookup returns the tensor of that name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Value returns the value of a key.
func (f *File) Value(key string) (any, bool) {
	i, ok := f.keys[key]
	if !ok {
		return nil, false
	}
	return f.meta[i].Value, true
}

// Get returns the value of a key that must have the type T, one of those of KV.
// Errors wrap ErrMissing, or ErrFormat for another type.
func Get[T any](f *File, key string) (T, error) {
	var none T
	v, ok := f.Value(key)
	if !ok {
		return none, fmt.Errorf("%s: key %s: %w", f.name, quote(key), ErrMissing)
	}
	t, ok := v.(T)
	if !ok {
		return none, fmt.Errorf("%s: %w: key %s is %s where %s is needed", f.name, ErrFormat, quote(key), typeName(v), typeName(none))
	}
	return t, nil
}

// Int returns the value of a key that must be an integer of any width within int64.
// Errors wrap ErrMissing, or ErrFormat for another type.
func (f *File) Int(key string) (int64, error) {
	v, ok := f.Value(key)
	if !ok {
		return 0, fmt.Errorf("%s: key %s: %w", f.name, quote(key), ErrMissing)
	}
	n, ok := asInt(v)
	if !ok {
		return 0, fmt.Errorf("%s: %w: key %s is %s where an integer is needed", f.name, ErrFormat, quote(key), typeName(v))
	}
	return n, nil
}

// asInt widens any integer that int64 holds.
func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case uint8:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint64:
		return int64(v), int64(v) >= 0
	case int64:
		return v, true
	default:
		return 0, false
	}
}

// Ints returns the value of a key that must be an array of integers of any width within
// int64. Errors wrap ErrMissing, or ErrFormat for another type.
func (f *File) Ints(key string) ([]int64, error) {
	v, ok := f.Value(key)
	if !ok {
		return nil, fmt.Errorf("%s: key %s: %w", f.name, quote(key), ErrMissing)
	}
	list, ok := asInts(v)
	if !ok {
		return nil, fmt.Errorf("%s: %w: key %s is %s where an array of integers is needed", f.name, ErrFormat, quote(key), typeName(v))
	}
	return list, nil
}

// quote returns a name from a file for use in a message, cut to a readable length.
func quote(name string) string {
	const most = 200
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
