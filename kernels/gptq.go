package kernels

import (
	"fmt"
	"math"
)

// A GPTQ quantizes rows of weights against one Hessian: column after column, each corrected
// for the errors of those before it. One GPTQ serves all tensors that share an input; it may be
// used from several goroutines at once.
//
// Source: quant-methods.md 1c, the form with one reversed Cholesky factor and no inverse.
type GPTQ struct {
	tile[float32]
	n     int
	unit  mat[float32] // [n, n], R with each column divided by its diagonal element
	diag2 []float64    // squares of the diagonal of R
}

// NewGPTQ makes a GPTQ of the factor R that ReverseCholesky gives of the damped Hessian.
//
//	r  [n, n], upper triangular, zeros below; it becomes the GPTQ's own and is overwritten
//	n  a multiple of Group
func NewGPTQ(r []float32, n int) *GPTQ { return newGPTQ(tile32, r, n) }

func newGPTQ(t tile[float32], r []float32, n int) *GPTQ {
	wantMultiple("GPTQ width", n, Group)
	wantLen("GPTQ factor", len(r), n*n)
	g := &GPTQ{tile: t, n: n, unit: mat[float32]{r, n, 1}, diag2: make([]float64, n)}
	diag := make([]float32, n)
	for j := range diag {
		diag[j] = r[j*(n+1)]
		g.diag2[j] = float64(diag[j]) * float64(diag[j])
	}
	for i := range n {
		row := r[i*n:][:n]
		for j := i; j < n; j++ {
			row[j] /= diag[j]
		}
	}
	return g
}

// Quantize writes the codes and scales of the rows of w and returns the loss Σ((W−Q)R)², which
// is tr((W−Q) H (W−Q)ᵀ) with the damped H.
//
//	codes   [rows, n], each −1, 0 or 1
//	scales  [rows, n/Group], binary16 bits
//	w       [rows, n]
//
// Rows are independent: what becomes of one depends neither on the others nor on threads. The
// scale of a group is that of FitGroup for the weights that would be best if the group were
// not quantized, given the errors before it. The error names a row and group with a weight that
// is not finite or a scale over 65504.
//
// It takes about 70 MB of memory, or 256 rows if they are more.
func (g *GPTQ) Quantize(codes []int8, scales []uint16, w []float32, threads int) (loss float64, err error) {
	n := g.n
	wantMultiple("GPTQ weights", len(w), n)
	wantLen("GPTQ codes", len(codes), len(w))
	wantLen("GPTQ scales", len(scales), len(w)/Group)
	rows := len(w) / n
	chunk := min(roundUp(max(1<<24/n, 256), tileRows), roundUp(rows, tileRows))
	c := gptqRows{GPTQ: g, err: make([]float32, chunk*(n+pad)), target: make([]float32, chunk*Group)}
	losses := make([]float64, rows)
	for first := 0; first < rows; first += chunk {
		c.rows = min(chunk, rows-first)
		end := first + c.rows
		c.w, c.codes, c.scales = w[first*n:end*n], codes[first*n:end*n], scales[first*n/Group:end*n/Group]
		c.losses = losses[first:end]
		if i, err := c.run(threads); err != nil {
			return 0, fmt.Errorf("row %d, %w", first+i, err)
		}
	}
	return sum(losses), nil
}

// pad keeps rows of errors a little more than a power of two apart, so that they do not
// share cache sets.
const pad = 16

// gptqRows is a chunk of rows that are quantized together, group after group.
type gptqRows struct {
	*GPTQ
	rows   int
	w      []float32 // [rows, n]
	codes  []int8
	scales []uint16
	losses []float64 // [rows]

	err    []float32 // [rows, n+pad]: W−Q, of the groups that are done
	target []float32 // [rows, Group]: the group, corrected for the errors of those before
}

