package kernels

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// workers returns how many goroutines to use for n pieces; threads <= 0 means GOMAXPROCS.
func workers(threads, n int) int {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return max(1, min(threads, n))
}

// parallel calls f for every i in [0, n), from at most threads goroutines, and waits.
// Who gets which i is left to chance, so f(i) must not depend on it.
func parallel(threads, n int, f func(i int)) {
	parallelWith(threads, n, func() struct{} { return struct{}{} }, func(_ struct{}, i int) { f(i) })
}

// parallelWith is parallel with a scratch value for each goroutine.
func parallelWith[S any](threads, n int, scratch func() S, f func(s S, i int)) {
	var next atomic.Int64
	loop := func() {
		s := scratch()
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(s, i)
		}
	}
	w := workers(threads, n)
	if w == 1 {
		loop()
		return
	}
	var wg sync.WaitGroup
	for range w {
		wg.Go(loop)
	}
	wg.Wait()
}
