package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// normals returns n draws from the normal distribution.
func normals[F float](seed uint64, n int) []F {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]F, n)
	for i := range x {
		x[i] = F(r.NormFloat64())
	}
	return x
}

// eachTile runs test for every micro-kernel that this machine can run.
func eachTile[F float](t *testing.T, tiles []impl[tile[F]], test func(t *testing.T, k tile[F])) {
	for _, impl := range tiles {
		t.Run(fmt.Sprintf("%T/impl=%s", F(0), impl.name), func(t *testing.T) {
			if !impl.usable {
				t.Skip("this CPU lacks", impl.name)
			}
			test(t, impl.f)
		})
	}
}

func TestGEMM(t *testing.T) {
	t.Parallel()
	eachTile(t, tiles32(), func(t *testing.T, k tile[float32]) { testGEMM(t, k, 0x1p-24) })
	eachTile(t, tiles64(), func(t *testing.T, k tile[float64]) { testGEMM(t, k, 0x1p-53) })
}

// testGEMM compares products of many shapes with sums in float64, within the bound in the doc comment
// of SGEMM; for float64 both sides round, hence twice that.
func testGEMM[F float](t *testing.T, tile tile[F], eps float64) {
	for n := 1; n <= 256; n++ {
		checkGEMM(t, tile, shape{n%9 + 1, n, n % 7}, eps)
		checkGEMM(t, tile, shape{n, n%37 + 1, n%5 + 1}, eps)
		checkGEMM(t, tile, shape{n%6 + 1, n%35 + 1, n}, eps)
	}
	for _, s := range []shape{
		{201, 70, 390}, {blockRows + 1, panelCols + 33, 5}, {2*blockRows + 3, 31, runLen + 1}, {1, 1, 3*runLen + 7},
	} {
		checkGEMM(t, tile, s, eps)
	}
}

func checkGEMM[F float](t *testing.T, tile tile[F], s shape, eps float64) {
	t.Helper()
	for layout := range 4 {
		a := strided[F](uint64(layout), s.m, s.k, layout&1 != 0)
		b := strided[F](uint64(layout)+9, s.k, s.n, layout&2 != 0)
		ldc := s.n + layout
		c := normals[F](5, s.m*ldc)
		got := slices.Clone(c)
		tile.gemm(got, ldc, a, b, s, layout, false)
		for i := range s.m {
			for j := range ldc {
				want, bound := elementOf(c[i*ldc+j], a, b, s, i, j)
				if diff := math.Abs(float64(got[i*ldc+j]) - want); !(diff <= 2*eps*bound) {
					t.Fatalf("shape %v, layout %d: element (%d, %d) is %v, want %v ± %g", s, layout, i, j, got[i*ldc+j], want, eps*bound)
				}
			}
		}
	}
}

// elementOf returns element (i, j) of C += A·B, and the bound of its error in roundings. Columns
// from s.n on stay as they are.
func elementOf[F float](c F, a, b mat[F], s shape, i, j int) (want, bound float64) {
	want, bound = float64(c), math.Abs(float64(c))
	if j >= s.n {
		return want, 0
	}
	for l := range s.k {
		p := float64(a.from(i, l).x[0]) * float64(b.from(l, j).x[0])
		want += p
		bound += math.Abs(p)
	}
	return want, bound * float64(s.k+2)
}

// strided returns a random matrix with a stride that is larger than its rows or columns need.
func strided[F float](seed uint64, rows, cols int, transposed bool) mat[F] {
	if transposed {
		return strided[F](seed, cols, rows, false).t()
	}
	ld := max(1, cols) + int(seed)%3
	return mat[F]{normals[F](seed, max(1, rows)*ld), ld, 1}
}

// TestGEMMThreads checks that no bit depends on the number of threads, nor on which rows are
// computed together.
func TestGEMMThreads(t *testing.T) {
	t.Parallel()
	eachTile(t, tiles32(), func(t *testing.T, tile tile[float32]) {
		s := shape{403, 1100, 500}
		a, b := strided[float32](1, s.m, s.k, false), strided[float32](2, s.k, s.n, false)
		want := make([]float32, s.m*s.n)
		tile.gemm(want, s.n, a, b, s, 1, false)
		for _, threads := range []int{0, 2, 3, 7, 64} {
			got := make([]float32, s.m*s.n)
			tile.gemm(got, s.n, a, b, s, threads, false)
			if !slices.Equal(got, want) {
				t.Errorf("%d threads: other bits than with one", threads)
			}
		}
		got := make([]float32, s.m*s.n)
		for i := range s.m {
			tile.gemm(got[i*s.n:], s.n, a.from(i, 0), b, shape{1, s.n, s.k}, 1, false)
		}
		if !slices.Equal(got, want) {
			t.Error("rows one by one: other bits than at once")
		}
	})
}

