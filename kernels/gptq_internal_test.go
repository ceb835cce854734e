package kernels

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// classicGPTQ quantizes one row the way the paper does (arXiv 2210.17323, algorithm 1), with the
// upper Cholesky factor u of the inverse Hessian, in float64: an implementation that shares
// nothing with Quantize but the fit of a group.
func classicGPTQ(codes []int8, scales []uint16, w []float32, u []float64, n int) error {
	x := make([]float64, n)
	for i, v := range w {
		x[i] = float64(v)
	}
	group := make([]float32, Group)
	for j := range n {
		if j%Group == 0 {
			for i := range group {
				group[i] = float32(x[j+i])
			}
			s, err := FitGroup(codes[j:j+Group], group)
			if err != nil {
				return err
			}
			scales[j/Group] = s
		}
		s := float64(HalfToFloat(scales[j/Group]))
		codes[j] = 0
		if math.Abs(x[j]) > s/2 {
			codes[j] = int8(math.Copysign(1, x[j]))
		}
		e := (x[j] - float64(codes[j])*s) / u[j*n+j]
		for i := j; i < n; i++ {
			x[i] -= e * u[j*n+i]
		}
	}
	return nil
}

// classicInverse returns the upper triangular U with UᵀU = H⁻¹, by Gauss and Jordan.
func classicInverse(h []float64, n int) []float64 {
	a, inv := slices.Clone(h), make([]float64, n*n)
	for i := range n {
		inv[i*(n+1)] = 1
	}
	for c := range n {
		p := a[c*n+c]
		for j := range n {
			a[c*n+j] /= p
			inv[c*n+j] /= p
		}
		for r := range n {
			if f := a[r*n+c]; r != c && f != 0 {
				for j := range n {
					a[r*n+j] -= f * a[c*n+j]
					inv[r*n+j] -= f * inv[c*n+j]
				}
			}
		}
	}
	return upperFactor(inv, n)
}

// upperFactor returns the upper triangular U with UᵀU = a.
func upperFactor(a []float64, n int) []float64 {
	u := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			s := a[i*n+j]
			for l := range i {
				s -= u[l*n+i] * u[l*n+j]
			}
			if i == j {
				u[i*n+i] = math.Sqrt(s)
			} else {
				u[i*n+j] = s / u[i*n+i]
			}
		}
	}
	return u
}

func TestGPTQIsClassicGPTQ(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n, rows int
		ridge   float64
	}{
		"one group":      {n: 128, rows: 33, ridge: 1e-2},
		"three groups":   {n: 384, rows: 18, ridge: 1e-2},
		"little damping": {n: 256, rows: 21, ridge: 1e-5},
	} {
		h := gram(7, 3*c.n, c.n, c.ridge)
		u := classicInverse(h, c.n)
		w := normals[float32](8, c.rows*c.n)
		want, wantScales := make([]int8, len(w)), make([]uint16, len(w)/Group)
		for i := range c.rows {
			err := classicGPTQ(want[i*c.n:(i+1)*c.n], wantScales[i*c.n/Group:], w[i*c.n:(i+1)*c.n], u, c.n)
			if err != nil {
				t.Fatal(err)
			}
		}
		eachTile(t, tiles32(), func(t *testing.T, tile tile[float32]) {
			codes, scales, loss := quantize(t, tile, h, w, c.n, 2)
			if d := differences(codes, want); d > 0 {
				t.Errorf("%s: %d of %d codes differ", name, d, len(codes))
			}
			if d := differences(scales, wantScales); d > 0 {
				t.Errorf("%s: %d of %d scales differ", name, d, len(scales))
			}
			if e := errorEnergy(codes, scales, w, h, c.n); math.Abs(loss-e) > 1e-4*e {
				t.Errorf("%s: loss %g, want %g", name, loss, e)
			}
		})
	}
}

// quantize runs a GPTQ with the given micro-kernel on a Hessian h.
func quantize(t *testing.T, tile tile[float32], h []float64, w []float32, n, threads int) ([]int8, []uint16, float64) {
	t.Helper()
	r := make([]float32, n*n)
	for i, v := range h {
		r[i] = float32(v)
	}
	if err := cholesky(tile, r, n, threads); err != nil {
		t.Fatal(err)
	}
	codes, scales := make([]int8, len(w)), make([]uint16, len(w)/Group)
	loss, err := newGPTQ(tile, r, n).Quantize(codes, scales, w, threads)
	if err != nil {
		t.Fatal(err)
	}
	return codes, scales, loss
}

