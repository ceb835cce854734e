package kernels

import "fmt"

// SGEMM adds the product of two matrices to a third: C += A·B.
//
//	c  [m, n]; element (i, j) at c[i*ldc+j]
//	a  [m, k]; element (i, l) at a[i*ars+l*acs]
//	b  [k, n]; element (l, j) at b[l*brs+j*bcs]
//
// Each element is a sum in the order of l, in runs of fixed length, so that its bits depend
// neither on threads nor on where the element stands. Its error is at most
// 2⁻²⁴·(k+2)·(Σ|a||b| + |c|).
//
// It is fastest where rows of B, or its columns, are contiguous; A may be transposed at little cost.
func SGEMM(c []float32, ldc int, a []float32, ars, acs int, b []float32, brs, bcs int, m, n, k int, threads int) {
	tile32.gemm(c, ldc, mat[float32]{a, ars, acs}, mat[float32]{b, brs, bcs}, shape{m, n, k}, threads, false)
}

// tile32 and tile64 are the micro-kernels in use.
var (
	tile32 = last(tiles32()).f
	tile64 = last(tiles64()).f
)

// tiles32 lists the micro-kernels for float32, the plainest first.
func tiles32() []impl[tile[float32]] {
	return append([]impl[tile[float32]]{{"go", true, tileGo[float32]()}}, simdTiles32()...)
}

// tiles64 is tiles32 for float64.
func tiles64() []impl[tile[float64]] {
	return append([]impl[tile[float64]]{{"go", true, tileGo[float64]()}}, simdTiles64()...)
}

type float interface{ float32 | float64 }

// A mat is a matrix in a slice: element (i, j) at x[i*rs+j*cs].
type mat[F float] struct {
	x      []F
	rs, cs int
}

// from returns m without its first i rows and j columns.
func (m mat[F]) from(i, j int) mat[F] { return mat[F]{m.x[i*m.rs+j*m.cs:], m.rs, m.cs} }

// t returns the transpose of m.
func (m mat[F]) t() mat[F] { return mat[F]{m.x, m.cs, m.rs} }

// need panics unless m, called what, has the given number of rows and columns.
func (m mat[F]) need(what string, rows, cols int) {
	if m.rs < 0 || m.cs < 0 || (rows-1)*m.rs+(cols-1)*m.cs >= len(m.x) {
		panic(fmt.Sprintf("kernels: matrix %s of length %d with strides %d and %d is not %d by %d",
			what, len(m.x), m.rs, m.cs, rows, cols))
	}
}

// A shape is that of a product of an m×k and a k×n matrix.
type shape struct{ m, n, k int }

// tileRows is how many rows a micro-kernel computes.
const tileRows = 4

// A tile is a micro-kernel for four rows and some columns of a product.
type tile[F float] struct {
	cols int

	// mul adds to c, whose rows are ldc apart, the product of k columns of a and k rows of b.
	// Each element is summed from zero in the order of k and then added to c. Element (i, l)
	// of a is at i*ars+l*acs, element (l, j) of b at l*cols+j.
	mul func(k int, a []F, ars, acs int, b, c []F, ldc int)

	// add adds e[i]·x to row i of y, whose rows are ldy apart. len(x) is a multiple of 16.
	add func(y []F, ldy int, e *[tileRows]F, x []F)
}

// Sizes of the blocks of a product, in elements. A run of 256 rows of B, 32 wide, fits the
// first-level cache; a panel of B, or a block of A and its share of C, the second.
const (
	runLen    = 384
	panelCols = 1024
	blockRows = 192
)

// A product is one run of one panel of a gemm.
type product[F float] struct {
	tile[F]
	shape
	c, a, b mat[F]
	lower   int // columns below lower+row need not be computed
	panel   []F // B, in strips of cols columns
}

