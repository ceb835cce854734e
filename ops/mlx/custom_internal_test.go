package mlx

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExps checks the exponential over all of its range, and where it ends.
func TestExps(t *testing.T) {
	worst := 0.0
	for v := float32(-87); v <= 88.3; v += 0.0037 {
		x := []float32{v}
		exps(x)
		worst = max(worst, math.Abs(float64(x[0])/math.Exp(float64(v))-1))
	}
	if !(worst < 2e-7) {
		t.Errorf("relative error of up to %g", worst)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := []float32{0, -87.1, -1e30, -inf, 89, inf, nan}
	exps(x)
	for i, want := range []float32{1, 0, 0, 0, inf, inf, nan} {
		if x[i] != want && !(x[i] != x[i] && want != want) {
			t.Errorf("exponential %d is %g, want %g", i, x[i], want)
		}
	}
}

// TestSoftmaxExtremes checks rows with masked, huge and broken values.
func TestSoftmaxExtremes(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, test := range []struct{ x, want []float32 }{
		{[]float32{-inf, 3, -inf}, []float32{0, 1, 0}},
		{[]float32{3e38, 3e38, -3e38}, []float32{0.5, 0.5, 0}},
		{[]float32{1, nan}, []float32{nan, nan}},
		{[]float32{nan, 1}, []float32{nan, nan}},
		{[]float32{1, inf}, []float32{nan, nan}},
	} {
		got := make([]float32, len(test.x))
		softmax(got, test.x)
		for i, want := range test.want {
			if broken := want != want; broken && anyNaN(got) {
				continue
			}
			if got[i] != want {
				t.Errorf("softmax of %v is %v, want %v", test.x, got, test.want)
			}
		}
	}
}

func anyNaN(x []float32) bool {
	for _, v := range x {
		if v != v {
			return true
		}
	}
	return false
}

func BenchmarkExps(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	from, x := make([]float32, 4096), make([]float32, 4096)
	for i := range from {
		from[i] = float32(-5 * rng.Float64())
	}
	b.SetBytes(int64(len(x)) * 4)
	for b.Loop() {
		copy(x, from)
		exps(x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/exp")
}
