package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/safetensors"
)

// file returns a safetensors file of a header and n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func open(b []byte) (*safetensors.File, error) {
	return safetensors.Open(bytes.NewReader(b), int64(len(b)), "model.safetensors")
}

func mustOpen(t *testing.T, b []byte) *safetensors.File {
	t.Helper()
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOpenReads(t *testing.T) {
	header := `{"__metadata__":{"format":"pt","a":"b"},
		"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},
		"empty":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},
		"scalar":{"shape":[],"data_offsets":[0,4],"dtype":"F32"}}   `
	b := file(header, 16)
	copy(b[len(b)-16:], []byte{0, 0, 0x80, 0x3f, 0x80, 0x3f, 0x00, 0xc0, 0, 0, 0x40, 0x40, 0x80, 0x40, 0xa0, 0xc0})
	f := mustOpen(t, b)
	if got := f.Metadata(); len(got) != 2 || got["format"] != "pt" || got["a"] != "b" {
		t.Errorf("Metadata() = %v", got)
	}
	var names []string
	for _, x := range f.Tensors() {
		names = append(names, fmt.Sprint(x.Name, x.DType, x.Shape, x.Size(), x.Len()))
	}
	if want := []string{"scalarF32[] 4 1", "emptyF32[0 7] 0 0", "wBF16[2 3] 12 6"}; !slices.Equal(names, want) {
		t.Errorf("Tensors() = %q, want %q", names, want)
	}
	w, err := f.Floats("w")
	if want := []float32{1, -2, 0, 3, 4, -5}; err != nil || !slices.Equal(w, want) {
		t.Errorf("Floats(w) = %v, %v, want %v", w, err, want)
	}
	row := make([]float32, 3)
	if err := f.ReadFloats("w", row, 3); err != nil || !slices.Equal(row, []float32{3, 4, -5}) {
		t.Errorf("ReadFloats(w, row 1) = %v, %v", row, err)
	}
	if s, err := f.Floats("scalar"); err != nil || !slices.Equal(s, []float32{1}) {
		t.Errorf("Floats(scalar) = %v, %v", s, err)
	}
	if e, err := f.Floats("empty"); err != nil || len(e) != 0 {
		t.Errorf("Floats(empty) = %v, %v", e, err)
	}
}

// Every attack on a header is refused with ErrFormat and a message that names the place.
func TestOpenRefuses(t *testing.T) {
	const f32 = `"dtype":"F32"`
	tests := []struct {
		name, header string
		size         int
		want         string
	}{
		{"two tensors that overlap", `{"a":{` + f32 + `,"shape":[2],"data_offsets":[0,8]},"b":{` + f32 + `,"shape":[2],"data_offsets":[4,12]}}`, 12, `tensor "b" at offset 4 overlaps "a", which ends at 8`},
		{"two tensors in one place", `{"a":{` + f32 + `,"shape":[2],"data_offsets":[0,8]},"b":{` + f32 + `,"shape":[2],"data_offsets":[0,8]}}`, 8, `tensor "b" at offset 0 overlaps "a"`},
		{"a hole before the first tensor", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[4,8]}}`, 8, `hole from offset 0 to tensor "a" at 4`},
		{"a hole between tensors", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[0,4]},"b":{` + f32 + `,"shape":[1],"data_offsets":[8,12]}}`, 12, `hole from offset 4 to tensor "b" at 8`},
		{"bytes after the last tensor", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[0,4]}}`, 5, `1 bytes after the last tensor`},
		{"a tensor past the end", `{"a":{` + f32 + `,"shape":[2],"data_offsets":[0,8]}}`, 7, `truncated: tensor "a" ends at offset 8`},
		{"offsets in the wrong order", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[4,0]}}`, 4, `tensor "a"`},
		{"negative offsets", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[-4,0]}}`, 4, `"-4" is not an integer`},
		{"three offsets", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[0,4,4]}}`, 4, `more than 2 numbers`},
		{"one offset", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[4]}}`, 4, `data_offsets [4]`},
		{"a name that comes twice", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[0,4]},"a":{` + f32 + `,"shape":[1],"data_offsets":[4,8]}}`, 8, `"a" stands there twice`},
		{"a name that comes twice once unescaped", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[0,4]},"\u0061":{` + f32 + `,"shape":[1],"data_offsets":[4,8]}}`, 8, `"a" stands there twice`},
		{"a member that comes twice", `{"a":{` + f32 + `,` + f32 + `,"shape":[1],"data_offsets":[0,4]}}`, 4, `tensor "a": invalid`},
		{"metadata that comes twice", `{"__metadata__":{},"__metadata__":{}}`, 0, `"__metadata__" stands there twice`},
		{"a metadata key that comes twice", `{"__metadata__":{"a":"","a":""}}`, 0, `"a" stands there twice`},
		{"metadata that is no string", `{"__metadata__":{"a":1}}`, 0, `"a" is not a string`},
		{"metadata that is no object", `{"__metadata__":[]}`, 0, `where { was expected`},
		{"a shape with too few bytes", `{"a":{` + f32 + `,"shape":[3],"data_offsets":[0,8]}}`, 8, `tensor "a": invalid safetensors file: F32 [3] takes 12 bytes`},
		{"a negative axis", `{"a":{` + f32 + `,"shape":[-1],"data_offsets":[0,4]}}`, 4, `"-1" is not an integer`},
		{"an axis with a fraction", `{"a":{` + f32 + `,"shape":[1.0],"data_offsets":[0,4]}}`, 4, `"1.0" is not an integer`},
		{"an axis over int64", `{"a":{` + f32 + `,"shape":[9223372036854775808],"data_offsets":[0,4]}}`, 4, `is not an integer`},
		{"a shape that overflows to its size", `{"a":{"dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}}`, 0, `overflows`},
		{"a shape that overflows beside a zero", `{"a":{"dtype":"U8","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0]}}`, 0, `overflows`},
		{"17 axes", `{"a":{` + f32 + `,"shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, 4, `more than 16`},
		{"half a byte", `{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}`, 1, `does not fill whole bytes`},
		{"an unknown dtype", `{"a":{"dtype":"Q9","shape":[1],"data_offsets":[0,4]}}`, 4, `unknown dtype "Q9"`},
		{"a dtype that is no string", `{"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}}`, 4, `unknown dtype "7"`},
		{"an unknown member", `{"a":{` + f32 + `,"shape":[1],"data_offsets":[0,4],"x":1}}`, 4, `unknown member "x"`},
		{"no dtype", `{"a":{"shape":[1],"data_offsets":[0,4]}}`, 4, `missing`},
		{"no shape", `{"a":{` + f32 + `,"data_offsets":[0,4]}}`, 4, `missing`},
		{"no offsets", `{"a":{` + f32 + `,"shape":[1]}}`, 4, `missing`},
		{"a tensor that is no object", `{"a":[]}`, 0, `tensor "a"`},
		{"text after the header", `{} {}`, 0, `text after`},
		{"half a header", `{"a":{` + f32, 0, `unexpected EOF`},
		{"half a string", `{"a`, 0, `header`},
		{"a header that is no object", `[]`, 0, `not a JSON object`},
		{"a header that is no UTF-8", "{\"\xff\":1}", 0, `not a JSON object`},
		{"an empty header", ``, 0, `not a JSON object`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := open(file(test.header, test.size))
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, want ErrFormat with %q", err, test.want)
			}
		})
	}
}

func TestOpenRefusesLengths(t *testing.T) {
	for _, test := range []struct {
		name, want string
		file       []byte
	}{
		{"an empty file", "truncated", nil},
		{"seven bytes", "truncated", make([]byte, 7)},
		{"a header longer than the file", "truncated: header of 99 bytes in a file of 10", []byte{99, 0, 0, 0, 0, 0, 0, 0, '{', '}'}},
		{"a header over the limit", "more than the limit", []byte{0, 0, 0, 0, 1, 0, 0, 0, '{', '}'}},
		{"a negative header", "more than the limit", bytes.Repeat([]byte{0xff}, 16)},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := open(test.file)
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, want ErrFormat with %q", err, test.want)
			}
		})
	}
}

