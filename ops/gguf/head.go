package gguf

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

const (
	magic = "GGUF"
	// maxHead is the most bytes before the tensors' data: a vocabulary of 248,320 tokens
	// with its merges takes 12 MB.
	maxHead = 1 << 30
	// maxString is the longest string in bytes; chat templates take tens of kilobytes.
	maxString = 1 << 26
	// maxKey is the longest key in bytes, as the format's description has it.
	maxKey = 1<<16 - 1
	// maxName is the longest tensor name in bytes: ggml keeps 64 with the closing zero.
	maxName = 63
	// maxAlignment is the largest alignment in bytes; files use 32, mapped ones a page.
	maxAlignment = 1 << 20
	// defaultAlignment is that of a file without general.alignment.
	defaultAlignment = 32
	alignmentKey     = "general.alignment"
)

// A cursor reads the head in order and knows how many bytes are left to it.
type cursor struct {
	r      *bufio.Reader
	left   int64
	at     int64
	buffer []byte
}

// bytes reads n bytes, no more than are left. They are good until the next call.
func (c *cursor) bytes(n int64) ([]byte, error) {
	if n > c.left {
		return nil, refuse("truncated: %d bytes at offset %d, %d are left", n, c.at, c.left)
	}
	if n > int64(len(c.buffer)) {
		c.buffer = make([]byte, max(n, 1<<12))
	}
	b := c.buffer[:n]
	if _, err := io.ReadFull(c.r, b); err != nil {
		return nil, fmt.Errorf("read at offset %d: %w", c.at, err)
	}
	c.left, c.at = c.left-n, c.at+n
	return b, nil
}

// string reads a string of at most limit bytes.
func (c *cursor) string(limit uint64) (string, error) {
	length, err := c.bytes(8)
	if err != nil {
		return "", err
	}
	n := binary.LittleEndian.Uint64(length)
	if n > limit {
		return "", refuse("string of %d bytes at offset %d, more than the limit of %d", n, c.at, limit)
	}
	b, err := c.bytes(int64(n))
	return string(b), err
}

// readHead reads everything before the tensors' data and checks it against size.
func (f *File) readHead(size int64) error {
	limit := min(size, maxHead)
	c := &cursor{r: bufio.NewReaderSize(io.NewSectionReader(f.r, 0, limit), 1<<16), left: limit}
	tensors, pairs, err := f.readCounts(c)
	if err != nil {
		return err
	}
	if err := f.readMeta(c, pairs); err != nil {
		return err
	}
	if err := f.readAlignment(); err != nil {
		return err
	}
	if err := f.readTensors(c, tensors); err != nil {
		return err
	}
	f.data = align(c.at, f.alignment)
	return f.place(size)
}

// readCounts reads what comes before the metadata.
func (f *File) readCounts(c *cursor) (tensors, pairs uint64, err error) {
	b, err := c.bytes(4)
	if err != nil {
		return 0, 0, err
	}
	if string(b) != magic {
		return 0, 0, refuse("the first bytes are %q, not %q", b, magic)
	}
	if f.version, err = number[uint32](c); err != nil {
		return 0, 0, err
	}
	if f.version != 2 && f.version != 3 {
		if swapped := bits.ReverseBytes32(f.version); swapped <= 3 && swapped > 0 {
			return 0, 0, refuse("big-endian, version %d; only little-endian files are read", swapped)
		}
		return 0, 0, refuse("version %d; versions 2 and 3 are read", f.version)
	}
	counts, err := numbers[uint64](c, 2)
	if err != nil {
		return 0, 0, err
	}
	// A tensor's entry takes 24 bytes and a name, a pair 12 and a key and a value.
	if counts[0] > uint64(c.left/25) || counts[1] > uint64(c.left/14) {
		return 0, 0, refuse("truncated: %d tensors and %d keys in %d bytes", counts[0], counts[1], c.left)
	}
	return counts[0], counts[1], nil
}

func (f *File) readMeta(c *cursor, n uint64) error {
	for i := range n {
		kv, err := readKV(c)
		if err != nil {
			return fmt.Errorf("key %d (%s): %w", i, quote(kv.Key), err)
		}
		if _, ok := f.keys[kv.Key]; ok {
			return refuse("key %s stands there twice", quote(kv.Key))
		}
		f.keys[kv.Key] = len(f.meta)
		f.meta = append(f.meta, kv)
	}
	return nil
}

