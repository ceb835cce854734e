package mlx_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"bonsai/ops/mlx"
)

func upload(t *testing.T, e *mlx.Engine, flat []float32, dims ...int) *mlx.Tensor {
	t.Helper()
	x, err := e.Upload(flat, dims...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Free)
	return x
}

// call runs f and returns its first result.
func call(t *testing.T, f *mlx.Func, in ...*mlx.Tensor) []float32 {
	t.Helper()
	out, err := f.Call(in...)
	if err != nil {
		t.Fatal(err)
	}
	return values(t, out[0])
}

// values reads a tensor and frees it.
func values(t *testing.T, x *mlx.Tensor) []float32 {
	t.Helper()
	defer x.Free()
	n := 1
	for _, d := range x.Dims() {
		n *= d
	}
	v := make([]float32, n)
	if err := x.Read(v); err != nil {
		t.Fatal(err)
	}
	return v
}

func normal(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// sequence returns 0, 1, 2, … n-1.
func sequence(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i)
	}
	return v
}

// TestMatMul compares products of odd shapes with sums in float64, after the backend has recycled buffers full of NaN.
func TestMatMul(t *testing.T) {
	e := mlx.New("go")
	product := e.Func("product", func(in []*mlx.Node) []*mlx.Node { return []*mlx.Node{mlx.MatMul(in[0], in[1])} })
	poison := e.Func("poison", func(in []*mlx.Node) []*mlx.Node { return []*mlx.Node{mlx.Rsqrt(in[0])} })
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		b, m, k, n := 1+rng.IntN(3), 1+rng.IntN(40), 1+rng.IntN(300), 1+rng.IntN(60)
		negative := upload(t, e, slices.Repeat([]float32{-1}, b*m*n), b, m, n)
		call(t, poison, negative)
		x, y := normal(rng, b*m*k), normal(rng, b*k*n)
		got := call(t, product, upload(t, e, x, b, m, k), upload(t, e, y, b, k, n))
		for i := range got {
			q, r, c := i/(m*n), i/n%m, i%n
			sum := 0.0
			for l := range k {
				sum += float64(x[(q*m+r)*k+l]) * float64(y[(q*k+l)*n+c])
			}
			if d := math.Abs(float64(got[i]) - sum); !(d < 1e-5*math.Sqrt(float64(k))) {
				t.Fatalf("[%d %d %d]·[%d %d %d]: element %d is %g, want %g", b, m, k, b, k, n, i, got[i], sum)
			}
		}
	}
}

