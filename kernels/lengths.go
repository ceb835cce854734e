package kernels

import "fmt"

// wantLen panics unless got, the length of what, is want.
func wantLen(what string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("kernels: %s has length %d, want %d", what, got, want))
	}
}

// wantMultiple panics unless got, the length of what, is a multiple of unit.
func wantMultiple(what string, got, unit int) {
	if unit <= 0 || got%unit != 0 {
		panic(fmt.Sprintf("kernels: %s has length %d, want a multiple of %d", what, got, unit))
	}
}
