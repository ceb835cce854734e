package quantize

import (
	"math"

	"bonsai/kernels"
)

// quadraticColumns is how many columns of a product with the Hessian are held at a time.
const quadraticColumns = 512

// quadratic returns tr(X H Xᵀ) for x, [rows, n], and the symmetric h, [n, n]. It uses what
// is on the diagonal and above it, at half the cost of the whole product: with the columns
// cut into blocks b, it is Σ_b (2 X_{<b} H_{<b,b} + X_b H_bb)·X_b.
func quadratic(x, h []float32, n, threads int) (sum float64) {
	rows := len(x) / n
	product := make([]float32, rows*min(n, quadraticColumns))
	for b := 0; b < n; b += quadraticColumns {
		cols := min(quadraticColumns, n-b)
		p := product[:rows*cols]
		clear(p)
		if b > 0 {
			kernels.SGEMM(p, cols, x, n, 1, h[b:], n, 1, rows, cols, b, threads)
		}
		for i := range p {
			p[i] *= 2
		}
		kernels.SGEMM(p, cols, x[b:], n, 1, h[b*n+b:], n, 1, rows, cols, cols, threads)
		for i := range rows {
			row := x[i*n+b:]
			for j, v := range p[i*cols : (i+1)*cols] {
				sum += float64(v) * float64(row[j])
			}
		}
	}
	return sum
}

// ratio returns the relative error of a loss against an energy, 0 if there was nothing to
// get wrong.
func ratio(loss, energy float64) float64 {
	if !(energy > 0) || !(loss > 0) {
		return 0
	}
	return math.Sqrt(loss / energy)
}
