package gguf_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/gguf"
)

var plain = []gguf.Spec{
	{Name: "f", Type: gguf.F32, Shape: []int64{4}},
	{Name: "h", Type: gguf.F16, Shape: []int64{2}},
	{Name: "t", Type: gguf.PTQ1, Shape: []int64{2, 128}},
	{Name: "p", Type: gguf.PQ2, Shape: []int64{1, 256}},
}

func TestWriterRefusesHead(t *testing.T) {
	for name, test := range map[string]struct {
		meta  []gguf.KV
		specs []gguf.Spec
	}{
		"a key twice":       {meta: []gguf.KV{{Key: "k", Value: true}, {Key: "k", Value: true}}},
		"an empty key":      {meta: []gguf.KV{{Key: "", Value: true}}},
		"a long key":        {meta: []gguf.KV{{Key: strings.Repeat("k", 1<<16), Value: true}}},
		"an int":            {meta: []gguf.KV{{Key: "k", Value: 1}}},
		"nil":               {meta: []gguf.KV{{Key: "k", Value: nil}}},
		"a list of scalars": {meta: []gguf.KV{{Key: "k", Value: []any{uint8(1)}}}},
		"an alignment":      {meta: []gguf.KV{{Key: "general.alignment", Value: uint32(3)}}},
		"a typed alignment": {meta: []gguf.KV{{Key: "general.alignment", Value: int32(32)}}},
		"a name twice":      {specs: []gguf.Spec{plain[0], plain[0]}},
		"a long name":       {specs: []gguf.Spec{{Name: strings.Repeat("n", 64), Type: gguf.F32, Shape: []int64{1}}}},
		"no name":           {specs: []gguf.Spec{{Type: gguf.F32, Shape: []int64{1}}}},
		"a type":            {specs: []gguf.Spec{{Name: "a", Type: 42, Shape: []int64{128}}}},
		"half a block":      {specs: []gguf.Spec{{Name: "a", Type: gguf.PQ2, Shape: []int64{2, 64}}}},
		"an empty axis":     {specs: []gguf.Spec{{Name: "a", Type: gguf.F32, Shape: []int64{0}}}},
	} {
		if _, err := gguf.NewWriter(io.Discard, test.meta, test.specs); !errors.Is(err, gguf.ErrFormat) {
			t.Errorf("NewWriter with %s = %v, want ErrFormat", name, err)
		}
	}
}

func TestWriterRefusesTensors(t *testing.T) {
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, nil, plain)
	if err != nil {
		t.Fatal(err)
	}
	codes, scales := make([]int8, 256), []uint16{0x3c00, 0x3800}
	var value *gguf.NotFiniteError
	var code *gguf.CodeError
	refused := func(what, want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v, want an error with %q", what, err, want)
		}
	}
	refused("another tensor", `"f" comes first`, w.Write("h", make([]byte, 4)))
	refused("too many bytes", "1 bytes more", w.Write("f", make([]byte, 17)))
	refused("codes into F32", "into F32", w.WriteCodes("f", codes, scales))
	refused("an early end", "0 of 16 bytes", w.Close())
	if err := w.WriteFloats("f", []float32{1, float32(math.Inf(1)), 0, 0}); !errors.As(err, &value) || value.Tensor != "f" || value.Index != 1 {
		t.Errorf("an infinity = %v", err)
	}
	if err := errors.Join(w.WriteFloats("f", []float32{1, 2}), w.WriteFloats("f", []float32{3, 4})); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFloats("h", []float32{1, 65520}); !errors.As(err, &value) || value.Tensor != "h" || value.Index != 1 {
		t.Errorf("65520 as F16 = %v", err)
	}
	if err := w.WriteFloats("h", []float32{1, 2}); err != nil {
		t.Fatal(err)
	}
	refused("floats into PTQ1_0", "into PTQ1_0", w.WriteFloats("t", []float32{1}))
	refused("half a block", "into PTQ1_0", w.WriteCodes("t", codes[:64], scales[:1]))
	if err := w.WriteCodes("t", codes[:128], scales[:1]); err != nil {
		t.Fatal(err)
	}
	codes[5] = 2
	if err := w.WriteCodes("t", codes[:128], scales[:1]); !errors.As(err, &code) || code.Index != 128+5 {
		t.Errorf("a code of 2 = %v, want element 133", err)
	}
	codes[5] = -1
	if err := w.WriteCodes("t", codes[:128], []uint16{0x7c00}); !errors.As(err, &value) || value.Index != 128 {
		t.Errorf("an infinite scale = %v, want element 128", err)
	}
	if err := errors.Join(w.WriteCodes("t", codes[:128], scales[1:]), w.WriteCodes("p", codes, scales), w.Close()); err != nil {
		t.Fatal(err)
	}
	refused("a tensor too many", "all tensors are written", w.Write("p", nil))
	f := mustOpen(t, b.Bytes())
	if c, s, err := f.Codes("t"); err != nil || c[133] != -1 || !slices.Equal(s, scales) {
		t.Errorf("Codes(t) = %v, %v, %v", c[133], s, err)
	}
	if c, s, err := f.Codes("p"); err != nil || !slices.Equal(c, codes) || !slices.Equal(s, scales) {
		t.Errorf("Codes(p) = %v, %v", s, err)
	}
}

