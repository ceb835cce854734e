package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/gguf"
)

func open(b []byte) (*gguf.File, error) {
	return gguf.Open(bytes.NewReader(b), int64(len(b)), "model.gguf")
}

func mustOpen(t testing.TB, b []byte) *gguf.File {
	t.Helper()
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// golden returns a file that another program wrote.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../../testdata/golden/gguf/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenHead(t *testing.T) {
	f := mustOpen(t, golden(t, "llama-ptq.gguf"))
	if f.Version() != 3 || f.Alignment() != 32 || f.DataOffset() != 12576 || len(f.Tensors()) != 39 || len(f.Meta()) != 33 {
		t.Errorf("version %d, alignment %d, data at %d, %d tensors, %d keys", f.Version(), f.Alignment(), f.DataOffset(), len(f.Tensors()), len(f.Meta()))
	}
	last, _ := f.Lookup("blk.3.ffn_down.weight")
	if last.Type != gguf.PTQ1 || !slices.Equal(last.Shape, []int64{256, 512}) || last.Size() != 28672 || last.Width() != 512 {
		t.Errorf("blk.3.ffn_down.weight = %v, %d bytes", last, last.Size())
	}
	if got, err := gguf.Get[string](f, "general.architecture"); err != nil || got != "llama" {
		t.Errorf("general.architecture = %q, %v", got, err)
	}
	if got, err := f.Int("general.file_type"); err != nil || got != 143 {
		t.Errorf("general.file_type = %d, %v", got, err)
	}
	if got, err := f.Ints("prism.hadamard.sign_widths"); err != nil || !slices.Equal(got, []int64{256, 512}) {
		t.Errorf("sign_widths = %v, %v", got, err)
	}
	if got, err := gguf.Get[[]string](f, "tokenizer.ggml.merges"); err != nil || got[1] != "th e" {
		t.Errorf("merges = %v, %v", got, err)
	}
	if got, err := gguf.Get[bool](f, "tokenizer.ggml.add_bos_token"); err != nil || got {
		t.Errorf("add_bos_token = %v, %v", got, err)
	}
}

func TestGetRefuses(t *testing.T) {
	f := mustOpen(t, golden(t, "llama-ptq.gguf"))
	_, missing := gguf.Get[string](f, "nothing")
	_, wrong := gguf.Get[string](f, "llama.block_count")
	_, notInt := f.Int("general.name")
	_, notInts := f.Ints("general.name")
	_, noInt := f.Int("nothing")
	_, noInts := f.Ints("nothing")
	for name, err := range map[string]error{"Get": missing, "Int": noInt, "Ints": noInts} {
		if !errors.Is(err, gguf.ErrMissing) || !strings.Contains(err.Error(), `"nothing"`) {
			t.Errorf("%s of a missing key = %v", name, err)
		}
	}
	for want, err := range map[string]error{
		`"llama.block_count" is uint32 where string`: wrong, `"general.name" is string where an integer`: notInt, `where an array of integers`: notInts,
	} {
		if !errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("another type = %v, want %q", err, want)
		}
	}
}

// decodePTQ1 is PTQ1_0 as formats.md 1.3 defines it, by its closed form, and shares
// nothing with kernels.
func decodePTQ1(b []byte) (codes [128]int8, scale uint16) {
	digit := func(b byte, n int) int8 {
		power := 1
		for range n + 1 {
			power *= 3
		}
		return int8(int(b)*power/256%3) - 1
	}
	for i := range 26 {
		for n := range 5 {
			switch {
			case i < 16:
				codes[16*n+i] = digit(b[i], n)
			case i < 24:
				codes[80+8*n+i-16] = digit(b[i], n)
			case n < 4:
				codes[120+2*n+i-24] = digit(b[i], n)
			}
		}
	}
	return codes, uint16(b[26]) | uint16(b[27])<<8
}

// decodePQ2 is PQ2_0 as formats.md 1.2 defines it.
func decodePQ2(b []byte) (codes [128]int8, scale uint16) {
	for j := range codes {
		codes[j] = int8(b[2+j/4]>>(2*(j%4))&3) - 1
	}
	return codes, uint16(b[0]) | uint16(b[1])<<8
}

