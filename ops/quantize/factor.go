package quantize

import (
	"errors"
	"fmt"

	"bonsai/kernels"
)

// moreDamping is how often the damping is multiplied by 10 before an op gives up.
const moreDamping = 3

// A FactorError says that a Hessian has no Cholesky factor, even in float64 and with more
// damping than was asked for. Too few or degenerate tokens are the usual cause.
type FactorError struct {
	Tensors []string // that share the Hessian
	Tokens  int      // it is the mean over; 0 if it is not of tokens
	Width   int      // of it
	Column  int      // the first factorization failed at
	Damping float64  // of the last try
}

// Error implements error.
func (e *FactorError) Error() string {
	return fmt.Sprintf("Hessian of %s is not positive definite: column %d of %d, %d tokens (%.3g a column), damping up to %g",
		list(e.Tensors), e.Column, e.Width, e.Tokens, float64(e.Tokens)/float64(e.Width), e.Damping)
}

// A factor is R, upper triangular with H + λI = R Rᵀ, and how it was got.
type factor struct {
	r       []float32 // [n, n]
	lambda  float64
	damping float64 // λ over the mean of H's diagonal
	double  bool    // computed in float64
}

// factorize factors h, [n, n], with λ = damping times the mean of its diagonal: in float32;
// if that fails, in float64; then with λ×10, up to moreDamping times. The error has the
// column at which the first try failed. Float32 fails for λ below about 1e-6 of the mean
// of the diagonal where tokens are fewer than columns, float64 not down to 1e-8.
func factorize(h []float32, n int, damping float64, threads int) (*factor, int, error) {
	f := &factor{damping: damping, lambda: damping * meanDiagonal(h, n)}
	f.r = make([]float32, len(h))
	copy(f.r, h)
	for i := range n {
		f.r[i*n+i] = float32(float64(h[i*n+i]) + f.lambda)
	}
	first := kernels.ReverseCholesky(f.r, n, threads)
	if first == nil {
		return f, 0, nil
	}
	f.double = true
	err := first
	for try := 0; try <= moreDamping; try++ {
		if try > 0 {
			f.damping, f.lambda = f.damping*10, f.lambda*10
		}
		if err = f.inDouble(h, n, threads); err == nil {
			return f, 0, nil
		}
	}
	var where *kernels.NotPositiveError
	column := 0
	if errors.As(first, &where) {
		column = where.Column
	}
	return f, column, err
}

// precision returns the type that the factor was computed in, as a result names it.
func (f *factor) precision() string {
	if f.double {
		return "f64"
	}
	return "f32"
}

func (f *factor) inDouble(h []float32, n, threads int) error {
	d := make([]float64, len(h))
	for i, v := range h {
		d[i] = float64(v)
	}
	for i := range n {
		d[i*n+i] += f.lambda
	}
	if err := kernels.ReverseCholesky(d, n, threads); err != nil {
		return err
	}
	for i, v := range d {
		f.r[i] = float32(v)
	}
	for i := range n {
		if !(f.r[i*n+i] > 0) {
			return &kernels.NotPositiveError{Column: i, Pivot: d[i*n+i]}
		}
	}
	return nil
}

func meanDiagonal(h []float32, n int) (mean float64) {
	for i := range n {
		mean += float64(h[i*n+i])
	}
	return mean / float64(n)
}
