package mlx

import (
	"bonsai/kernels"

	"github.com/gomlx/gomlx/backends/simplego/packgemm"
)

// registerGEMM registers our matrix product with the pure-Go backend, whose registry is one for the process.
func registerGEMM() {
	const priority = 1000                                                   // above the backend's own, which end at 30
	params := &packgemm.CacheParams{LHSL1KernelRows: 1, RHSL1KernelCols: 1} // for products that pack by them; ours does not
	packgemm.RegisterGEMM[float32, float32]("bonsai", gemm, params, priority)
}

// gemm writes a batch of products to out: [batch, m, k] × [batch, k, n] = [batch, m, n]. It fills out whatever it
// held: the backend's own product scales the old content of a recycled buffer by zero, and so keeps its NaN.
//
// P is the backend's pool of workers, a type internal to GoMLX that only inference can name. It goes unused: kernels
// have goroutines of their own, and waiting for this pool from inside an operation can deadlock.
func gemm[P any](_, _ float32, lhs, rhs []float32, batch, m, n, k int, out []float32,
	_ packgemm.BufAllocFn[float32], _ packgemm.BufReleaseFn, _ P,
) error {
	if k == 1 && n == 1 && custom(out, lhs, rhs, batch, m) {
		return nil
	}
	clear(out)
	for b := range batch {
		kernels.SGEMM(out[b*m*n:][:m*n], n, lhs[b*m*k:][:m*k], k, 1, rhs[b*k*n:][:k*n], n, 1, m, n, k, 0)
	}
	return nil
}
