package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// The tests of this file have an op that gives other bytes each time it runs, as sums in
// another order do, and bytes that are gone when they are needed again. What has not run
// yet must then be keyed by the new bytes. Time is that of a synctest bubble.

// fickle is an action whose outputs say which run made them.
func (s *scene) fickle(n int) []*engine.Artifact {
	return s.addAll("fickle", 1, nil, outputs(n), func(a *engine.Action) {
		m := a.Op.(mix)
		m.fickle = true
		a.Op = m
	})
}

// thinking makes the store be asked about an action only after a while, the first time.
func thinking(d time.Duration) change {
	return func(a *engine.Action) {
		m := a.Op.(mix)
		m.think = sync.OnceFunc(func() { time.Sleep(d) })
		a.Op = m
	}
}

func taking(d time.Duration) change {
	return doing(func(context.Context, func(float64, string)) error {
		time.Sleep(d)
		return nil
	})
}

// settled checks that a second build runs nothing.
func (s *scene) settled(want ...*engine.Artifact) {
	s.t.Helper()
	s.tally.take()
	s.build(want...)
	s.ran()
}

func TestRerunWithOtherBytes(t *testing.T) {
	s := newScene(t)
	a := s.fickle(1)
	b := s.add("b", 2, a)
	first := s.build(append(a, b)...)
	s.ran(1, 2)
	s.forget(first...)
	second := s.build(b)
	s.ran(1, 2)
	if second[0] == first[1] {
		t.Error("b is as if a had not changed")
	}
	s.settled(b)
}

// A hit that was found under the old name is looked for again.
func TestRerunWithOtherBytesUndoesHits(t *testing.T) {
	s := newScene(t)
	a := s.fickle(1)
	b := s.add("b", 2, a)
	after := s.add("after", 3, of(b))
	first := s.build(a[0], after)
	s.ran(1, 2, 3)
	s.forget(first[0])
	c := s.add("c", 4, a, thinking(10*time.Millisecond))
	s.build(c, after)
	s.ran(1, 2, 3, 4)
	s.settled(c, after)
}

// Whether the store has a result under the old name or not.
func TestNameChangesWhileTheStoreIsAsked(t *testing.T) {
	for _, hit := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			a := s.fickle(1)
			if hit {
				s.build(s.add("b", 2, a))
			}
			s.forget(s.build(a...)...)
			s.tally.take()
			b := s.add("b", 2, a, thinking(time.Hour))
			s.build(a[0], b) // a runs again while b thinks about its old name
			s.ran(1, 2)
			s.settled(a[0], b)
		})
	}
}

func TestNameChangesWhileALockIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		a := s.fickle(2)
		s.forget(s.build(a...)[1])
		b := s.add("b", 2, a[:1])
		unlock, err := s.store.Lock(t.Context(), s.plan(b).Entries[1].Key, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*time.Hour, unlock)
		s.tally.take()
		c := s.add("c", 3, a[1:], thinking(time.Hour)) // then a runs again
		s.build(b, c)
		s.ran(1, 2, 3)
		s.settled(b, c)
	})
}

// An action that ran with the old bytes must not run again under the old key with the new.
func TestNameChangesAfterARunWhoseBytesVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Locker = nil // it would be noticed when the lock is there
		a := s.fickle(2)
		s.forget(s.build(a...)[1])
		b := s.add("b", 2, a[:1])
		c := s.add("c", 3, a[1:], thinking(time.Hour)) // then a runs again
		thief := s.add("thief", 4, nil, doing(func(context.Context, func(float64, string)) error {
			time.Sleep(2 * time.Hour)
			s.forgetStep("b")
			return nil
		}))
		d := s.add("d", 5, of(b, thief))
		s.build(c, d)
		if runs := s.tally.take(); runs[2] != 2 || runs[5] != 1 {
			t.Errorf("runs are %v, want 2 of op 2 and 1 of op 5", runs)
		}
	})
}

// What a rerun needs is dropped again after it.
func TestTransientInputOfARerunIsDropped(t *testing.T) {
	s := newScene(t)
	x := s.add("x", 1, nil, transient)
	b := s.add("b", 2, of(x))
	thief := s.add("thief", 3, of(b), doing(func(context.Context, func(float64, string)) error {
		for d := range s.made() {
			_ = s.store.Mem.Remove(d)
		}
		return nil
	}))
	s.build(s.add("c", 4, of(thief, b)))
	if runs := s.tally.take(); runs[1] != 2 || runs[2] != 2 {
		t.Errorf("runs are %v, want 2 of ops 1 and 2", runs)
	}
	s.transientBytes()
}

// An action that is ready and loses an input does not start before it is there again.
func TestReadyActionLosesAnInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.opt.Locker = nil // it would be noticed when the lock is there
		s.opt.Pools = map[string]int{"one": 1}
		counting := &opens{shaky: s.store}
		s.opt.Store = counting
		x := s.add("x", 1, nil, taking(time.Second))
		b, c := s.add("b", 2, of(x), inPool("one")), s.add("c", 3, of(x), inPool("one"))
		s.store.vanish = []byte{0} // under b, while c is ready
		s.build(b, c)
		if n := counting.n.Load(); n != 3 {
			t.Errorf("x was opened %d times, want 3", n)
		}
	})
}

// opens counts Open.
type opens struct {
	*shaky
	n atomic.Int64
}

func (o *opens) Open(d cache.Digest) (cache.Blob, error) {
	o.n.Add(1)
	return o.shaky.Open(d)
}

// shrinking is a store whose blobs are shorter than they were, once each for Open and Stat.
type shrinking struct {
	*opens
	open, stat sync.Once
}

type shortBlob struct{ cache.Blob }

func (b shortBlob) Size() int64 { return b.Blob.Size() - 1 }

func (s *shrinking) Open(d cache.Digest) (blob cache.Blob, err error) {
	blob, err = s.opens.Open(d)
	s.open.Do(func() { blob = shortBlob{blob} })
	return blob, err
}

func (s *shrinking) Stat(d cache.Digest) (size int64, err error) {
	size, err = s.opens.Stat(d)
	s.stat.Do(func() { size-- })
	return size, err
}

func TestBytesShrink(t *testing.T) {
	s := newScene(t)
	store := &shrinking{opens: &opens{shaky: s.store}}
	store.stat.Do(func() {})
	s.opt.Store = store
	b := s.add("b", 2, of(s.add("a", 1, nil)))
	s.build(b)
	s.ran(1, 2)
	if n := store.n.Load(); n != 2 {
		t.Errorf("a was opened %d times, want twice", n)
	}
	s.opt.Locker = nil // when the lock is there it would look again
	s.opt.Store = &shrinking{opens: store.opens}
	s.build(b)
	s.ran(2)
}