// What a container may hold and a ternary model may not is refused by name.
func TestCodesRefuses(t *testing.T) {
	spec := []gguf.Spec{{Name: "p", Type: gguf.PQ2, Shape: []int64{1, 256}}}
	block := func(scale byte, code byte) []byte {
		b := bytes.Repeat([]byte{0x55}, 34)
		b[0], b[1], b[33] = 0, scale, code
		return b
	}
	file := func(second []byte) *gguf.File {
		var b bytes.Buffer
		w, err := gguf.NewWriter(&b, nil, spec)
		if err := errors.Join(err, w.Write("p", block(0x3c, 0x55)), w.Write("p", second), w.Close()); err != nil {
			t.Fatal(err)
		}
		return mustOpen(t, b.Bytes())
	}
	two := file(block(0x40, 0xd5))
	var code *gguf.CodeError
	if _, _, err := two.Codes("p"); !errors.As(err, &code) || code.Tensor != "p" || code.Index != 255 {
		t.Errorf("Codes with a code of 2 = %v, want element 255", err)
	}
	if x, err := two.Floats("p"); err != nil || x[255] != 4 {
		t.Errorf("Floats with a code of 2 = %v, %v, want twice the scale", x[255], err)
	}
	var value *gguf.NotFiniteError
	for _, scale := range []byte{0x7c, 0x7e, 0xfc} {
		bad := file(block(scale, 0x55))
		_, _, codes := bad.Codes("p")
		_, floats := bad.Floats("p")
		if !errors.As(codes, &value) || !errors.As(floats, &value) || value.Index != 128 || value.Tensor != "p" {
			t.Errorf("scale %#x: Codes = %v, Floats = %v, want element 128", scale, codes, floats)
		}
	}
}

// A write that fails is reported with the tensor, wherever it fails.
func TestWriterFull(t *testing.T) {
	var whole bytes.Buffer
	write := func(out io.Writer) error {
		w, err := gguf.NewWriter(out, everything, plain)
		if err != nil {
			return err
		}
		for _, write := range []func() error{
			func() error { return w.WriteFloats("f", make([]float32, 4)) },
			func() error { return w.WriteFloats("h", make([]float32, 2)) },
			func() error { return w.WriteCodes("t", make([]int8, 256), make([]uint16, 2)) },
			func() error { return w.WriteCodes("p", make([]int8, 256), make([]uint16, 2)) },
			w.Close,
		} {
			if err := write(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(&whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if err := write(&full{left: n}); !errors.Is(err, errFull) {
			t.Fatalf("a disk with %d bytes of %d left: %v", n, whole.Len(), err)
		}
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

// FuzzOpen checks that no bytes make Open or the readers panic, and that a file that
// Open accepts is rewritten to one that reads the same.
func FuzzOpen(f *testing.F) {
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, everything, plain[:3])
	if err != nil {
		f.Fatal(err)
	}
	err = errors.Join(w.WriteFloats("f", []float32{1, 2, 3, 4}), w.WriteFloats("h", []float32{5, 6}),
		w.WriteCodes("t", make([]int8, 256), make([]uint16, 2)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(begin(3, 0).tensor("q", 12, 0, 256).tensor("new", 999, 160, 256).tensor("old", 42, 192, 128).end(256))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := open(b)
		if err != nil {
			if !errors.Is(err, gguf.ErrFormat) {
				t.Errorf("Open = %v, want ErrFormat", err)
			}
			return
		}
		known := true
		for _, x := range in.Tensors() {
			_, _ = in.Floats(x.Name)
			_, _, _ = in.Codes(x.Name)
			known = known && x.Size() >= 0
		}
		if !known {
			return
		}
		again := mustOpen(t, rewrite(t, in, false))
		if len(again.Meta()) != len(in.Meta()) || len(again.Tensors()) != len(in.Tensors()) {
			t.Error("the rewritten file differs")
		}
	})
}

func BenchmarkCodes(b *testing.B) {
	for _, kind := range []gguf.Type{gguf.PTQ1, gguf.PQ2} {
		const rows, cols = 1024, 4096
		var file bytes.Buffer
		codes, scales := make([]int8, rows*cols), make([]uint16, rows*cols/128)
		write := func() {
			file.Reset()
			w, err := gguf.NewWriter(&file, nil, []gguf.Spec{{Name: "w", Type: kind, Shape: []int64{rows, cols}}})
			if err := errors.Join(err, w.WriteCodes("w", codes, scales)); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("op=write/type="+kind.String(), func(b *testing.B) {
			b.SetBytes(rows * cols)
			for b.Loop() {
				write()
			}
		})
		write()
		f := mustOpen(b, file.Bytes())
		b.Run("op=read/type="+kind.String(), func(b *testing.B) {
			b.SetBytes(rows * cols)
			for b.Loop() {
				if err := f.ReadCodes("w", codes, scales, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
