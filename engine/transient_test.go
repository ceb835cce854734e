package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// layers adds what codes does: for each layer a Hessian of its inputs (transient), its
// codes, and the inputs of the next layer (transient), and in the end a file of all
// codes. seeds holds the settings of the codes of each layer.
//
// Ops 10, 11, … are Hessians, 30, 31, … the inputs, 99 is the file.
func (s *scene) layers(seeds ...int) (file *engine.Artifact, codes []*engine.Artifact) {
	x := s.add("embed", 29, of(s.source("hello")), transient)
	for i, seed := range seeds {
		hessian := s.add(fmt.Sprint("hessian ", i), 10+i, of(x), transient)
		code := s.add(fmt.Sprint("codes ", i), seed, of(hessian))
		codes = append(codes, code)
		x = s.add(fmt.Sprint("inputs ", i), 30+i, of(x, code), transient)
	}
	return s.add("file", 99, codes), codes
}

func TestTransientBytesAreNotKept(t *testing.T) {
	s := newScene(t)
	file, codes := s.layers(1, 2, 3)
	s.build(file)
	s.ran(29, 10, 11, 12, 1, 2, 3, 30, 31, 99)
	s.transientBytes()

	s.build(append(codes, file)...)
	s.ran()
}

// transientBytes checks that, of the blobs that were ever made, those of the given
// number of transient artifacts are there.
func (s *scene) transientBytes(want ...string) {
	s.t.Helper()
	var got []string
	for _, e := range s.events {
		f, ok := e.(engine.Finished)
		if !ok || f.Hit {
			continue
		}
		for i, out := range f.Result.Outputs {
			if s.isTransient(f.Step, i) && s.has(out.Digest) {
				got = append(got, f.Step)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		s.t.Errorf("transient bytes of %v are in the store, want those of %v", got, want)
	}
}

func (s *scene) isTransient(step string, output int) bool {
	for a := range s.graph.Actions() {
		if a.Step == step {
			return a.Outputs[output].Transient
		}
	}
	return false
}

// A build whose codes are all stored computes no inputs of layers.
func TestStoredCodesNeedNoActivations(t *testing.T) {
	s := newScene(t)
	file, _ := s.layers(1, 2, 3)
	outs := s.build(file)
	s.again()
	file, _ = s.layers(1, 2, 3)
	s.forget(outs...)
	s.build(file)
	s.ran(99)
}

// When the codes of a layer miss, the chain is computed that leads there, and no more.
func TestShortestChainIsComputed(t *testing.T) {
	s := newScene(t)
	file, _ := s.layers(1, 2, 3, 4)
	s.build(file)
	s.again()
	file, _ = s.layers(1, 2, 33, 4)
	s.build(file)
	s.ran(29, 30, 31, 12, 33, 32, 13, 4, 99) // not the Hessians of layers 0 and 1
	s.transientBytes()
}

// What an interrupted build left is where the next one goes on.
func TestChainStartsAtTheNearestStoredBytes(t *testing.T) {
	s := newScene(t)
	x, chain := s.add("x", 0, nil, transient), []*engine.Artifact(nil)
	for i := 1; i < 5; i++ {
		x = s.add(fmt.Sprint("x ", i), i, of(x), transient)
		chain = append(chain, x)
	}
	kept := s.build(chain[1]) // x 2 is wanted, so it stays
	s.ran(0, 1, 2)
	s.build(s.add("end", 9, of(x)))
	s.ran(3, 4, 9)
	if s.has(kept[0].Digest) {
		t.Error("bytes that an earlier build left are still there after their last use")
	}
}

func TestWantedTransientBytesStay(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil, transient)
	outs := s.build(a, s.add("b", 2, of(a)))
	if !s.has(outs[0].Digest) {
		t.Error("they are gone")
	}
}

func TestTransientBytesOfAnOrdinaryArtifactStay(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil, few(1), transient)
	b := s.add("b", 2, nil, few(1)) // the same bytes
	c := s.add("c", 3, of(a, b))
	outs := s.build(b, c)
	if !s.has(outs[0].Digest) {
		t.Error("they are gone")
	}
}

func TestTransientBytesThatNobodyReadGoToo(t *testing.T) {
	s := newScene(t)
	ab := s.addAll("ab", 1, nil, outputs(2), func(a *engine.Action) { a.Outputs[0].Transient = true })
	s.build(s.add("c", 2, of(ab[1])))
	s.ran(1, 2)
	s.transientBytes()
	s.build(s.add("d", 3, of(ab[0])))
	s.ran(1, 3)
}

// When a layer is done, the inputs before it are gone, though the file of all layers,
// which could ask for anything, has not run.
func TestTransientBytesGoEarly(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		t.Run(fmt.Sprint("resumed=", resumed), func(t *testing.T) {
			s := newScene(t)
			most := 0
			count := doing(func(context.Context, func(float64, string)) error {
				n := 0
				for d := range s.made() {
					if s.has(d) {
						n++
					}
				}
				most = max(most, n)
				return nil
			})
			s.opt.Workers = 1
			world := func(last int) *engine.Artifact {
				x := s.add("embed", 100, nil, transient)
				var codes []*engine.Artifact
				for i := range 10 {
					h := s.add("hessian", 200+i, of(x), transient)
					seed := i
					if i == 9 {
						seed = last
					}
					codes = append(codes, s.add("codes", seed, of(h), count))
					x = s.add("inputs", 300+i, of(x, codes[i]), transient, count)
				}
				return s.add("file", 400, codes)
			}
			if resumed {
				s.build(world(9))
				s.again()
			}
			most = 0
			s.build(world(99))
			if limit := 10 + 4; most > limit { // codes, and x, x', a Hessian
				t.Errorf("%d blobs at once, want at most %d", most, limit)
			}
		})
	}
}

func (s *scene) made() map[cache.Digest]bool {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	made := make(map[cache.Digest]bool)
	for d := range s.store.made {
		made[d] = true
	}
	return made
}

// After a failure, what the failed action needs is kept for the next try.
func TestFailureKeepsTransientInputs(t *testing.T) {
	s := newScene(t)
	a := s.add("a", 1, nil, transient)
	b := s.add("b", 2, of(a))
	broken := s.add("broken", 3, of(a), doing(func(context.Context, func(float64, string)) error {
		return fmt.Errorf("out of luck")
	}))
	s.opt.KeepGoing = true
	s.fails(b, broken)
	s.ran(1, 2, 3)
	s.transientBytes("a")
	s.again()
	a = s.add("a", 1, nil, transient)
	s.build(s.add("mended", 4, of(a)))
	s.ran(4)
}

// A transient artifact is named by what it is made of: recomputing it with other bytes
// invalidates nothing.
func TestRecomputedTransientInvalidatesNothing(t *testing.T) {
	s := newScene(t)
	n := 0
	world := func(last int) *engine.Artifact {
		x := s.graph.Add(engine.Action{
			Step: "x", Outputs: []engine.Output{{Transient: true}},
			Op: opFunc{"x", func(_ context.Context, out *writer) error {
				n++
				return out.print("on another machine: ", n)
			}},
		})[0]
		return s.add("c", last, of(s.add("a", 1, of(x)), s.add("b", last, of(x))))
	}
	s.build(world(2))
	s.again()
	s.build(world(3))
	s.tally.take()
	if n != 2 {
		t.Errorf("x ran %d times, want twice", n)
	}
	s.again()
	s.build(world(2))
	s.ran()
}
