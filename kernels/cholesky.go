package kernels

import (
	"fmt"
	"math"
)

// A NotPositiveError says that a matrix has no Cholesky factor.
type NotPositiveError struct {
	Column int     // where the factorization stopped; it runs from the last column to the first
	Pivot  float64 // what should have been positive; NaN or infinite if the matrix is not finite
}

func (e *NotPositiveError) Error() string {
	if math.IsNaN(e.Pivot) || math.IsInf(e.Pivot, 0) {
		return fmt.Sprintf("matrix is not finite in column %d", e.Column)
	}
	return fmt.Sprintf("matrix is not positive definite: pivot %g in column %d", e.Pivot, e.Column)
}

// ReverseCholesky replaces the symmetric matrix h by the upper triangular R with h = R Rᵀ.
// Below the diagonal it writes zeros.
//
//	h  [n, n]; only the diagonal and what is above it are read
//
// The error is a *NotPositiveError; h is then undefined. An element that is not finite is
// reported in one of its two columns.
//
// Source: quant-methods.md 1c.
func ReverseCholesky[F float32 | float64](h []F, n, threads int) error {
	wantLen("ReverseCholesky input", len(h), n*n)
	switch h := any(h).(type) {
	case []float32:
		return cholesky(tile32, h, n, threads)
	case []float64:
		return cholesky(tile64, h, n, threads)
	}
	panic("unreachable")
}

// cholBlock is how many columns are factored at a time.
const cholBlock = 128

// cholesky is ReverseCholesky with a given micro-kernel. It takes blocks of columns from last to
// first, and subtracts from each what the blocks after it contribute.
func cholesky[F float](t tile[F], h []F, n, threads int) error {
	past := make([]F, n*min(n, cholBlock))
	for end := n; end > 0; end -= cholBlock {
		c := cholColumns[F]{tile: t, h: mat[F]{h, n, 1}, begin: max(0, end-cholBlock), end: end, past: past}
		clear(past)
		right := c.h.from(0, min(end, n-1))
		t.gemm(past, c.width(), right, c.h.from(c.begin, min(end, n-1)).t(), shape{end, c.width(), n - end}, threads, false)
		if err := c.factor(); err != nil {
			return err
		}
		c.turn()
		parallelWith(threads, roundUp(c.begin, tileRows)/tileRows, newCholTile[F], func(t *cholTile[F], i int) {
			c.solve(t, i*tileRows)
		})
		c.clearBelow()
	}
	return nil
}

// cholColumns is a block of columns of a matrix that is being factored.
type cholColumns[F float] struct {
	tile[F]
	h          mat[F]
	begin, end int
	past       []F // [end, width]: what later columns contribute
	turned     []F // [cholBlock, cholBlock]: the transpose of the block on the diagonal, without that
}

func (c *cholColumns[F]) width() int { return c.end - c.begin }

// row returns row i of the block.
func (c *cholColumns[F]) row(i int) []F { return c.h.x[i*c.h.rs+c.begin:][:c.width()] }

// factor factors the square on the diagonal.
func (c *cholColumns[F]) factor() error {
	w := c.width()
	for i := range w {
		row := c.row(c.begin + i)
		for j := i; j < w; j++ {
			row[j] -= c.past[(c.begin+i)*w+j]
		}
	}
	for j := w - 1; j >= 0; j-- {
		right := c.row(c.begin + j)[j:]
		pivot := right[0] - dotOf(right[1:], right[1:])
		if good := pivot > 0 && !math.IsInf(float64(pivot), 0); !good { // NaN is not above 0
			return &NotPositiveError{Column: c.begin + j, Pivot: float64(pivot)}
		}
		right[0] = F(math.Sqrt(float64(pivot)))
		for i := range j {
			up := c.row(c.begin + i)[j:]
			up[0] = (up[0] - dotOf(up[1:], right[1:])) / right[0]
		}
	}
	return nil
}

// dotOf returns the inner product of x and y.
func dotOf[F float](x, y []F) F {
	var s0, s1 F
	for ; len(x) >= 2 && len(y) >= 2; x, y = x[2:], y[2:] {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
	}
	if len(x) > 0 {
		s0 += x[0] * y[0]
	}
	return s0 + s1
}

// turn fills turned.
func (c *cholColumns[F]) turn() {
	c.turned = make([]F, cholBlock*cholBlock)
	for i := range c.width() {
		for j, v := range c.row(c.begin + i)[i+1:] {
			c.turned[(i+1+j)*cholBlock+i] = v
		}
	}
}

// A cholTile holds rows of a block while they are solved for.
type cholTile[F float] struct {
	y [tileRows * cholBlock]F
	e [tileRows]F
}

func newCholTile[F float]() *cholTile[F] { return new(cholTile[F]) }

// solve computes up to four rows of the factor, from row first on, above the square.
func (c *cholColumns[F]) solve(t *cholTile[F], first int) {
	w := c.width()
	rows := min(tileRows, c.begin-first)
	for r := range rows {
		for j, v := range c.row(first + r) {
			t.y[r*cholBlock+j] = v - c.past[(first+r)*w+j]
		}
	}
	for j := w - 1; j >= 0; j-- {
		d := c.h.x[(c.begin+j)*(c.h.rs+1)]
		for r := range rows {
			x := t.y[r*cholBlock+j] / d
			c.row(first + r)[j] = x
			t.e[r] = -x
		}
		c.add(t.y[:], cholBlock, &t.e, c.turned[j*cholBlock:][:roundUp(j, 16)])
	}
}

// clearBelow writes the zeros left of the diagonal.
func (c *cholColumns[F]) clearBelow() {
	for i := c.begin; i < c.end; i++ {
		clear(c.h.x[i*c.h.rs:][:i])
	}
}