// gemm is SGEMM for this micro-kernel. With upper, elements below the diagonal of c need not
// be computed, and are undefined.
func (t tile[F]) gemm(c []F, ldc int, a, b mat[F], s shape, threads int, upper bool) {
	if s.m <= 0 || s.n <= 0 || s.k <= 0 {
		return
	}
	cm := mat[F]{c, ldc, 1}
	cm.need("C", s.m, s.n)
	a.need("A", s.m, s.k)
	b.need("B", s.k, s.n)
	panel := make([]F, roundUp(min(s.n, panelCols), t.cols)*min(s.k, runLen))
	for j := 0; j < s.n; j += panelCols {
		for l := 0; l < s.k; l += runLen {
			p := product[F]{
				tile: t, shape: shape{s.m, min(s.n-j, panelCols), min(s.k-l, runLen)},
				c: cm.from(0, j), a: a.from(0, l), b: b.from(l, j), lower: -s.m, panel: panel,
			}
			if upper {
				p.lower = -j
			}
			p.run(threads)
		}
	}
}

// roundUp returns the least multiple of unit that is n or more.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// run computes the product: first the panel, then all blocks of rows, in several pieces each if
// there are too few to keep all threads busy.
func (p *product[F]) run(threads int) {
	strips := roundUp(p.n, p.cols) / p.cols
	parallel(threads, strips, func(s int) {
		j := s * p.cols
		pack(p.panel[j*p.k:(j+p.cols)*p.k], p.b.from(0, j), p.k, min(p.cols, p.n-j), p.cols)
	})
	blocks := roundUp(p.m, blockRows) / blockRows
	pieces := 1
	if w := workers(threads, strips); w > 1 {
		pieces = min(strips, (3*w+blocks-1)/blocks)
	}
	parallelWith(threads, blocks*pieces, p.newScratch, func(s scratch[F], i int) {
		first, piece := i/pieces*blockRows, i%pieces
		p.block(s, first, piece*strips/pieces*p.cols, (piece+1)*strips/pieces*p.cols)
	})
}

// A scratch is what one goroutine needs for blocks of a product.
type scratch[F float] struct {
	a    []F // rows of A, in strips of tileRows rows
	edge []F // a tile that stands out of C
}

func (p *product[F]) newScratch() scratch[F] {
	return scratch[F]{make([]F, min(blockRows, roundUp(p.m, tileRows))*p.k), make([]F, tileRows*p.cols)}
}

// block computes columns [j0, j1) of up to blockRows rows from row first on. Rows of A that are
// contiguous are read where they are: packing them would not pay.
func (p *product[F]) block(s scratch[F], first, j0, j1 int) {
	rows := min(blockRows, p.m-first)
	inPlace := 0
	if p.a.cs == 1 {
		inPlace = rows / tileRows * tileRows
	}
	if inPlace < rows {
		packStrips(s.a[inPlace*p.k:], p.a.from(first+inPlace, 0).t(), p.k, rows-inPlace)
	}
	for j := j0; j < j1; j += p.cols {
		for i := 0; i < rows && p.lower+first+i < j+p.cols; i += tileRows {
			if i < inPlace {
				p.element(s.edge, first+i, j, p.a.from(first+i, 0))
			} else {
				p.element(s.edge, first+i, j, mat[F]{s.a[i*p.k:], 1, tileRows})
			}
		}
	}
}

// element computes the tile at row i and column j from its rows of A.
func (p *product[F]) element(edge []F, i, j int, a mat[F]) {
	b := p.panel[j*p.k : (j+p.cols)*p.k]
	h, w := min(tileRows, p.m-i), min(p.cols, p.n-j)
	if h == tileRows && w == p.cols {
		p.mul(p.k, a.x, a.rs, a.cs, b, p.c.x[i*p.c.rs+j:], p.c.rs)
		return
	}
	clear(edge)
	p.mul(p.k, a.x, a.rs, a.cs, b, edge, p.cols)
	for y := range h {
		c := p.c.x[(i+y)*p.c.rs+j:][:w]
		for x := range c {
			c[x] += edge[y*p.cols+x]
		}
	}
}
