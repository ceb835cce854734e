package mlx_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"bonsai/ops/mlx"
)

// TestGradient compares gradients with differences of the loss Σ f(x, w)³, for every operation that training goes
// through: the products that are replaced, the gradients that are added, and those that GoMLX has.
func TestGradient(t *testing.T) {
	square := func(x *mlx.Node) *mlx.Node { return mlx.Shift(mlx.Square(x), 0.5) } // positive
	for _, test := range []struct {
		name string
		x, w []int // shapes
		f    func(x, w *mlx.Node) *mlx.Node
	}{
		{"product", []int{3, 4}, []int{4, 5}, mlx.MatMul},
		{"square product", []int{4, 4}, []int{4, 4}, mlx.MatMul},
		{"batch of products", []int{2, 3, 4}, []int{2, 4, 5}, mlx.MatMul},
		{"product with a transpose", []int{2, 3, 4}, []int{2, 5, 4}, func(x, w *mlx.Node) *mlx.Node { return mlx.MatMul(x, mlx.Transpose(w, 0, 2, 1)) }},
		{"rsqrt", []int{3, 4}, []int{3, 4}, func(x, w *mlx.Node) *mlx.Node { return mlx.Mul(mlx.Rsqrt(square(x)), w) }},
		{"norm", []int{3, 8}, []int{1, 8}, func(x, w *mlx.Node) *mlx.Node { return mlx.RMSNorm(x, w, 1e-3) }},
		{"softmax", []int{3, 4}, []int{3, 4}, func(x, w *mlx.Node) *mlx.Node { return mlx.Mul(mlx.Softmax(x), w) }},
		{"exp", []int{3, 4}, []int{3, 4}, func(x, w *mlx.Node) *mlx.Node { return mlx.Mul(mlx.Exp(x), w) }},
		{"silu", []int{3, 4}, []int{4, 5}, func(x, w *mlx.Node) *mlx.Node { return mlx.SiLU(mlx.MatMul(x, w)) }},
		{"add row", []int{3, 4}, []int{1, 4}, mlx.AddRow},
		{"broadcast", []int{3, 4}, []int{3, 1}, mlx.BroadcastMul},
		{
			"slices, tiles and masks",
			[]int{4, 6},
			[]int{2, 3},
			func(x, w *mlx.Node) *mlx.Node {
				a := mlx.Slice(x, mlx.Span{}, mlx.Span{From: 1, To: 4})
				b := mlx.Slice(x, mlx.Span{}, mlx.Span{From: 3, To: 6})
				return mlx.Concat(1, mlx.Mul(a, mlx.Tile(w, 2)), mlx.Softmax(mlx.Add(mlx.Sub(b, a), mlx.CausalMask(x, 0, 4, 0, 3, 2))))
			},
		},
		{"attention", []int{2, 5, 4}, []int{2, 5, 4}, func(x, w *mlx.Node) *mlx.Node {
			s := mlx.Reshape(mlx.MatMul(x, mlx.Transpose(w, 0, 2, 1)), 10, 5)
			s = mlx.Softmax(mlx.Add(s, mlx.Tile(mlx.CausalMask(x, 0, 5, 0, 5, 0), 2)))
			return mlx.MatMul(mlx.Reshape(s, 2, 5, 5), w)
		}},
	} {
		t.Run(test.name, func(t *testing.T) { checkGradient(t, test.x, test.w, test.f) })
	}
}

func checkGradient(t *testing.T, xDims, wDims []int, f func(x, w *mlx.Node) *mlx.Node) {
	e, rng := mlx.New("go"), rand.New(rand.NewPCG(7, 8))
	values := func(dims []int) []float32 {
		n := 1
		for _, d := range dims {
			n *= d
		}
		return normal(rng, n)
	}
	loss := func(in []*mlx.Node) *mlx.Node {
		y := f(in[0], in[1])
		return mlx.Sum(mlx.Mul(y, mlx.Square(y))) // a gradient that differs between the elements of y
	}
	x, w := values(xDims), values(wDims)
	both, err := e.Func("gradient", func(in []*mlx.Node) []*mlx.Node { return mlx.Gradient(loss(in), in...) }).
		Call(upload(t, e, x, xDims...), upload(t, e, w, wDims...))
	if err != nil {
		t.Fatal(err)
	}
	cubes := e.Func("loss", func(in []*mlx.Node) []*mlx.Node { return []*mlx.Node{loss(in)} })
	for k, flat := range [][]float32{x, w} {
		got := make([]float32, len(flat))
		if err := both[k].Read(got); err != nil {
			t.Fatal(err)
		}
		both[k].Free()
		for i := range flat {
			const h = 1.0 / 16
			at := func(d float32) float64 {
				old := flat[i]
				flat[i] += d
				defer func() { flat[i] = old }()
				return float64(call(t, cubes, upload(t, e, x, xDims...), upload(t, e, w, wDims...))[0])
			}
			want := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h) // to the fourth order of h
			if math.Abs(float64(got[i])-want) > 2e-3*(1+math.Abs(want)) {
				t.Errorf("argument %d: derivative %d is %g, differences give %g", k, i, got[i], want)
			}
		}
	}
}

// TestGradientOfSteps checks that rounding has the gradient zero, which lets a straight-through estimator go past it.
func TestGradientOfSteps(t *testing.T) {
	e := mlx.New("go")
	x := upload(t, e, []float32{-1.5, 0.2, 3.7}, 3)
	for name, f := range map[string]func(*mlx.Node) *mlx.Node{"round": mlx.Round, "floor": mlx.Floor} {
		got := call(t, e.Func(name, func(in []*mlx.Node) []*mlx.Node {
			return mlx.Gradient(mlx.Sum(mlx.Add(in[0], f(mlx.Scale(in[0], 2)))), in[0])
		}), x)
		for _, g := range got {
			if g != 1 {
				t.Errorf("%s: gradient %v, want ones", name, got)
				break
			}
		}
	}
}

func TestStopGradient(t *testing.T) {
	e := mlx.New("go")
	got := call(t, e.Func("stop", func(in []*mlx.Node) []*mlx.Node {
		return mlx.Gradient(mlx.Sum(mlx.Mul(in[0], mlx.StopGradient(in[0]))), in[0])
	}), upload(t, e, []float32{2, 3}, 2))
	if got[0] != 2 || got[1] != 3 {
		t.Errorf("got %v, want 2 and 3", got)
	}
}

// TestGradientOfProductIsQuick guards against the gradient that GoMLX comes with, which for this product takes a
// tensor of 512³ elements and most of a minute.
func TestGradientOfProductIsQuick(t *testing.T) {
	const n = 512
	e, rng := mlx.New("go"), rand.New(rand.NewPCG(9, 10))
	a, b := upload(t, e, normal(rng, n*n), n, n), upload(t, e, normal(rng, n*n), n, n)
	f := e.Func("gradient", func(in []*mlx.Node) []*mlx.Node {
		return mlx.Gradient(mlx.Sum(mlx.Square(mlx.MatMul(in[0], in[1]))), in...)
	})
	start := time.Now() //nolint:forbidigo // a test of speed
	call(t, f, a, b)
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}
