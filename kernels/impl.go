package kernels

import "fmt"

// An impl is one of several twins of a kernel.
type impl[T any] struct {
	name   string
	usable bool // whether this CPU can run it
	f      T
}

// last returns the last usable impl of a list, whose order is from plain to fast.
func last[T any](list []impl[T]) impl[T] {
	for i := len(list) - 1; i > 0; i-- {
		if list[i].usable {
			return list[i]
		}
	}
	return list[0]
}

// Chosen says which twins this build and CPU use, as in "gemm=avx512 fwht=avx512".
func Chosen() string {
	return fmt.Sprintf("gemm=%s fwht=%s", last(tiles32()).name, last(fwhts()).name)
}
