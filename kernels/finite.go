package kernels

import "math"

// NotFinite returns the index of the first NaN or infinity in x, or -1.
func NotFinite(x []float32) int {
	const exponent = 0x7f800000
	for i, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return i
		}
	}
	return -1
}
