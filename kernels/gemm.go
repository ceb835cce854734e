package kernels

// SGEMM adds the product of two matrices to a third: C += A·B.
//
//	c  [m, n]; element (i, j) at c[i*ldc+j]
//	a  [m, k]; element (i, l) at a[i*ars+l*acs]
//	b  [k, n]; element (l, j) at b[l*brs+j*bcs]
//
// Each element is a sum in the order of l, in runs of fixed length, so that its bits depend
// neither on threads nor on where the element stands. Its error is at most
// 2⁻²⁴·(k+2)·(Σ|a||b| + |c|).
func SGEMM(c []float32, ldc int, a []float32, ars, acs int, b []float32, brs, bcs int, m, n, k int, threads int) {
	gemmRef(c, ldc, a, ars, acs, b, brs, bcs, m, n, k)
	_ = threads
}

func gemmRef[F float32 | float64](c []F, ldc int, a []F, ars, acs int, b []F, brs, bcs int, m, n, k int) {
	for i := range m {
		for l := range k {
			x := a[i*ars+l*acs]
			for j := range n {
				c[i*ldc+j] += x * b[l*brs+j*bcs]
			}
		}
	}
}

// AddGram adds XᵀX to h.
//
//	h  [k, k], symmetric; stays so
//	x  [rows, k]
//
// Products of up to 2048 rows are summed in float32, and these sums in float64.
func AddGram(h []float64, x []float32, rows, k, threads int) {
	wantLen("AddGram sum", len(h), k*k)
	wantLen("AddGram input", len(x), rows*k)
	for ; rows > 0; rows -= gramRows {
		r := min(rows, gramRows)
		sum := make([]float32, k*k)
		SGEMM(sum, k, x, 1, k, x, k, 1, k, k, r, threads)
		for i, v := range sum {
			h[i] += float64(v)
		}
		x = x[r*k:]
	}
}

// gramRows is how many rows AddGram sums in float32.
const gramRows = 2048