// A file cut anywhere is refused, or never read as if it were whole.
func TestOpenTruncated(t *testing.T) {
	whole := written(t)
	for n := range whole {
		if _, err := open(whole[:n]); !errors.Is(err, safetensors.ErrFormat) {
			t.Fatalf("Open of the first %d of %d bytes = %v, want ErrFormat", n, len(whole), err)
		}
	}
}

func TestFloatsRefuses(t *testing.T) {
	b := file(`{"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[8,10]}}`, 10)
	binary.LittleEndian.PutUint16(b[len(b)-6:], 0xfc00)
	f := mustOpen(t, b)
	_, err := f.Floats("a")
	var bad *safetensors.NotFiniteError
	if !errors.As(err, &bad) || bad.Tensor != "a" || bad.Index != 2 || !math.IsInf(float64(bad.Value), -1) {
		t.Errorf("Floats(a) = %v, want element 2 of a to be -Inf", err)
	}
	if _, err := f.Floats("b"); err == nil || !strings.Contains(err.Error(), `tensor "b": dtype F8_E4M3`) {
		t.Errorf("Floats(b) = %v, want its dtype", err)
	}
	if _, err := f.Floats("c"); !errors.Is(err, safetensors.ErrMissing) {
		t.Errorf("Floats(c) = %v, want ErrMissing", err)
	}
	for _, first := range []int64{-1, 3} {
		if err := f.ReadFloats("a", make([]float32, 2), first); err == nil {
			t.Errorf("ReadFloats(a, 2 from %d of 4) = nil", first)
		}
	}
	if _, err := f.Int8s("a"); err == nil {
		t.Error("Int8s of F16 = nil")
	}
}

