package engine

import (
	"context"
	"errors"
	"syscall"
	"time"

	"bonsai/cache"
)

// The pause before a further try: a second, then twice as long each time, up to a minute.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

func pauseAfter(tries int) time.Duration {
	return min(firstPause<<min(tries-1, 10), longestPause)
}

// temporary reports whether an error may pass by itself: if anything in its chain has a
// method Temporary that says so. A panic, a limit that was reached and a full disk do not
// pass, whatever else is in the chain.
func temporary(err error) bool {
	_, panicked := errors.AsType[*PanicError](err)
	_, late := errors.AsType[*TimeoutError](err)
	if panicked || late || errors.Is(err, cache.ErrFull) || errors.Is(err, syscall.ENOSPC) {
		return false
	}
	return saysTemporary(err)
}

// saysTemporary walks the tree of errors that err wraps.
func saysTemporary(err error) bool {
	if t, ok := err.(interface{ Temporary() bool }); ok && t.Temporary() {
		return true
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return saysTemporary(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if saysTemporary(err) {
				return true
			}
		}
	}
	return false
}

// mayRetry reports whether an action that failed with err has a further try.
func (b *build) mayRetry(id int, err error) bool {
	return !b.stopping && b.actions[id].tries < b.graph.actions[id].Retries && temporary(err)
}

// retry makes an action wait before its next try. It keeps its key, so that no other
// action of this build runs in its place, and nothing else: no worker, no place in its
// pool, no memory, no lock.
func (b *build) retry(id int, err error) {
	r := &b.actions[id]
	r.tries++
	wait := pauseAfter(r.tries)
	step, name := b.who(id)
	b.opt.Emit(Retried{Step: step, Name: name, Key: r.key, Err: err, Wait: wait, Time: b.now()})
	b.set(id, pausing)
	b.giveSlot(id)
	b.send(func() func() {
		sleep(b.short, wait)
		return func() { b.paused(id) }
	})
}

// paused goes on with an action that has waited.
func (b *build) paused(id int) {
	r := &b.actions[id]
	switch {
	case b.stopping:
		b.release(id)
	case r.stale || r.absent > 0:
		b.release(id)
		b.decide(id)
	default:
		b.enqueue(id)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