// TestGEMMUpper checks that what is on and above the diagonal does not depend on the rest being left out.
func TestGEMMUpper(t *testing.T) {
	t.Parallel()
	eachTile(t, tiles64(), func(t *testing.T, tile tile[float64]) {
		s := shape{1300, 1300, 3}
		a, b := strided[float64](1, s.m, s.k, true), strided[float64](2, s.k, s.n, false)
		want, got := make([]float64, s.m*s.n), make([]float64, s.m*s.n)
		tile.gemm(want, s.n, a, b, s, 2, false)
		tile.gemm(got, s.n, a, b, s, 2, true)
		for i := range s.m {
			if !slices.Equal(got[i*(s.n+1):(i+1)*s.n], want[i*(s.n+1):(i+1)*s.n]) {
				t.Fatalf("row %d differs", i)
			}
		}
		if got[1200*s.n+3] != 0 {
			t.Error("elements far below the diagonal were computed")
		}
	})
}

// TestTileAdd compares the rank-one updates of all micro-kernels with the definition.
func TestTileAdd(t *testing.T) {
	t.Parallel()
	eachTile(t, tiles32(), func(t *testing.T, k tile[float32]) { testAdd(t, k, 0x1p-23) })
	eachTile(t, tiles64(), func(t *testing.T, k tile[float64]) { testAdd(t, k, 0x1p-52) })
}

func testAdd[F float](t *testing.T, k tile[F], eps float64) {
	for n := 0; n <= 128; n += 16 {
		x, y := normals[F](1, n), normals[F](2, 4*(n+5))
		got := slices.Clone(y)
		e := [tileRows]F{0.5, -3, 1e-3, 7}
		k.add(got, n+5, &e, x)
		for i := range y {
			row, col := i/(n+5), i%(n+5)
			want := float64(y[i])
			if col < n {
				want += float64(e[row]) * float64(x[col])
			}
			if diff := math.Abs(float64(got[i]) - want); diff > eps*(math.Abs(want)+math.Abs(float64(y[i]))) {
				t.Fatalf("n=%d: row %d, column %d is %v, want %v", n, row, col, got[i], want)
			}
		}
	}
}

func TestGEMMPanicsOnWrongLengths(t *testing.T) {
	t.Parallel()
	x := make([]float32, 12)
	for name, f := range map[string]func(){
		"C": func() { SGEMM(x[:11], 4, x, 4, 1, x, 4, 1, 3, 4, 2, 1) },
		"A": func() { SGEMM(x, 4, x[:5], 2, 1, x, 4, 1, 3, 4, 2, 1) },
		"B": func() { SGEMM(x, 4, x, 4, 1, x[:7], 4, 1, 3, 4, 2, 1) },
	} {
		if !panics(f) {
			t.Errorf("%s too short: no panic", name)
		}
	}
	SGEMM(x, 4, nil, 1, 1, nil, 1, 1, 3, 4, 0, 1) // an empty sum
}

func panics(f func()) (p bool) {
	defer func() { p = recover() != nil }()
	f()
	return false
}

func BenchmarkGEMM(b *testing.B) {
	benchGEMM(b, "f32", tiles32())
	benchGEMM(b, "f64", tiles64())
}

// benchGEMM measures one thread on squares and on the shapes of GPTQ and of XᵀX, as multiply and add
// per second.
func benchGEMM[F float](b *testing.B, kind string, tiles []impl[tile[F]]) {
	for _, impl := range tiles {
		for _, s := range []shape{{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {2048, 128, 4096}} {
			b.Run(fmt.Sprintf("type=%s/impl=%s/m=%d/n=%d/k=%d", kind, impl.name, s.m, s.n, s.k), func(b *testing.B) {
				if !impl.usable {
					b.Skip("this CPU lacks", impl.name)
				}
				x, y, z := normals[F](1, s.m*s.k), normals[F](2, s.k*s.n), make([]F, s.m*s.n)
				b.SetBytes(int64(len(x)+len(y)+len(z)) * 4)
				for b.Loop() {
					impl.f.gemm(z, s.n, mat[F]{x, s.k, 1}, mat[F]{y, s.n, 1}, s, 1, false)
				}
				b.ReportMetric(2*float64(s.m*s.n)*float64(s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