// specs is one tensor of each dtype that bonsai writes.
var specs = []safetensors.Spec{
	{Name: "f", DType: safetensors.F32, Shape: []int64{2, 2}},
	{Name: "none", DType: safetensors.U8, Shape: []int64{0}},
	{Name: "h", DType: safetensors.F16, Shape: []int64{3}},
	{Name: "b", DType: safetensors.BF16, Shape: []int64{1, 3}},
	{Name: "u\"<é", DType: safetensors.U8, Shape: []int64{3}},
	{Name: "i", DType: safetensors.I8, Shape: []int64{2}},
	{Name: "n", DType: safetensors.I32, Shape: nil},
}

// written returns a file of specs.
func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, specs, map[string]string{"z": "<&>", "a": "\x01é"})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		w.WriteFloats("f", []float32{1, 2}), w.WriteFloats("f", []float32{-3, 0.1}),
		w.WriteFloats("h", []float32{1, 65504, 0x1p-24}), w.WriteFloats("b", []float32{1, 1.00390625, -2}),
		w.Write("u\"<é", []byte{1}), w.Write("u\"<é", []byte{2, 3}),
		w.Write("i", []byte{0xff, 1}), w.Write("n", []byte{0xfe, 0xff, 0xff, 0xff}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriterRoundTrip(t *testing.T) {
	b := written(t)
	if !bytes.Equal(b, written(t)) {
		t.Error("two writings differ")
	}
	f := mustOpen(t, b)
	if n := binary.LittleEndian.Uint64(b); n%8 != 0 {
		t.Errorf("header of %d bytes, want a multiple of 8", n)
	}
	if m := f.Metadata(); m["z"] != "<&>" || m["a"] != "\x01é" {
		t.Errorf("Metadata() = %q", m)
	}
	for _, test := range []struct {
		name string
		want []float32
	}{{"f", []float32{1, 2, -3, 0.1}}, {"h", []float32{1, 65504, 0x1p-24}}, {"b", []float32{1, 1, -2}}} {
		if got, err := f.Floats(test.name); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("Floats(%s) = %v, %v, want %v", test.name, got, err, test.want)
		}
	}
	if got, err := f.Int8s("i"); err != nil || !slices.Equal(got, []int8{-1, 1}) {
		t.Errorf("Int8s = %v, %v", got, err)
	}
	if got, err := f.Int32s("n"); err != nil || !slices.Equal(got, []int32{-2}) {
		t.Errorf("Int32s = %v, %v", got, err)
	}
	if got, err := f.Halves("h"); err != nil || !slices.Equal(got, []uint16{0x3c00, 0x7bff, 1}) {
		t.Errorf("Halves = %x, %v", got, err)
	}
	s, err := f.Section("u\"<é")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Errorf("Section = %v, %v", got, err)
	}
}

