package engine

import (
	"reflect"
	"time"
)

// A pace is what actions of one kind of op took, and what they were estimated to take. It
// is in whole nanoseconds, so that its sums do not depend on the order.
type pace struct{ took, estimated time.Duration }

// learn takes what a run of an action took, in this build or before, for the estimates of
// others of its kind.
func (b *build) learn(id int, took time.Duration) {
	a := &b.graph.actions[id]
	if took <= 0 || a.Cost <= 0 {
		return
	}
	kind := reflect.TypeOf(a.Op)
	p := b.paces[kind]
	p.took += took
	p.estimated += time.Duration(a.Cost * float64(time.Second))
	b.paces[kind] = p
}

// seconds is how long an action is expected to take: as long as its last run, or what is
// estimated of it, corrected by what others of its kind took that are known of.
func (b *build) seconds(id int) float64 {
	if s := b.actions[id].earlier.seconds; s > 0 {
		return s
	}
	a := &b.graph.actions[id]
	if p := b.paces[reflect.TypeOf(a.Op)]; p.estimated > 0 {
		return a.Cost * (float64(p.took) / float64(p.estimated))
	}
	return a.Cost
}
