package kernels_test

import (
	"math"
	"testing"

	"bonsai/kernels"
)

func TestNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range 9 {
			x := []float32{0, -1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 1, 2, 3, 4}
			if got := kernels.NotFinite(x); got != -1 {
				t.Errorf("NotFinite(%v) = %d, want -1", x, got)
			}
			x[at] = float32(bad)
			if got := kernels.NotFinite(x); got != at {
				t.Errorf("NotFinite(%v) = %d, want %d", x, got, at)
			}
		}
	}
}
