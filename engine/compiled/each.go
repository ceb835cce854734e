package compiled

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// batch is how many things one worker takes at a time: a system call each, so that the
// taking costs nothing beside them.
const batch = 64

// each calls f with 0 to n-1, on all CPUs, until one answer is false. It reports whether
// all were true.
func each(n int, f func(i int) bool) bool {
	var next atomic.Int64
	var bad flag
	work := func() {
		for {
			end := int(next.Add(batch))
			for i := end - batch; i < min(end, n); i++ {
				if bad.isUp() {
					return
				}
				if !f(i) {
					bad.raise()
				}
			}
			if end >= n {
				return
			}
		}
	}
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 1+n/batch) {
		all.Go(work)
	}
	all.Wait()
	return !bad.isUp()
}

// A flag is raised once, by any goroutine.
type flag struct{ up atomic.Bool }

func (f *flag) raise()     { f.up.Store(true) }
func (f *flag) isUp() bool { return f.up.Load() }
