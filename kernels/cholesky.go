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
// The error is a *NotPositiveError; h is then undefined.
//
// Source: quant-methods.md 1c.
func ReverseCholesky[F float32 | float64](h []F, n, threads int) error {
	wantLen("ReverseCholesky input", len(h), n*n)
	_ = threads
	return choleskyRef(h, n)
}

func choleskyRef[F float32 | float64](h []F, n int) error {
	for j := n - 1; j >= 0; j-- {
		p := h[j*n+j]
		for _, r := range h[j*n+j+1 : (j+1)*n] {
			p -= r * r
		}
		if !(p > 0) || math.IsInf(float64(p), 0) {
			return &NotPositiveError{Column: j, Pivot: float64(p)}
		}
		d := F(math.Sqrt(float64(p)))
		h[j*n+j] = d
		for i := range j {
			s := h[i*n+j]
			for l := j + 1; l < n; l++ {
				s -= h[i*n+l] * h[j*n+l]
			}
			h[i*n+j] = s / d
		}
		clear(h[j*n : j*n+j])
	}
	return nil
}