func TestWriterRefuses(t *testing.T) {
	for name, bad := range map[string][]safetensors.Spec{
		"a name twice":   {specs[0], specs[0]},
		"metadata":       {{Name: "__metadata__", DType: safetensors.F32}},
		"a dtype":        {{Name: "a", DType: "F33"}},
		"a negative":     {{Name: "a", DType: safetensors.F32, Shape: []int64{-1}}},
		"an overflow":    {{Name: "a", DType: safetensors.F32, Shape: []int64{1 << 62}}},
		"a sum too big":  {{Name: "a", DType: safetensors.U8, Shape: []int64{1 << 58}}, {Name: "b", DType: safetensors.U8, Shape: []int64{math.MaxInt64 / 8}}, {Name: "c", DType: safetensors.U8, Shape: []int64{1 << 62}}},
		"seventeen axes": {{Name: "a", DType: safetensors.F32, Shape: make([]int64, 17)}},
	} {
		if _, err := safetensors.NewWriter(io.Discard, bad, nil); !errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("NewWriter with %s = %v, want ErrFormat", name, err)
		}
	}
	w, err := safetensors.NewWriter(io.Discard, specs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var bad *safetensors.NotFiniteError
	if err := errors.Join(w.WriteFloats("f", []float32{1})); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFloats("f", []float32{1, float32(math.NaN())}); !errors.As(err, &bad) || bad.Index != 2 {
		t.Errorf("WriteFloats of NaN = %v, want element 2", err)
	}
	for name, err := range map[string]error{
		"another tensor": w.Write("h", []byte{1}),
		"too much":       w.Write("f", make([]byte, 17)),
		"an early end":   w.Close(),
	} {
		if err == nil || !strings.Contains(err.Error(), `"f"`) {
			t.Errorf("%s: error = %v, want one that names f", name, err)
		}
	}
	if err := w.WriteFloats("f", []float32{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFloats("h", []float32{65520}); !errors.As(err, &bad) || bad.Tensor != "h" {
		t.Errorf("WriteFloats of 65520 into F16 = %v, want a NotFiniteError", err)
	}
}

// A write that fails is reported with the tensor.
func TestWriterFull(t *testing.T) {
	if _, err := safetensors.NewWriter(&full{}, specs, nil); !errors.Is(err, errFull) {
		t.Errorf("NewWriter to a full disk = %v", err)
	}
	big := []safetensors.Spec{{Name: "big", DType: safetensors.U8, Shape: []int64{4096}}}
	w, err := safetensors.NewWriter(&full{left: 1 << 10}, big, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write("big", make([]byte, 4096)); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "big") {
		t.Errorf("Write to a full disk = %v", err)
	}
}

var errFull = errors.New("no space left")

// A full is a disk with little space.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return f.left, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	whole := written(t)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Floats("f"); err != nil || got[2] != -3 {
		t.Errorf("Floats(f) = %v, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := safetensors.OpenFile(path); !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), path) {
		t.Errorf("OpenFile of a cut file = %v, want ErrFormat with its path", err)
	}
}

// A file cut short while it is mapped gives an error, not a crash.
func TestMappedFileShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, []safetensors.Spec{{Name: "a", DType: safetensors.U8, Shape: []int64{1 << 20}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write("a", make([]byte, 1<<20)), w.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Bytes("a"); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("Bytes of a file that shrank = %v", err)
	}
}

func TestOpenInput(t *testing.T) {
	whole := written(t)
	path := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(path, append(slices.Clone(whole), "tail"...), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, r := range map[string]io.ReaderAt{"part of a file": file, "memory": bytes.NewReader(whole)} {
		f, err := safetensors.OpenInput(io.NewSectionReader(r, 0, int64(len(whole))), "in")
		if err != nil {
			t.Fatalf("OpenInput of %s = %v", name, err)
		}
		if got, err := f.Floats("f"); err != nil || got[0] != 1 {
			t.Errorf("%s: Floats(f) = %v, %v", name, got, err)
		}
	}
	if err := os.Truncate(path, int64(len(whole))); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenInput(io.NewSectionReader(file, 0, int64(len(whole))), "weights")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Floats("f"); err != nil || got[0] != 1 || f.Name() != "weights" {
		t.Errorf("whole file: Floats(f) = %v, %v, Name() = %q", got, err, f.Name())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzOpen checks that no bytes make Open or the readers panic, and that a file that
// Open accepts is rewritten to one that reads the same.
func FuzzOpen(f *testing.F) {
	f.Add(written(f))
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Add(file(`{"__metadata__":{"a":"b"},"a":{"dtype":"I64","shape":[1,0],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := open(b)
		if err != nil {
			if !errors.Is(err, safetensors.ErrFormat) {
				t.Errorf("Open = %v, want ErrFormat", err)
			}
			return
		}
		var specs []safetensors.Spec
		for _, x := range in.Tensors() {
			specs = append(specs, safetensors.Spec{Name: x.Name, DType: x.DType, Shape: x.Shape})
			_, _ = in.Floats(x.Name)
		}
		var again bytes.Buffer
		w, err := safetensors.NewWriter(&again, specs, in.Metadata())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range in.Tensors() {
			p, err := in.Bytes(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			if len(p) > 0 {
				if err := w.Write(x.Name, p); err != nil {
					t.Fatal(err)
				}
			}
		}
		out := mustOpen(t, again.Bytes())
		if err := w.Close(); err != nil || fmt.Sprint(out.Metadata()) != fmt.Sprint(in.Metadata()) || len(out.Tensors()) != len(in.Tensors()) {
			t.Errorf("rewritten file differs: %v", err)
		}
	})
}

func BenchmarkFloats(b *testing.B) {
	for _, d := range []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32} {
		const n = 1 << 22
		var file bytes.Buffer
		w, err := safetensors.NewWriter(&file, []safetensors.Spec{{Name: "w", DType: d, Shape: []int64{n}}}, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := w.WriteFloats("w", make([]float32, n)); err != nil {
			b.Fatal(err)
		}
		f, err := open(file.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		b.Run("dtype="+string(d), func(b *testing.B) {
			t, _ := f.Lookup("w")
			b.SetBytes(t.Size())
			for b.Loop() {
				if _, err := f.Floats("w"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