// TestOps checks what each operation means, on small whole numbers.
func TestOps(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, test := range []struct {
		name string
		of   func(x *mlx.Node) *mlx.Node // x is 0, 1, … 11 in shape [3, 4]
		dims []int
		want []float32
	}{
		{"slice", func(x *mlx.Node) *mlx.Node { return mlx.Slice(x, mlx.Span{}, mlx.Span{From: 1, To: 3}) }, []int{3, 2}, []float32{1, 2, 5, 6, 9, 10}},
		{"transpose", func(x *mlx.Node) *mlx.Node { return mlx.Transpose(x, 1, 0) }, []int{4, 3}, []float32{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
		{"reshape", func(x *mlx.Node) *mlx.Node { return mlx.Reshape(x, 12) }, []int{12}, sequence(12)},
		{
			"concat", func(x *mlx.Node) *mlx.Node {
				return mlx.Concat(1, mlx.Slice(x, mlx.Span{To: 2}, mlx.Span{To: 1}), mlx.Slice(x, mlx.Span{From: 1, To: 3}, mlx.Span{From: 2, To: 4}))
			},
			[]int{2, 3},
			[]float32{0, 6, 7, 4, 10, 11},
		},
		{"tile", func(x *mlx.Node) *mlx.Node { return mlx.Tile(mlx.Slice(x, mlx.Span{To: 1}, mlx.Span{}), 2) }, []int{2, 4}, []float32{0, 1, 2, 3, 0, 1, 2, 3}},
		{"add", func(x *mlx.Node) *mlx.Node { return mlx.Add(x, mlx.Square(x)) }, []int{3, 4}, []float32{0, 2, 6, 12, 20, 30, 42, 56, 72, 90, 110, 132}},
		{"sub", func(x *mlx.Node) *mlx.Node { return mlx.Sub(mlx.Scale(x, 3), x) }, []int{3, 4}, []float32{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}},
		{"mul", func(x *mlx.Node) *mlx.Node { return mlx.Mul(x, mlx.Shift(x, 1)) }, []int{3, 4}, []float32{0, 2, 6, 12, 20, 30, 42, 56, 72, 90, 110, 132}},
		{
			"round", func(x *mlx.Node) *mlx.Node {
				return mlx.Round(mlx.Scale(mlx.Slice(x, mlx.Span{To: 1}, mlx.Span{}), 1.5))
			},
			[]int{1, 4},
			[]float32{0, 2, 3, 4},
		},
		{
			"floor", func(x *mlx.Node) *mlx.Node {
				return mlx.Floor(mlx.Scale(mlx.Slice(x, mlx.Span{To: 1}, mlx.Span{}), -1.5))
			},
			[]int{1, 4},
			[]float32{0, -2, -3, -5},
		},
		{"sum", mlx.Sum, nil, []float32{66}},
		{"full", func(x *mlx.Node) *mlx.Node { return mlx.Full(x, 7, 2, 1) }, []int{2, 1}, []float32{7, 7}},
		{
			"broadcast", func(x *mlx.Node) *mlx.Node { return mlx.BroadcastMul(x, mlx.Slice(x, mlx.Span{To: 1}, mlx.Span{})) },
			[]int{3, 4},
			[]float32{0, 1, 4, 9, 0, 5, 12, 21, 0, 9, 20, 33},
		},
		{
			"add row", func(x *mlx.Node) *mlx.Node { return mlx.AddRow(x, mlx.Slice(x, mlx.Span{To: 1}, mlx.Span{})) },
			[]int{3, 4},
			[]float32{0, 2, 4, 6, 4, 6, 8, 10, 8, 10, 12, 14},
		},
		{"causal mask", func(x *mlx.Node) *mlx.Node { return mlx.CausalMask(x, 1, 2, 0, 3, 0) }, []int{2, 3}, []float32{0, 0, inf, 0, 0, 0}},
		{"window mask", func(x *mlx.Node) *mlx.Node { return mlx.CausalMask(x, 4, 2, 2, 4, 2) }, []int{2, 4}, []float32{inf, 0, 0, inf, inf, inf, 0, 0}},
		{"one node of a concat", func(x *mlx.Node) *mlx.Node { return mlx.Concat(0, x) }, []int{3, 4}, sequence(12)},
	} {
		e := mlx.New("go")
		x := upload(t, e, sequence(12), 3, 4)
		out, err := e.Func(test.name, func(in []*mlx.Node) []*mlx.Node { return []*mlx.Node{test.of(in[0])} }).Call(x)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		dims := out[0].Dims()
		if got := values(t, out[0]); !slices.Equal(got, test.want) || !slices.Equal(dims, test.dims) {
			t.Errorf("%s: got %v %v, want %v %v", test.name, dims, got, test.dims, test.want)
		}
	}
}

// TestRows checks the operations along rows against their formulas.
func TestRows(t *testing.T) {
	const rows, n = 5, 33
	e, rng := mlx.New("go"), rand.New(rand.NewPCG(3, 4))
	x, gain := normal(rng, rows*n), normal(rng, n)
	got, err := e.Func("rows", func(in []*mlx.Node) []*mlx.Node {
		return []*mlx.Node{mlx.Softmax(in[0]), mlx.RMSNorm(in[0], in[1], 1e-3), mlx.RMSNorm(in[0], nil, 1e-3), mlx.Exp(in[0]), mlx.SiLU(in[0])}
	}).Call(upload(t, e, x, rows, n), upload(t, e, gain, 1, n))
	if err != nil {
		t.Fatal(err)
	}
	softmax, normed, plain, exp, silu := values(t, got[0]), values(t, got[1]), values(t, got[2]), values(t, got[3]), values(t, got[4])
	for i := range x {
		row := x[i/n*n:][:n]
		total, square := 0.0, 0.0
		for _, v := range row {
			total += math.Exp(float64(v))
			square += float64(v) * float64(v)
		}
		v := float64(x[i])
		unit := v / math.Sqrt(square/n+1e-3)
		for _, c := range []struct {
			what string
			got  float32
			want float64
		}{
			{"softmax", softmax[i], math.Exp(v) / total},
			{"norm", normed[i], unit * float64(gain[i%n])},
			{"norm without weight", plain[i], unit},
			{"exp", exp[i], math.Exp(v)},
			{"silu", silu[i], v / (1 + math.Exp(-v))},
		} {
			if math.Abs(float64(c.got)-c.want) > 1e-6*(1+math.Abs(c.want)) {
				t.Fatalf("%s: element %d is %g, want %g", c.what, i, c.got, c.want)
			}
		}
	}
}

// TestErrors checks that mistakes come back as errors that say what failed.
func TestErrors(t *testing.T) {
	e := mlx.New("")
	if e.Name() != "go" {
		t.Errorf("the default engine is %q", e.Name())
	}
	a, b := upload(t, e, sequence(6), 2, 3), upload(t, e, sequence(6), 2, 3)
	freed := upload(t, e, sequence(1), 1)
	freed.Free()
	freed.Free()
	apply := func(name string, f func(a, b *mlx.Node) *mlx.Node, in ...*mlx.Tensor) func() error {
		return func() error {
			_, err := e.Func(name, func(in []*mlx.Node) []*mlx.Node { return []*mlx.Node{f(in[0], in[1])} }).Call(in...)
			return err
		}
	}
	first := func(x, _ *mlx.Node) *mlx.Node { return x }
	for _, test := range []struct {
		want []string
		call func() error
	}{
		{[]string{"heads: ", "[2 3]"}, apply("heads", mlx.MatMul, a, b)},
		{[]string{"ranks: ", "product of shapes [2 3] and [6]"}, apply("ranks", func(a, b *mlx.Node) *mlx.Node { return mlx.MatMul(a, mlx.Reshape(b, 6)) }, a, b)},
		{[]string{"sum: ", "[2 3] and [1 3]"}, apply("sum", func(a, b *mlx.Node) *mlx.Node { return mlx.Add(a, mlx.Slice(b, mlx.Span{To: 1}, mlx.Span{})) }, a, b)},
		{[]string{"slice: "}, apply("slice", func(a, _ *mlx.Node) *mlx.Node { return mlx.Slice(a, mlx.Span{To: 9}, mlx.Span{}) }, a, b)},
		{[]string{"custom: ", "plain text"}, apply("custom", func(a, _ *mlx.Node) *mlx.Node { panic("plain text") }, a, b)},
		{[]string{"few: ", "index out of range"}, apply("few", first)},
		{[]string{"freed: an argument was freed"}, apply("freed", first, a, freed)},
		{[]string{"shape [2 2] has 4 elements, not 3"}, func() error { _, err := e.Upload(sequence(3), 2, 2); return err }},
		{[]string{"shape [0 2]"}, func() error { _, err := e.Upload(nil, 0, 2); return err }},
		{[]string{"read 5 of the 6 elements"}, func() error { return a.Read(make([]float32, 5)) }},
	} {
		err := test.call()
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

// TestBackends checks that an engine opens at its first use, and then says what is missing.
func TestBackends(t *testing.T) {
	for spec, want := range map[string]string{
		"tpu":      `"tpu" is none of go, xla:cpu, xla:cuda`,
		"xla:cpu":  "xla:cpu",
		"xla:cuda": "xla:cuda",
	} {
		e := mlx.New(spec)
		if e.Name() != spec || e.Parallel() != 1 {
			t.Errorf("%s: name %q, %d calls at once", spec, e.Name(), e.Parallel())
		}
		f := e.Func("f", func(in []*mlx.Node) []*mlx.Node { return in })
		_, callErr := f.Call()
		_, fillErr := e.Upload([]float32{1}, 1)
		for _, err := range []error{callErr, fillErr} {
			if err == nil && strings.HasPrefix(spec, "xla:") {
				continue // built with XLA, and a plugin is installed
			}
			if !errors.Is(err, mlx.ErrBackend) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", spec, err, want)
			}
		}
	}
}

// TestConcurrentCalls checks that one function serves many goroutines and more shapes than GoMLX keeps by default.
func TestConcurrentCalls(t *testing.T) {
	e := mlx.New("go")
	w := upload(t, e, sequence(16), 4, 4)
	f := e.Func("f", func(in []*mlx.Node) []*mlx.Node { return []*mlx.Node{mlx.Softmax(mlx.MatMul(in[0], in[1]))} })
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			n := i%40 + 1
			x, err := e.Upload(sequence(4*n), n, 4)
			if err != nil {
				t.Error(err)
				return
			}
			defer x.Free()
			out, err := f.Call(x, w)
			if err != nil {
				t.Error(err)
				return
			}
			if got := fmt.Sprint(out[0].Dims()); got != fmt.Sprint([]int{n, 4}) {
				t.Errorf("shape %s of %d rows", got, n)
			}
			out[0].Free()
		})
	}
	wg.Wait()
}