// half is the value of a normal or zero binary16 number.
func half(h uint16) float64 {
	if h&0x7fff == 0 {
		return 0
	}
	v := math.Ldexp(1024+float64(h&0x3ff), int(h>>10&0x1f)-25)
	return math.Copysign(v, 1-2*float64(h>>15))
}

func TestGoldenTensors(t *testing.T) {
	for _, test := range []struct {
		file   string
		bytes  int
		decode func([]byte) ([128]int8, uint16)
	}{{"llama-ptq.gguf", 28, decodePTQ1}, {"qwen3-pq2.gguf", 34, decodePQ2}} {
		f := mustOpen(t, golden(t, test.file))
		ternary := 0
		for _, x := range f.Tensors() {
			if !x.Type.IsTernary() {
				continue
			}
			ternary++
			raw, err := f.Bytes(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			codes, scales, err := f.Codes(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			values, err := f.Floats(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range scales {
				want, scale := test.decode(raw[i*test.bytes:])
				if !slices.Equal(codes[i*128:(i+1)*128], want[:]) || scales[i] != scale {
					t.Fatalf("%s %s: block %d differs", test.file, x.Name, i)
				}
				for j, c := range want {
					if got := values[i*128+j]; float64(got) != float64(c)*half(scale) {
						t.Fatalf("%s %s: block %d: value %d = %v, want %v", test.file, x.Name, i, j, got, float64(c)*half(scale))
					}
				}
			}
		}
		if ternary != 30 {
			t.Errorf("%s: %d ternary tensors, want 30", test.file, ternary)
		}
	}
}

func TestReadRows(t *testing.T) {
	f := mustOpen(t, golden(t, "llama-ptq.gguf"))
	for _, name := range []string{"output.weight", "output_norm.weight"} {
		whole, err := f.Floats(name)
		if err != nil {
			t.Fatal(err)
		}
		part := make([]float32, 128)
		if err := f.ReadFloats(name, part, 128); err != nil || !slices.Equal(part, whole[128:256]) {
			t.Errorf("ReadFloats(%s, 128 from 128) differs: %v", name, err)
		}
	}
	codes, scales, err := f.Codes("output.weight")
	if err != nil {
		t.Fatal(err)
	}
	c, s := make([]int8, 512), make([]uint16, 4)
	if err := f.ReadCodes("output.weight", c, s, 256); err != nil || !slices.Equal(c, codes[256:768]) || !slices.Equal(s, scales[2:6]) {
		t.Errorf("ReadCodes differs: %v", err)
	}
	for _, test := range []struct{ n, first int }{{64, 0}, {128, 64}, {128, -128}, {128, 320 * 256}} {
		if err := f.ReadFloats("output.weight", make([]float32, test.n), int64(test.first)); err == nil {
			t.Errorf("ReadFloats(%d from %d) = nil", test.n, test.first)
		}
	}
}

// rewrite copies a file through the reader and the writer.
func rewrite(t testing.TB, f *gguf.File, codes bool) []byte {
	t.Helper()
	var specs []gguf.Spec
	for _, x := range f.Tensors() {
		specs = append(specs, gguf.Spec{Name: x.Name, Type: x.Type, Shape: x.Shape})
	}
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, f.Meta(), specs)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.Tensors() {
		if err := copyTensor(w, f, x, codes); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := int64(b.Len()) - mustOpen(t, b.Bytes()).DataOffset(); got != w.Size() {
		t.Errorf("Size() = %d, %d bytes of data written", w.Size(), got)
	}
	return b.Bytes()
}

func copyTensor(w *gguf.Writer, f *gguf.File, x gguf.Tensor, codes bool) error {
	if codes && x.Type.IsTernary() {
		c, s, err := f.Codes(x.Name)
		return errors.Join(err, w.WriteCodes(x.Name, c, s))
	}
	if codes {
		v, err := f.Floats(x.Name)
		return errors.Join(err, w.WriteFloats(x.Name, v))
	}
	b, err := f.Bytes(x.Name)
	return errors.Join(err, w.Write(x.Name, b))
}

// A file of another program comes back byte for byte, whether its tensors are copied or
// decoded and encoded again.
func TestGoldenRewrite(t *testing.T) {
	for _, name := range []string{"llama-ptq.gguf", "qwen3-pq2.gguf"} {
		want := golden(t, name)
		for _, codes := range []bool{false, true} {
			if got := rewrite(t, mustOpen(t, want), codes); !bytes.Equal(got, want) {
				t.Errorf("%s rewritten (through codes: %v): %d bytes differ from the %d of the file", name, codes, len(got), len(want))
			}
		}
	}
}

// everything holds a value of every type.
var everything = []gguf.KV{
	{Key: "u8", Value: uint8(255)},
	{Key: "i8", Value: int8(-1)},
	{Key: "u16", Value: uint16(65535)},
	{Key: "i16", Value: int16(-2)},
	{Key: "u32", Value: uint32(1 << 31)},
	{Key: "i32", Value: int32(-3)},
	{Key: "u64", Value: uint64(1 << 63)},
	{Key: "i64", Value: int64(-4)},
	{Key: "f32", Value: float32(0.1)},
	{Key: "f64", Value: 0.1},
	{Key: "bool", Value: true},
	{Key: "string", Value: "é\x00"},
	{Key: "u8s", Value: []uint8{1, 2}},
	{Key: "i8s", Value: []int8{-1}},
	{Key: "u16s", Value: []uint16{3}},
	{Key: "i16s", Value: []int16{-3}},
	{Key: "u32s", Value: []uint32{4}},
	{Key: "i32s", Value: []int32{-4, 4}},
	{Key: "u64s", Value: []uint64{5}},
	{Key: "i64s", Value: []int64{-5}},
	{Key: "f32s", Value: []float32{0.5}},
	{Key: "f64s", Value: []float64{0.25}},
	{Key: "bools", Value: []bool{true, false}},
	{Key: "strings", Value: []string{"a", "", "b"}},
	{Key: "none", Value: []string{}},
	{Key: "nested", Value: []any{[]int32{1}, []string{"x"}, []any{[]bool{}}}},
}

func TestMetaRoundTrip(t *testing.T) {
	var b bytes.Buffer
	if _, err := gguf.NewWriter(&b, everything, nil); err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, b.Bytes())
	if got := f.Meta(); !reflect.DeepEqual(got, everything) {
		t.Errorf("Meta() = %v, want %v", got, everything)
	}
	for _, key := range []string{"u8", "i8", "u16", "i16", "u32", "i32", "i64"} {
		if _, err := f.Int(key); err != nil {
			t.Error(err)
		}
		if list, err := f.Ints(key + "s"); err != nil || len(list) == 0 {
			t.Errorf("Ints(%ss) = %v, %v", key, list, err)
		}
	}
	if _, err := f.Int("u64"); err == nil {
		t.Error("Int of 2^63 = nil")
	}
	if list, err := f.Ints("u64s"); err != nil || list[0] != 5 {
		t.Errorf("Ints(u64s) = %v, %v", list, err)
	}
}

func TestAlignment(t *testing.T) {
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, []gguf.KV{{Key: "general.alignment", Value: uint32(64)}},
		[]gguf.Spec{{Name: "a", Type: gguf.F32, Shape: []int64{3}}, {Name: "b", Type: gguf.F16, Shape: []int64{1, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteFloats("a", []float32{1, 2, 3}), w.WriteFloats("b", []float32{4}), w.Close()); err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, b.Bytes())
	if got, err := f.Floats("b"); err != nil || got[0] != 4 || f.DataOffset()%64 != 0 || b.Len() != int(f.DataOffset())+128 {
		t.Errorf("b = %v, %v, data at %d of %d", got, err, f.DataOffset(), b.Len())
	}
}

// A head is a GGUF head to be, in pieces that a test can spoil.
type head struct{ b []byte }

func (h *head) u32(v uint32) *head {
	h.b = binary.LittleEndian.AppendUint32(h.b, v)
	return h
}

func (h *head) u64(v uint64) *head {
	h.b = binary.LittleEndian.AppendUint64(h.b, v)
	return h
}

func (h *head) str(s string) *head {
	h.u64(uint64(len(s)))
	h.b = append(h.b, s...)
	return h
}

// begin returns the head of a file of so many tensors and keys.
func begin(tensors, keys uint64) *head {
	return (&head{[]byte("GGUF")}).u32(3).u64(tensors).u64(keys)
}

// tensor adds an entry of a tensor; ne is innermost first.
func (h *head) tensor(name string, kind uint32, offset uint64, ne ...uint64) *head {
	h.str(name).u32(uint32(len(ne)))
	for _, n := range ne {
		h.u64(n)
	}
	return h.u32(kind).u64(offset)
}

// end pads the head and adds n bytes of data.
func (h *head) end(n int) []byte {
	for len(h.b)%32 != 0 {
		h.b = append(h.b, 0)
	}
	return append(h.b, make([]byte, n)...)
}

func TestOpenRefuses(t *testing.T) {
	deep := begin(0, 1).str("k").u32(9)
	for range 20 {
		deep.u32(9).u64(1)
	}
	for _, test := range []struct {
		name, want string
		file       []byte
	}{
		{"an empty file", "truncated", nil},
		{"another magic", `"gguf"`, []byte("gguf\x03\x00\x00\x00")},
		{"version 1", "version 1;", (&head{[]byte("GGUF")}).u32(1).u64(0).u64(0).end(0)},
		{"version 4", "version 4;", (&head{[]byte("GGUF")}).u32(4).u64(0).u64(0).end(0)},
		{"big-endian", "big-endian", (&head{[]byte("GGUF")}).u32(3 << 24).u64(0).u64(0).end(0)},
		{"many tensors", "truncated: 1152921504606846976 tensors", begin(1<<60, 0).end(0)},
		{"many keys", "1152921504606846976 keys", begin(0, 1<<60).end(0)},
		{"a long key", "string of 65536 bytes", begin(0, 1).str(strings.Repeat("k", 1<<16)).u32(4).u32(1).end(0)},
		{"an empty key", "not a name", begin(0, 1).str("").u32(4).u32(1).end(0)},
		{"a key of broken UTF-8", "not a name", begin(0, 1).str("\xff").u32(4).u32(1).end(0)},
		{"a key twice", `key "k" stands there twice`, begin(0, 2).str("k").u32(4).u32(1).str("k").u32(4).u32(1).end(0)},
		{"an unknown value type", "unknown value type 13", begin(0, 1).str("k").u32(13).u64(0).end(0)},
		{"an unknown item type", "value type 13", begin(0, 1).str("k").u32(9).u32(13).u64(0).end(0)},
		{"a huge array", "truncated: array of", begin(0, 1).str("k").u32(9).u32(4).u64(1 << 61).end(0)},
		{"a huge array of strings", "truncated: array of", begin(0, 1).str("k").u32(9).u32(8).u64(100).end(0)},
		{"a huge string", "more than the limit", begin(0, 1).str("k").u32(8).u64(1 << 62).end(0)},
		{"a string past the end", "truncated", begin(0, 1).str("k").u32(8).u64(1000).end(0)},
		{"arrays in arrays in arrays", "depth 5", deep.end(0)},
		{"a boolean of 2", "boolean 2", (&head{append(begin(0, 1).str("k").u32(7).b, 2)}).end(0)},
		{"an alignment of 0", "power of two", begin(0, 1).str("general.alignment").u32(4).u32(0).end(0)},
		{"an alignment of 48", "power of two", begin(0, 1).str("general.alignment").u32(4).u32(48).end(0)},
		{"an alignment of another type", `"general.alignment" is int32`, begin(0, 1).str("general.alignment").u32(5).u32(32).end(0)},
		{"a tensor twice", `tensor "a" stands there twice`, begin(2, 0).tensor("a", 0, 0, 8).tensor("a", 0, 32, 8).end(64)},
		{"a long name", "string of 64 bytes", begin(1, 0).tensor(strings.Repeat("n", 64), 0, 0, 8).end(32)},
		{"no name", "the name is not one", begin(1, 0).tensor("", 0, 0, 8).end(32)},
		{"five axes", "5 axes", begin(1, 0).tensor("a", 0, 0, 1, 1, 1, 1, 1).end(32)},
		{"an axis of 0", "shape [8 0]", begin(1, 0).tensor("a", 0, 0, 0, 8).end(32)},
		{"an axis of 2^63", "axis of", begin(1, 0).tensor("a", 0, 0, 1<<63).end(32)},
		{"a shape that overflows", "overflows", begin(1, 0).tensor("a", 0, 0, 1<<32, 1<<32).end(32)},
		{"a size that overflows", "overflows", begin(1, 0).tensor("a", 0, 0, 1<<62).end(32)},
		{"a width of half a block", "PTQ1_0: width 64 is not a multiple of 128", begin(1, 0).tensor("a", 143, 0, 64, 2).end(64)},
		{"an odd offset", `tensor "a": offset 4 is not a multiple of 32`, begin(1, 0).tensor("a", 0, 4, 1).end(32)},
		{"an offset of 2^63", "offset 9223372036854775808", begin(1, 0).tensor("a", 0, 1<<63, 1).end(32)},
		{"a tensor past the end", `truncated: tensor "a" of 32 bytes`, begin(1, 0).tensor("a", 0, 32, 8).end(63)},
		{"a tensor of unknown type past the end", `tensor "a"`, begin(1, 0).tensor("a", 99, 64, 8).end(63)},
		{"tensors that overlap", `tensor "b" at offset 32 overlaps "a", which ends at 64`, begin(2, 0).tensor("a", 0, 0, 16).tensor("b", 0, 32, 8).end(64)},
		{"tensors of unknown type in one place", `overlaps`, begin(2, 0).tensor("a", 99, 0, 16).tensor("b", 99, 0, 8).end(64)},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := open(test.file)
			if !errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, want ErrFormat with %q", err, test.want)
			}
		})
	}
}

