package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	// maxHeader is the largest header in bytes, as in the reference implementation.
	maxHeader = 100_000_000
	// maxRank is the most axes of a tensor; checkpoints have at most five.
	maxRank = 16
	// metadataKey is the one member of a header that is not a tensor.
	metadataKey = "__metadata__"
)

// A header is what stands before the bytes of the tensors.
type header struct {
	tensors  []Tensor // sorted by begin
	metadata map[string]string
}

// readHeader reads the header of the size bytes of r and checks it against size.
func readHeader(r io.ReaderAt, size int64, name string) (*header, error) {
	text, err := headerText(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	start := 8 + int64(len(text))
	if err := h.place(start, size-start); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}

// refuse returns an ErrFormat with its reason.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// headerText returns the header's JSON.
func headerText(r io.ReaderAt, size int64) ([]byte, error) {
	if size < 8 {
		return nil, refuse("truncated: %d bytes, a header's length takes 8", size)
	}
	var length [8]byte
	if n, err := r.ReadAt(length[:], 0); n < len(length) {
		return nil, fmt.Errorf("read the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, refuse("header of %d bytes, more than the limit of %d", n, maxHeader)
	}
	if n > uint64(size-8) {
		return nil, refuse("truncated: header of %d bytes in a file of %d", n, size)
	}
	text := make([]byte, n)
	if got, err := r.ReadAt(text, 8); got < len(text) {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	if !utf8.Valid(text) || len(text) == 0 || text[0] != '{' {
		return nil, refuse("the header is not a JSON object")
	}
	return text, nil
}

// parseHeader reads the header's members one by one, because decoding into a map
// would hide a name that stands there twice.
func parseHeader(text []byte) (*header, error) {
	h := &header{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err := members(dec, func(name string) error {
		if name == metadataKey {
			return h.parseMetadata(dec)
		}
		t, err := parseTensor(dec, name)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(name), err)
		}
		h.tensors = append(h.tensors, t)
		return nil
	})
	if err != nil {
		return nil, formatError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse("text after the header's object")
	}
	return h, nil
}

// formatError makes an ErrFormat of a JSON error.
func formatError(err error) error {
	if errors.Is(err, ErrFormat) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: header: %w", ErrFormat, err)
}

// members calls value for each member of the object that comes next in dec; value reads
// the member's value. A name that comes twice is refused.
func members(dec *json.Decoder, value func(name string) error) error {
	if err := expect(dec, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return refuse("a member without a name")
		}
		if seen[name] {
			return refuse("%s stands there twice", quote(name))
		}
		seen[name] = true
		if err := value(name); err != nil {
			return err
		}
	}
	return expect(dec, '}')
}

// expect reads one delimiter.
func expect(dec *json.Decoder, want json.Delim) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if token != want {
		return refuse("%s where %v was expected", quote(fmt.Sprint(token)), want)
	}
	return nil
}

// parseMetadata reads a map of strings, or null.
func (h *header) parseMetadata(dec *json.Decoder) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	if string(raw) == "null" {
		return nil
	}
	h.metadata = map[string]string{}
	inner := json.NewDecoder(bytes.NewReader(raw))
	return members(inner, func(key string) error {
		token, err := inner.Token()
		if err != nil {
			return err
		}
		s, ok := token.(string)
		if !ok {
			return refuse("%s: %s is not a string", metadataKey, quote(key))
		}
		h.metadata[key] = s
		return nil
	})
}

// parseTensor reads one tensor's entry; its offsets are still those of the header.
func parseTensor(dec *json.Decoder, name string) (Tensor, error) {
	t := Tensor{Name: name, begin: -1}
	err := members(dec, func(key string) error {
		switch key {
		case "dtype":
			return t.parseDType(dec)
		case "shape":
			shape, err := numbers(dec, maxRank)
			t.Shape = shape
			return err
		case "data_offsets":
			return t.parseOffsets(dec)
		default:
			return refuse("unknown member %s", quote(key))
		}
	})
	if err != nil {
		return t, err
	}
	if t.DType == "" || t.Shape == nil || t.begin < 0 {
		return t, refuse("dtype, shape or data_offsets is missing")
	}
	return t, t.checkSize()
}

func (t *Tensor) parseDType(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	s, ok := token.(string)
	if !ok || DType(s).bits() == 0 {
		return refuse("unknown dtype %s", quote(fmt.Sprint(token)))
	}
	t.DType = DType(s)
	return nil
}

func (t *Tensor) parseOffsets(dec *json.Decoder) error {
	offsets, err := numbers(dec, 2)
	if err != nil {
		return err
	}
	if len(offsets) != 2 || offsets[0] > offsets[1] {
		return refuse("data_offsets %v", offsets)
	}
	t.begin, t.end = offsets[0], offsets[1]
	return nil
}

// checkSize compares the shape with the offsets.
func (t *Tensor) checkSize() error {
	size, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	if size != t.end-t.begin {
		return refuse("%s %v takes %d bytes, data_offsets [%d %d] hold %d", t.DType, t.Shape, size, t.begin, t.end, t.end-t.begin)
	}
	return nil
}

// byteSize returns the bytes of a tensor of that type and shape.
func byteSize(d DType, shape []int64) (int64, error) {
	if len(shape) > maxRank {
		return 0, refuse("%d axes, more than the limit of %d", len(shape), maxRank)
	}
	bits, empty := d.bits(), false
	if bits == 0 {
		return 0, refuse("unknown dtype %s", quote(string(d)))
	}
	for _, n := range shape {
		if n < 0 {
			return 0, refuse("shape %v", shape)
		}
		empty = empty || n == 0
		if n > 0 && bits > math.MaxInt64/n {
			return 0, refuse("shape %v overflows", shape)
		}
		bits *= max(n, 1)
	}
	if empty {
		return 0, nil
	}
	if bits%8 != 0 {
		return 0, refuse("%s %v does not fill whole bytes", d, shape)
	}
	return bits / 8, nil
}

// numbers reads an array of at most limit integers from 0 up.
func numbers(dec *json.Decoder, limit int) ([]int64, error) {
	if err := expect(dec, '['); err != nil {
		return nil, err
	}
	list := []int64{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		number, ok := token.(json.Number)
		if !ok {
			return nil, refuse("%s is not a number", quote(fmt.Sprint(token)))
		}
		n, err := strconv.ParseInt(number.String(), 10, 64)
		if err != nil || n < 0 {
			return nil, refuse("%s is not an integer from 0 to 2^63-1", quote(number.String()))
		}
		if len(list) == limit {
			return nil, refuse("an array of more than %d numbers", limit)
		}
		list = append(list, n)
	}
	return list, expect(dec, ']')
}

// place checks that the tensors fill the size bytes after the header, one after the
// other, and makes their offsets those of the file.
func (h *header) place(start, size int64) error {
	slices.SortStableFunc(h.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	var at int64
	for i := range h.tensors {
		t := &h.tensors[i]
		switch {
		case t.begin < at:
			return refuse("tensor %s at offset %d overlaps %s, which ends at %d", quote(t.Name), t.begin, quote(h.tensors[i-1].Name), at)
		case t.begin > at:
			return refuse("hole from offset %d to tensor %s at %d", at, quote(t.Name), t.begin)
		case t.end > size:
			return refuse("truncated: tensor %s ends at offset %d, the file's tensors end at %d", quote(t.Name), t.end, size)
		}
		at = t.end
		t.begin, t.end = t.begin+start, t.end+start
	}
	if at != size {
		return refuse("%d bytes after the last tensor, which ends at offset %d", size-at, at)
	}
	return nil
}
