package kernels

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// gram returns XᵀX/rows + ridge for random rows×n matrix X with unequal, dependent columns.
func gram(seed uint64, rows, n int, ridge float64) []float64 {
	x := correlated(seed, rows, n)
	h := make([]float64, n*n)
	AddGram(h, x, rows, n, 0)
	for i := range h {
		h[i] /= float64(rows)
	}
	for i := range n {
		h[i*(n+1)] += ridge
	}
	return h
}

// correlated returns a rows×n matrix whose neighbouring columns resemble each other, with scales that
// differ.
func correlated(seed uint64, rows, n int) []float32 {
	x := normals[float32](seed, rows*n)
	for i := range rows {
		row := x[i*n : (i+1)*n]
		for j := 1; j < n; j++ {
			row[j] = 0.8*row[j-1] + 0.6*row[j]
		}
		for j := range row {
			row[j] *= 0.5 + float32(j%7)/4
		}
	}
	return x
}

func TestCholesky(t *testing.T) {
	t.Parallel()
	eachTile(t, tiles32(), func(t *testing.T, k tile[float32]) { testCholesky(t, k, 0x1p-24) })
	eachTile(t, tiles64(), func(t *testing.T, k tile[float64]) { testCholesky(t, k, 0x1p-53) })
}

// testCholesky checks R Rᵀ = H within the backward error of Cholesky: n+1 roundings of the
// diagonal (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.3).
func testCholesky[F float](t *testing.T, tile tile[F], eps float64) {
	for n := 1; n <= 256; n += 1 + n/16 {
		checkCholesky(t, tile, n, eps)
	}
	for _, n := range []int{257, 384, 401} {
		checkCholesky(t, tile, n, eps)
	}
}

func checkCholesky[F float](t *testing.T, tile tile[F], n int, eps float64) {
	t.Helper()
	h := gram(uint64(n), 2*n+8, n, 1e-2)
	r := make([]F, n*n)
	for i, v := range h {
		r[i] = F(v)
		if i%n < i/n {
			r[i] = F(math.NaN()) // not to be read
		}
	}
	if err := cholesky(tile, r, n, 2); err != nil {
		t.Fatalf("n=%d: %v", n, err)
	}
	for i := range n {
		for j := range n {
			sum := 0.0
			for l := max(i, j); l < n; l++ {
				sum += float64(r[i*n+l]) * float64(r[j*n+l])
			}
			bound := 2 * float64(n+3) * eps * math.Sqrt(h[i*(n+1)]*h[j*(n+1)])
			if d := math.Abs(sum - h[min(i, j)*n+max(i, j)]); !(d <= bound) {
				t.Fatalf("n=%d: (R Rᵀ)[%d,%d] is off by %g, more than %g", n, i, j, d, bound)
			}
			if j < i && r[i*n+j] != 0 {
				t.Fatalf("n=%d: R[%d,%d] is %v, want 0", n, i, j, r[i*n+j])
			}
		}
	}
}

func TestCholeskyThreads(t *testing.T) {
	t.Parallel()
	const n = 500
	eachTile(t, tiles32(), func(t *testing.T, tile tile[float32]) {
		var want []float32
		for _, threads := range []int{1, 0, 2, 5} {
			got := make([]float32, n*n)
			for i, v := range gram(3, 2*n, n, 1e-2) {
				got[i] = float32(v)
			}
			if err := cholesky(tile, got, n, threads); err != nil {
				t.Fatal(err)
			}
			if want != nil && !slices.Equal(got, want) {
				t.Errorf("%d threads: other bits than with one", threads)
			}
			want = got
		}
	})
}

func TestCholeskyNamesTheColumn(t *testing.T) {
	t.Parallel()
	const n = 300
	for name, c := range map[string]struct {
		row, col int
		value    float64
		column   int // reported
	}{
		"negative diagonal":      {row: 200, col: 200, value: -1, column: 200},
		"zero diagonal":          {row: 0, col: 0, value: 0, column: 0},
		"dependent columns":      {row: 7, col: 150, value: 10, column: 7},
		"NaN on the diagonal":    {row: 131, col: 131, value: math.NaN(), column: 131},
		"NaN off the diagonal":   {row: 31, col: 290, value: math.NaN(), column: 31},
		"infinity":               {row: 299, col: 299, value: math.Inf(1), column: 299},
		"infinity above":         {row: 10, col: 20, value: math.Inf(-1), column: 10},
		"infinity in the corner": {row: 0, col: 299, value: math.Inf(1), column: 0},
	} {
		h := make([]float64, n*n)
		for i := range n {
			h[i*(n+1)] = 2
		}
		h[c.row*n+c.col] = c.value
		err := ReverseCholesky(h, n, 1)
		var e *NotPositiveError
		if !errors.As(err, &e) || e.Column != c.column {
			t.Errorf("%s: error %v, want one for column %d", name, err, c.column)
			continue
		}
		if e.Pivot > 0 && !math.IsInf(e.Pivot, 0) {
			t.Errorf("%s: pivot %v", name, e.Pivot)
		}
	}
}

func TestAddGram(t *testing.T) {
	t.Parallel()
	eachTile(t, tiles32(), func(t *testing.T, tile tile[float32]) {
		for _, s := range [][2]int{{1, 1}, {3, 5}, {2, 130}, {gramRows + 9, 33}, {17, gramPanel + 70}} {
			checkGram(t, tile, s[0], s[1])
		}
	})
}

// checkGram compares with sums in float64, in float32's error bound for up to gramRows products.
func checkGram(t *testing.T, tile tile[float32], rows, k int) {
	t.Helper()
	x := correlated(1, rows, k)
	h := make([]float64, k*k)
	for i := range h {
		h[i] = float64(i%k + i/k)
	}
	addGram(tile, h, x, rows, k, 2)
	for i := range k {
		for j := range k {
			want, bound := float64(i+j), 0.0
			for r := range rows {
				p := float64(x[r*k+i]) * float64(x[r*k+j])
				want += p
				bound += math.Abs(p)
			}
			bound *= 0x1p-24 * float64(min(rows, gramRows)+2)
			if d := math.Abs(h[i*k+j] - want); d > bound+1e-12*want {
				t.Fatalf("%d×%d: element (%d, %d) is off by %g, more than %g", rows, k, i, j, d, bound)
			}
			if h[i*k+j] != h[j*k+i] {
				t.Fatalf("%d×%d: element (%d, %d) is not symmetric", rows, k, i, j)
			}
		}
	}
}

func TestEnergy(t *testing.T) {
	t.Parallel()
	const rows, k = 1030, 40
	w, h := normals[float32](1, rows*k), make([]float32, k*k)
	for i, v := range gram(2, 100, k, 0) {
		h[i] = float32(v)
	}
	want := 0.0
	for r := range rows {
		for i := range k {
			for j := range k {
				want += float64(w[r*k+i]) * float64(h[i*k+j]) * float64(w[r*k+j])
			}
		}
	}
	for _, threads := range []int{1, 3} {
		if got := Energy(w, h, rows, k, threads); math.Abs(got-want) > 1e-5*want {
			t.Errorf("%d threads: energy %v, want %v", threads, got, want)
		}
	}
}
