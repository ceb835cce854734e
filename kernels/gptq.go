package kernels

import "fmt"

// A GPTQ quantizes rows of weights against one Hessian, in the order of the columns, each
// column corrected for the errors of those before it.
//
// Source: quant-methods.md 1c, the form with one reversed Cholesky factor and no inverse.
type GPTQ struct {
	n     int
	unit  []float32 // [n, n], R with each column divided by its diagonal element
	diag2 []float64 // squares of the diagonal of R
}

// NewGPTQ makes a GPTQ of the factor R that ReverseCholesky gives of the damped Hessian.
//
//	r  [n, n], upper triangular, zeros below; it becomes the GPTQ's own and is overwritten
//	n  a multiple of Group
func NewGPTQ(r []float32, n int) *GPTQ {
	wantMultiple("GPTQ width", n, Group)
	wantLen("GPTQ factor", len(r), n*n)
	g := &GPTQ{n: n, unit: r, diag2: make([]float64, n)}
	diag := make([]float32, n)
	for j := range n {
		diag[j] = r[j*n+j]
		g.diag2[j] = float64(diag[j]) * float64(diag[j])
	}
	for i := range n {
		row := r[i*n : (i+1)*n]
		for j := i; j < n; j++ {
			row[j] /= diag[j]
		}
	}
	return g
}

// QuantizeGPTQ is NewGPTQ and Quantize in one: r is overwritten.
func QuantizeGPTQ(codes []int8, scales []uint16, w, r []float32, n, threads int) (loss float64, err error) {
	return NewGPTQ(r, n).Quantize(codes, scales, w, threads)
}

// Quantize writes the codes and scales of the rows of w and returns the loss Σ((W−Q)R)²,
// which is tr((W−Q) H (W−Q)ᵀ) with the damped H.
//
//	w       [rows, n]
//	codes   [rows, n], each −1, 0 or 1
//	scales  [rows, n/Group], binary16 bits
//
// Rows are independent: codes, scales and the loss of a row depend neither on the other rows
// nor on threads. The scale of a group is that of FitGroup for the weights that would be best
// if the group were not quantized, given the errors before it. The error names the first row
// and group with a weight that is not finite or a scale over 65504.
func (g *GPTQ) Quantize(codes []int8, scales []uint16, w []float32, threads int) (loss float64, err error) {
	n := g.n
	wantMultiple("GPTQ weights", len(w), n)
	wantLen("GPTQ codes", len(codes), len(w))
	wantLen("GPTQ scales", len(scales), len(w)/Group)
	rows := len(w) / n
	losses := make([]float64, rows)
	errs := make([]error, rows)
	parallel(threads, rows, func(i int) {
		losses[i], errs[i] = g.row(codes[i*n:(i+1)*n], scales[i*n/Group:(i+1)*n/Group], w[i*n:(i+1)*n])
	})
	for i := range rows {
		if errs[i] != nil {
			return 0, fmt.Errorf("row %d, %w", i, errs[i])
		}
		loss += losses[i]
	}
	return loss, nil
}

// row is the reference for one row.
func (g *GPTQ) row(codes []int8, scales []uint16, w []float32) (loss float64, err error) {
	n := g.n
	e := make([]float32, n)
	var best [Group]float32
	for b := 0; b < n; b += Group {
		// What the group would be if it were not quantized.
		for j := b; j < b+Group; j++ {
			e[j] = -g.pull(e, 0, j)
			best[j-b] = w[j] - e[j]
		}
		s, err := fitScale(best[:])
		if err != nil {
			return 0, fmt.Errorf("group %d: %w", b/Group, err)
		}
		scales[b/Group] = s
		d := HalfToFloat(s)
		for j := b; j < b+Group; j++ {
			t := w[j] + g.pull(e, 0, j)
			codes[j] = code(t, d/2)
			q := float32(codes[j]) * d
			e[j] = w[j] - q
			loss += g.diag2[j] * float64(t-q) * float64(t-q)
		}
	}
	return loss, nil
}

// pull returns what errors [from, j) of a row do to column j.
func (g *GPTQ) pull(e []float32, from, j int) (sum float32) {
	for i := from; i < j; i++ {
		sum += e[i] * g.unit[i*g.n+j]
	}
	return sum
}
