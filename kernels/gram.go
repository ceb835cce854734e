package kernels

// AddGram adds XᵀX to h.
//
//	h  [k, k], symmetric: what is above the diagonal is read, all is written
//	x  [rows, k]
//
// Products of up to 2048 rows are summed in float32, and these sums in float64: the relative error
// is that of SGEMM over 2048 products, however many rows there are. Calls with more rows
// are faster, as h is then touched less often.
func AddGram(h []float64, x []float32, rows, k, threads int) { addGram(tile32, h, x, rows, k, threads) }

const (
	gramRows  = 2048 // rows that are summed in float32
	gramPanel = 1024 // rows of h that are computed at a time
)

// addGram is AddGram with a given micro-kernel.
func addGram(t tile[float32], h []float64, x []float32, rows, k, threads int) {
	wantLen("AddGram sum", len(h), k*k)
	wantLen("AddGram input", len(x), rows*k)
	sum := make([]float32, min(gramPanel, k)*k)
	for ; rows > 0; rows -= gramRows {
		r := min(rows, gramRows)
		for i := 0; i < k; i += gramPanel {
			gramRow(t, h, sum, mat[float32]{x, k, 1}.from(0, i), shape{min(gramPanel, k-i), k - i, r}, threads)
		}
		x = x[r*k:]
	}
	mirror(h, k, threads)
}

// gramRow adds the product of x's first s.m columns with its s.n columns, summed over s.k rows,
// to the last s.n columns of h, from the diagonal on.
func gramRow(t tile[float32], h []float64, sum []float32, x mat[float32], s shape, threads int) {
	clear(sum)
	t.gemm(sum, s.n, x.t(), x, s, threads, true)
	k := x.rs
	parallel(threads, s.m, func(i int) {
		diagonal := (k - s.n + i) * (k + 1)
		dst := h[diagonal:][:s.n-i]
		for j, v := range sum[i*s.n+i : (i+1)*s.n] {
			dst[j] += float64(v)
		}
	})
}

// mirror copies what is above the diagonal of h, of n rows, to below it.
func mirror[F float](h []F, n, threads int) {
	const tile = 32
	parallel(threads, roundUp(n, tile)/tile, func(t int) {
		j0, j1 := t*tile, min((t+1)*tile, n)
		for i0 := 0; i0 < j1; i0 += tile {
			for j := j0; j < j1; j++ {
				for i := i0; i < min(i0+tile, j); i++ {
					h[j*n+i] = h[i*n+j]
				}
			}
		}
	})
}

// Energy returns tr(W H Wᵀ), summed in float64: with the Hessian of the inputs of W, the mean
// square of its output vectors.
//
//	w  [rows, k]
//	h  [k, k], symmetric
func Energy(w, h []float32, rows, k, threads int) float64 {
	wantLen("Energy weights", len(w), rows*k)
	wantLen("Energy Hessian", len(h), k*k)
	const chunk = 1024
	sums := make([]float64, rows)
	wh := make([]float32, min(rows, chunk)*k)
	for first := 0; first < rows; first += chunk {
		n := min(chunk, rows-first)
		clear(wh)
		SGEMM(wh, k, w[first*k:], k, 1, h, k, 1, n, k, k, threads)
		parallel(threads, n, func(i int) {
			sums[first+i] = dot(wh[i*k:(i+1)*k], w[(first+i)*k:(first+i+1)*k])
		})
	}
	return sum(sums)
}

// dot returns the inner product of x and y, summed in float64.
func dot(x, y []float32) (s float64) {
	for i, v := range x {
		s += float64(v) * float64(y[i])
	}
	return s
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}