func differences[T comparable](a, b []T) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// errorEnergy returns tr((W−Q) H (W−Q)ᵀ) in float64.
func errorEnergy(codes []int8, scales []uint16, w []float32, h []float64, n int) (sum float64) {
	e := make([]float64, n)
	for first := 0; first < len(w); first += n {
		for j := range e {
			i := first + j
			e[j] = float64(w[i]) - float64(codes[i])*float64(HalfToFloat(scales[i/Group]))
		}
		for i := range n {
			for j := range n {
				sum += e[i] * h[i*n+j] * e[j]
			}
		}
	}
	return sum
}

func TestGPTQThreads(t *testing.T) {
	t.Parallel()
	const n, rows = 256, 517
	h, w := gram(1, 2*n, n, 1e-2), normals[float32](2, n*rows)
	eachTile(t, tiles32(), func(t *testing.T, tile tile[float32]) {
		codes, scales, loss := quantize(t, tile, h, w, n, 1)
		for _, threads := range []int{0, 2, 3, 16} {
			c, s, l := quantize(t, tile, h, w, n, threads)
			if !slices.Equal(c, codes) || !slices.Equal(s, scales) || l != loss {
				t.Errorf("%d threads: another result than with one", threads)
			}
		}
		part, _, _ := quantize(t, tile, h, w[5*n:], n, 1)
		if !slices.Equal(part, codes[5*n:]) {
			t.Error("rows from the sixth on: another result than with all rows")
		}
	})
}

func TestGPTQBeatsRounding(t *testing.T) {
	t.Parallel()
	const n, rows = 256, 16
	h, w := gram(1, 4*n, n, 1e-2), normals[float32](2, n*rows)
	codes, scales, _ := quantize(t, tile32, h, w, n, 1)
	rounded, roundedScales := make([]int8, len(w)), make([]uint16, len(scales))
	for i := range scales {
		s, err := FitGroup(rounded[i*Group:(i+1)*Group], w[i*Group:(i+1)*Group])
		if err != nil {
			t.Fatal(err)
		}
		roundedScales[i] = s
	}
	gptq, rtn := errorEnergy(codes, scales, w, h, n), errorEnergy(rounded, roundedScales, w, h, n)
	if gptq > 0.8*rtn {
		t.Errorf("loss %g, rounding to nearest has %g", gptq, rtn)
	}
}

func TestGPTQErrors(t *testing.T) {
	t.Parallel()
	const n, rows = 256, 7
	for name, c := range map[string]struct {
		at    int
		value float32
		want  string
	}{
		"NaN":      {at: 5*n + 130, value: float32(math.NaN()), want: "row 5, group 1: weight is not finite"},
		"infinity": {at: 3, value: float32(math.Inf(1)), want: "row 0, group 0: weight is not finite"},
		"large":    {at: 6*n + 3, value: 1e6, want: "row 6, group 0: scale"},
	} {
		r := make([]float32, n*n)
		for i := range n {
			r[i*(n+1)] = 1
		}
		w := normals[float32](1, rows*n)
		w[c.at] = c.value
		_, err := NewGPTQ(r, n).Quantize(make([]int8, rows*n), make([]uint16, rows*n/Group), w, 2)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s…", name, err, c.want)
		}
	}
}

func TestGPTQPanicsOnWrongLengths(t *testing.T) {
	t.Parallel()
	r := make([]float32, 128*128)
	for i, f := range []func(){
		func() { NewGPTQ(r[1:], 128) },
		func() { NewGPTQ(r[:64*64], 64) },
		func() { _, _ = NewGPTQ(r, 128).Quantize(make([]int8, 128), make([]uint16, 1), make([]float32, 129), 1) },
		func() { _, _ = NewGPTQ(r, 128).Quantize(make([]int8, 127), make([]uint16, 1), make([]float32, 128), 1) },
		func() { _, _ = NewGPTQ(r, 128).Quantize(make([]int8, 128), nil, make([]float32, 128), 1) },
	} {
		if !panics(f) {
			t.Errorf("call %d: no panic", i)
		}
	}
}
