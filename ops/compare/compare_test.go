package compare_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"bonsai/kernels"
	"bonsai/ops/compare"
	"bonsai/ops/gguf"
	"bonsai/ops/safetensors"
)

// A model is what the tests write as GGUF or safetensors: a ternary tensor of two rows of
// 128, and one of floats.
type model struct {
	codes  []int8
	scales []float32
	norm   []float32
	meta   []gguf.KV
	kind   gguf.Type // of the ternary one
}

func base() *model {
	m := &model{codes: make([]int8, 256), scales: []float32{1, 2}, norm: []float32{1, 2, 2}, kind: gguf.PTQ1}
	for i := range m.codes {
		m.codes[i] = int8(i%3) - 1
	}
	m.meta = []gguf.KV{{Key: "name", Value: "x"}, {Key: "tokens", Value: []string{"a", "b", "c", "d", "e", "f", "g"}}}
	return m
}

func (m *model) halves() (bits []uint16) {
	for _, s := range m.scales {
		bits = append(bits, kernels.FloatToHalf(s))
	}
	return bits
}

func (m *model) gguf(t testing.TB) compare.File {
	t.Helper()
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, m.meta, []gguf.Spec{
		{Name: "w", Type: m.kind, Shape: []int64{2, 128}}, {Name: "norm", Type: gguf.F32, Shape: []int64{int64(len(m.norm))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteCodes("w", m.codes, m.halves()), w.WriteFloats("norm", m.norm), w.Close()); err != nil {
		t.Fatal(err)
	}
	return file("m.gguf", b.String())
}

func (m *model) safetensors(t testing.TB) compare.File {
	t.Helper()
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, []safetensors.Spec{
		{Name: "w.codes", DType: safetensors.U8, Shape: []int64{2, 32}},
		{Name: "w.scales", DType: safetensors.F16, Shape: []int64{2, 1}},
		{Name: "norm", DType: safetensors.F32, Shape: []int64{int64(len(m.norm))}},
	}, map[string]string{"method": m.meta[0].Value.(string)})
	if err != nil {
		t.Fatal(err)
	}
	packed := make([]byte, len(m.codes)/4)
	kernels.PackCodes(packed, m.codes)
	if err := errors.Join(w.Write("w.codes", packed), w.WriteFloats("w.scales", m.scales), w.WriteFloats("norm", m.norm), w.Close()); err != nil {
		t.Fatal(err)
	}
	return file("m.safetensors", b.String())
}

func file(name, text string) compare.File {
	return compare.File{Name: name, R: strings.NewReader(text), Size: int64(len(text))}
}

func files(t *testing.T, a, b compare.File) *compare.Report {
	t.Helper()
	r, err := compare.Files(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// One changed code, one changed sign and one changed scale are found as such, in both
// formats that hold codes.
func TestCodes(t *testing.T) {
	other := base()
	other.codes[0], other.codes[3] = 0, 1 // both were −1
	other.scales[1] = 4
	other.meta[0].Value = "y"
	want := compare.Ternary{
		Elements: 256, Codes: 2. / 256, Flips: 1. / 256, Scales: math.Sqrt(4. / 5),
		Zeros: [2]float64{85. / 256, 86. / 256},
	}
	for format, r := range map[string]*compare.Report{
		compare.GGUF:  files(t, base().gguf(t), other.gguf(t)),
		compare.Codes: files(t, base().safetensors(t), other.safetensors(t)),
	} {
		if r.Format != format || r.Same || len(r.Tensors) != 2 || len(r.Metadata) != 1 {
			t.Fatalf("%s: %+v", format, r)
		}
		w := r.Tensors[0]
		if w.Name != "w" || w.Status != compare.Differs || *w.Ternary != want {
			t.Errorf("%s: %+v, want %+v", format, w.Ternary, want)
		}
		if r.Tensors[1].Status != compare.Equal || r.Metadata[0].Old != `"x"` || r.Metadata[0].New != `"y"` {
			t.Errorf("%s: %+v, metadata %+v", format, r.Tensors[1], r.Metadata)
		}
	}
}

// The same codes in another layout are equal, though the bytes are not.
func TestCodesInAnotherLayout(t *testing.T) {
	other := base()
	other.kind = gguf.PQ2
	r := files(t, base().gguf(t), other.gguf(t))
	if !r.Same || r.Tensors[0].Status != compare.Equal || r.Tensors[0].New.Type != gguf.PQ2.String() {
		t.Errorf("%+v", r)
	}
}

func TestFloats(t *testing.T) {
	other := base()
	other.norm = []float32{1, 2, 5}
	r := files(t, base().gguf(t), other.gguf(t))
	if f := r.Tensors[1].Float; f == nil || *f != (compare.Float{Max: 3, Relative: 1}) {
		t.Errorf("%+v", r.Tensors[1])
	}
	other.norm = []float32{1, 2}
	r = files(t, base().gguf(t), other.gguf(t))
	if n := r.Tensors[1]; n.Status != compare.Differs || n.Float != nil || fmt.Sprint(n.Old.Shape, n.New.Shape) != "[3] [2]" {
		t.Errorf("%+v", n)
	}
}

// Values that are no numbers cannot be compared: it says so, and goes on.
func TestNotFinite(t *testing.T) {
	a, b := base().safetensors(t), base().safetensors(t)
	text := make([]byte, b.Size)
	if _, err := b.R.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	copy(text[len(text)-4:], []byte{0, 0, 0xc0, 0x7f})
	r := files(t, a, file("m.safetensors", string(text)))
	n := r.Tensors[1]
	if n.Status != compare.Differs || !strings.Contains(n.Note, "element 2 is NaN") || r.Tensors[0].Status != compare.Equal {
		t.Errorf("%+v", n)
	}
}

func TestAddedAndRemoved(t *testing.T) {
	a, b := base(), base()
	a.meta = append(a.meta, gguf.KV{Key: "old", Value: uint32(7)})
	b.meta = append(b.meta, gguf.KV{Key: "new", Value: true})
	b.meta[1].Value = []string{"a", "b", "c", "d", "e", "F", "g"}
	r := files(t, a.gguf(t), b.gguf(t))
	want := `[{tokens differs [5] "f" [5] "F"} {old removed 7 } {new added  true}]`
	if got := fmt.Sprint(r.Metadata); got != want || r.Same {
		t.Errorf("metadata %s, want %s", got, want)
	}
}

func TestJSON(t *testing.T) {
	a := file("a.json", `{"b": {"kl": 0.5, "n": 12345678901234567}, "a": ["x", null, {}], "gone": 1}`)
	b := file("b.json", ` {"a": ["x", "null", {}], "b": {"kl": 0.25, "n": 12345678901234567}, "come": []}`)
	r := files(t, a, b)
	want := `[{a[0] equal "x" "x"} {a[1] differs <nil> "null"} {a[2] equal "{}" "{}"} {b.kl differs 0.5 0.25} ` +
		`{b.n equal 12345678901234567 12345678901234567} {gone removed 1 } {come added  "[]"}]`
	if got := fmt.Sprint(r.Values); got != want || r.Same || r.Format != compare.JSON {
		t.Errorf("%s values %s, want %s", r.Format, got, want)
	}
	if r := files(t, a, a); !r.Same {
		t.Errorf("a file differs from itself: %+v", r)
	}
}

func TestBytes(t *testing.T) {
	long := strings.Repeat("x", 700_000)
	for _, c := range []struct {
		a, b  string
		first int64
	}{
		{"", "", -1},
		{"abc", "abc", -1},
		{"abc", "abd", 2},
		{"abc", "ab", 2},
		{"", "a", 0},
		{"[1", "[2", 1},
		{long, long, -1},
		{long + "y", long + "z", 700_000},
		{long[:262144], long[:262145], 262144},
	} {
		r := files(t, file("a", c.a), file("b", c.b))
		if r.Format != compare.Bytes || r.First != c.first || r.Same != (c.first < 0) || r.Sizes[0] != int64(len(c.a)) {
			t.Errorf("%.10q and %.10q: %+v, want first %d", c.a, c.b, r, c.first)
		}
	}
	if r := files(t, base().gguf(t), file("b", "x")); r.Format != compare.Bytes || r.First != 0 {
		t.Errorf("a GGUF and a text: %+v", r)
	}
}

func TestRefuses(t *testing.T) {
	good := base().gguf(t)
	for _, bad := range []compare.File{file("x.gguf", "GGUF and more"), file("x.safetensors", "none")} {
		if _, err := compare.Files(t.Context(), good, bad); err == nil || !strings.Contains(err.Error(), bad.Name) {
			t.Errorf("%s: %v", bad.Name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compare.Files(ctx, good, good); !errors.Is(err, context.Canceled) {
		t.Errorf("a comparison that was cancelled: %v", err)
	}
}

// Comparing large files takes little memory. The bytes are made as they are read.
func TestMemoryIsBounded(t *testing.T) {
	const n = 1 << 26
	a, b := sparse(t, n, -1), sparse(t, n, n-5)
	r := files(t, a, b)
	if r.Tensors[0].Float == nil || r.Tensors[0].Float.Max != 1 {
		t.Errorf("%+v", r.Tensors[0])
	}
	if most := max(a.R.(*zeros).most, b.R.(*zeros).most); most > n/4 {
		t.Errorf("while two files of %d bytes were compared, %d bytes were held", int64(n), most)
	}
}

// sparse is a GGUF file with a tensor of n bytes of bf16 zeros, and a one at an element.
func sparse(t *testing.T, n, one int64) compare.File {
	t.Helper()
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, nil, []gguf.Spec{{Name: "w", Type: gguf.BF16, Shape: []int64{n / 2}}})
	if err != nil {
		t.Fatal(err)
	}
	_ = w // the head is all that is written
	r := &zeros{head: b.Bytes(), size: int64(b.Len()) + n, one: -1}
	if one >= 0 {
		r.one = int64(b.Len()) + one/2*2 + 1
	}
	return compare.File{Name: "sparse.gguf", R: r, Size: r.size}
}

type zeros struct {
	head      []byte
	size, one int64
	most      uint64 // bytes held at any read
}

func (z *zeros) ReadAt(p []byte, at int64) (int, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	z.most = max(z.most, m.HeapAlloc)
	n := int(min(int64(len(p)), z.size-at))
	clear(p[:n])
	if at < int64(len(z.head)) {
		copy(p, z.head[at:])
	}
	if i := z.one - at; z.one >= 0 && i >= 0 && i < int64(n) {
		p[i] = 0x3f // 0x3f80 is one
		if i > 0 {
			p[i-1] = 0x80
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// FuzzFiles holds that no bytes make a comparison panic, and that a file equals itself.
func FuzzFiles(f *testing.F) {
	for _, seed := range []compare.File{base().gguf(f), base().safetensors(f), file("", `{"a":[1,{"b":null}]}`)} {
		b := make([]byte, seed.Size)
		if _, err := seed.R.ReadAt(b, 0); err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte("{}"))
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := file("a", string(a)), file("b", string(b))
		_, _ = compare.Files(t.Context(), x, y)
		if r, err := compare.Files(t.Context(), x, x); err == nil && !r.Same {
			for _, tensor := range r.Tensors {
				if tensor.Note != "" {
					return // of a type that is not known
				}
			}
			t.Errorf("%q differs from itself: %+v", a, r)
		}
	})
}
