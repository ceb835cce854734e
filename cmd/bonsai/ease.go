package main

import (
	"runtime/debug"
	"sync"
)

// While a recipe is read and looked at, much is made that is soon forgotten, and little
// that stays: the collector may wait until there is five times what stays, but not for
// more than this many bytes, which 100,000 actions need.
const (
	easeFactor = 400
	easeBytes  = 320 << 20
)

// With more actions than this, what is known of them is most of what there is, and it
// stays: the collector runs when there is half as much beside it.
const (
	manyActions = 20_000
	manyFactor  = 50
)

// ease makes the collector run less often, until restore is called, with the number of
// actions: before any runs, as their memory is budgeted. It leaves a collector alone that the user has set.
func (p *program) ease() (restore func(actions int)) {
	if p.env("GOGC") != "" || p.env("GOMEMLIMIT") != "" {
		return func(int) {}
	}
	percent, limit := debug.SetGCPercent(easeFactor), debug.SetMemoryLimit(easeBytes)
	var once sync.Once
	return func(actions int) {
		once.Do(func() {
			if actions > manyActions {
				percent = manyFactor
			}
			debug.SetGCPercent(percent)
			debug.SetMemoryLimit(limit)
		})
	}
}