// run quantizes the rows; an error comes with its row.
func (c *gptqRows) run(threads int) (row int, err error) {
	tiles := roundUp(c.rows, tileRows) / tileRows
	errs := make([]error, tiles*tileRows)
	for begin := 0; begin < c.n; begin += Group {
		parallel(threads, c.rows, func(i int) { copy(c.target[i*Group:][:Group], c.w[i*c.n+begin:]) })
		past := mat[float32]{c.err, c.n + pad, 1}
		c.gemm(c.target, Group, past, c.unit.from(0, begin), shape{c.rows, Group, begin}, threads, false)
		tile := func() *gptqTile { return &gptqTile{gptqRows: c, begin: begin} }
		parallelWith(threads, tiles, tile, func(t *gptqTile, i int) {
			t.run(i*tileRows, (*[tileRows]error)(errs[i*tileRows:]))
		})
		for i, err := range errs {
			if err != nil {
				return i, fmt.Errorf("group %d: %w", begin/Group, err)
			}
		}
	}
	return 0, nil
}

// gptqTile is one group of up to four rows. Rows that are missing are zero.
type gptqTile struct {
	*gptqRows
	first, begin int

	w, t   [tileRows * Group]float32 // weights, and what is left to represent
	v      [tileRows * Group]float32 // as t, for the search of the scale
	codes  [tileRows * Group]int8
	e      [tileRows]float32 // errors of the current column
	scales [tileRows]float32
}

// run quantizes the tile that starts at row first and leaves errors of rows in errs.
func (t *gptqTile) run(first int, errs *[tileRows]error) {
	t.first = first
	rows := min(tileRows, t.rows-first)
	if rows < tileRows {
		clear(t.w[:])
		clear(t.t[:])
	}
	for r := range rows {
		copy(t.w[r*Group:][:Group], t.gptqRows.w[(t.first+r)*t.n+t.begin:])
	}
	copy(t.t[:], t.target[t.first*Group:][:rows*Group])
	t.free()
	for r := range rows {
		s, err := fitScale(t.v[r*Group:][:Group])
		t.gptqRows.scales[((t.first+r)*t.n+t.begin)/Group] = s
		t.scales[r], errs[r] = HalfToFloat(s), err
	}
	losses := t.quantize()
	for r := range rows {
		t.losses[t.first+r] += losses[r]
		copy(t.gptqRows.codes[(t.first+r)*t.n+t.begin:], t.codes[r*Group:][:Group])
	}
}

// rest returns, of the row of unit for column j, the group's columns from j on and up to 15
// before, which are zero; offset is where they start in the group.
func (t *gptqTile) rest(j int) (unit []float32, offset int) {
	offset = j &^ 15
	return t.unit.x[(t.begin+j)*t.n+t.begin+offset:][:Group-offset], offset
}

// free fills v with the weights that would be best if the group were not quantized: their
// errors solve a triangular system.
func (t *gptqTile) free() {
	for i := range t.v {
		t.v[i] = t.t[i] - t.w[i]
	}
	var x [tileRows * Group]float32
	for j := range Group {
		for r := range tileRows {
			x[r*Group+j] = t.v[r*Group+j]
			t.e[r] = -x[r*Group+j]
		}
		unit, offset := t.rest(j)
		t.add(t.v[offset:], Group, &t.e, unit)
	}
	for i := range t.v {
		t.v[i] = t.w[i] + x[i]
	}
}

// quantize chooses the codes of the tile, column after column, and returns the loss of each row.
func (t *gptqTile) quantize() (losses [tileRows]float64) {
	for j := range Group {
		for r := range tileRows {
			i := r*Group + j
			x := t.t[i]
			c, q := nearest(x, t.scales[r])
			t.codes[i] = c
			t.e[r] = t.w[i] - q
			d := float64(x - q)
			losses[r] += t.diag2[t.begin+j] * d * d
			t.err[(t.first+r)*(t.n+pad)+t.begin+j] = t.e[r]
		}
		unit, offset := t.rest(j)
		t.add(t.t[offset:], Group, &t.e, unit)
	}
	return losses
}

// nearest returns the best code of x for a scale, and code times scale, without branches: they
// would be mispredicted half of the time.
func nearest(x, scale float32) (code int8, q float32) {
	u := math.Float32bits(x)
	half := math.Float32bits(scale / 2)
	// All ones if |x| > half and the scale is not zero.
	outer := uint32(int32(half-u&0x7fffffff)>>31) & uint32(-int32(half)>>31)
	negative := uint32(int32(u) >> 31)
	code = int8((negative | 1) & outer)
	return code, math.Float32frombits((math.Float32bits(scale) | u&0x80000000) & outer)
}
