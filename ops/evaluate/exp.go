package evaluate

import "math"

// exp returns e^x with a relative error below 1e-15, and 0 where it is no normal number. math.Exp is assembly that mixes SSE with AVX instructions, which some
// processors run a hundred times slower after a goroutine was preempted (see ops/mlx).
//
// The reduction and the rational approximation are FreeBSD's e_exp.c (Sun Microsystems,
// 1993), as in Go's own portable math.Exp.
func exp(x float64) float64 {
	const (
		ln2High     = 6.93147180369123816490e-01
		ln2Low      = 1.90821492927058770002e-10
		least, most = -708, 709
	)
	switch {
	case x != x || x > most:
		return x + math.Inf(1)
	case x < least:
		return 0
	}
	n := math.Floor(math.Log2E*x + 0.5)
	high, low := x-n*ln2High, n*ln2Low
	r := high - low
	t := r * r
	c := r - t*(1.66666666666666657415e-01+t*(-2.77777777770155933842e-03+
		t*(6.61375632143793436117e-05+t*(-1.65339022054652515390e-06+t*4.13813679705723846039e-08))))
	y := 1 - ((low - (r*c)/(2-c)) - high)
	return y * math.Float64frombits(uint64(int64(n)+1023)<<52)
}