func TestOpenTruncated(t *testing.T) {
	whole := golden(t, "llama-ptq.gguf")
	for n := 0; n < len(whole); n += 97 {
		if _, err := open(whole[:n]); !errors.Is(err, gguf.ErrFormat) {
			t.Fatalf("Open of the first %d of %d bytes = %v, want ErrFormat", n, len(whole), err)
		}
	}
}

// Other types are listed with name and size; reading one names it.
func TestOtherTypes(t *testing.T) {
	b := begin(3, 0).tensor("q", 12, 0, 256).tensor("new", 999, 160, 256).tensor("old", 42, 192, 128).end(256)
	f := mustOpen(t, b)
	for _, test := range []struct {
		name, kind, want string
		size             int64
	}{
		{"q", "Q4_K", `tensor "q": Q4_K where`, 144},
		{"new", "type 999", `tensor "new": type 999 where`, -1},
		{"old", "Q2_0", `tensor "old": type 42 means`, -1},
	} {
		x, _ := f.Lookup(test.name)
		if x.Type.String() != test.kind || x.Size() != test.size {
			t.Errorf("%s is %v of %d bytes, want %s of %d", test.name, x.Type, x.Size(), test.kind, test.size)
		}
		_, floats := f.Floats(test.name)
		_, _, codes := f.Codes(test.name)
		for what, err := range map[string]error{"Floats": floats, "Codes": codes} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s(%s) = %v, want %q", what, test.name, err, test.want)
			}
		}
	}
	if b, err := f.Bytes("q"); err != nil || len(b) != 144 {
		t.Errorf("Bytes(q) = %d bytes, %v", len(b), err)
	}
	if _, err := f.Bytes("old"); err == nil {
		t.Error("Bytes of a type whose size is not known = nil")
	}
	if _, err := f.Floats("x"); !errors.Is(err, gguf.ErrMissing) {
		t.Errorf("Floats of a missing tensor = %v", err)
	}
}