func readKV(c *cursor) (kv KV, err error) {
	if kv.Key, err = c.string(maxKey); err != nil {
		return kv, err
	}
	if kv.Key == "" || !utf8.ValidString(kv.Key) {
		return kv, refuse("the key is not a name")
	}
	kind, err := number[uint32](c)
	if err != nil {
		return kv, err
	}
	kv.Value, err = c.value(kind, 0)
	return kv, err
}

// readAlignment takes the alignment from the metadata.
func (f *File) readAlignment() error {
	n, err := Get[uint32](f, alignmentKey)
	if errors.Is(err, ErrMissing) {
		n, err = defaultAlignment, nil
	}
	if err != nil {
		return err
	}
	f.alignment = int64(n)
	return checkAlignment(f.alignment)
}

func checkAlignment(n int64) error {
	if n <= 0 || n > maxAlignment || n&(n-1) != 0 {
		return refuse("%s %d is not a power of two up to %d", alignmentKey, n, maxAlignment)
	}
	return nil
}

func (f *File) readTensors(c *cursor, n uint64) error {
	for i := range n {
		t, err := readTensor(c)
		if err != nil {
			return fmt.Errorf("tensor %d (%s): %w", i, quote(t.Name), err)
		}
		if _, ok := f.index[t.Name]; ok {
			return refuse("tensor %s stands there twice", quote(t.Name))
		}
		f.index[t.Name] = len(f.tensors)
		f.tensors = append(f.tensors, t)
	}
	return nil
}

// readTensor reads one entry; its offset is still that of the list.
func readTensor(c *cursor) (t Tensor, err error) {
	if t.Name, err = c.string(maxName); err != nil {
		return t, err
	}
	if t.Name == "" || !utf8.ValidString(t.Name) {
		return t, refuse("the name is not one")
	}
	if t.Shape, err = readShape(c); err != nil {
		return t, err
	}
	kind, err := number[uint32](c)
	if err != nil {
		return t, err
	}
	offset, err := number[uint64](c)
	if err != nil {
		return t, err
	}
	if offset > math.MaxInt64/2 {
		return t, refuse("offset %d", offset)
	}
	t.Type, t.offset, t.size = Type(kind), int64(offset), -1
	if _, _, known := t.Type.Block(); known {
		t.size, err = t.Type.Size(t.Shape)
	}
	return t, err
}

// readShape reads ggml's ne and returns it outermost axis first.
func readShape(c *cursor) ([]int64, error) {
	rank, err := number[uint32](c)
	if err != nil {
		return nil, err
	}
	if rank > maxRank {
		return nil, refuse("%d axes, more than %d", rank, maxRank)
	}
	ne, err := numbers[uint64](c, int(rank))
	if err != nil {
		return nil, err
	}
	shape := make([]int64, 0, rank)
	for _, n := range slices.Backward(ne) {
		if n > math.MaxInt64 {
			return nil, refuse("axis of %d", n)
		}
		shape = append(shape, int64(n))
	}
	return shape, checkShape(shape)
}

// place checks the tensors' offsets against each other and the file's size, and makes
// them offsets in the file.
func (f *File) place(size int64) error {
	order := make([]*Tensor, len(f.tensors))
	for i := range f.tensors {
		order[i] = &f.tensors[i]
	}
	slices.SortStableFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.offset, b.offset) })
	begin, end := int64(-1), int64(0)
	for i, t := range order {
		switch {
		case t.offset%f.alignment != 0:
			return refuse("tensor %s: offset %d is not a multiple of %d", quote(t.Name), t.offset, f.alignment)
		case t.offset < end || t.offset == begin:
			return refuse("tensor %s at offset %d overlaps %s, which ends at %d", quote(t.Name), t.offset, quote(order[i-1].Name), end)
		case max(t.size, 0) > size-f.data-t.offset:
			return refuse("truncated: tensor %s of %d bytes at offset %d, the file holds %d bytes of tensors", quote(t.Name), t.size, t.offset, size-f.data)
		}
		begin, end = t.offset, t.offset+max(t.size, 0)
		t.offset += f.data
	}
	return nil
}

// align returns the least multiple of n that is not below at.
func align(at, n int64) int64 { return (at + n - 1) / n * n }
