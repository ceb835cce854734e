package engine_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// still is an op that does nothing.
type still struct{ Seed int }

func (o still) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op still v1\nset Seed %d\n", o.Seed), nil
}

func (o still) Run(_ context.Context, _ []*io.SectionReader, out []io.Writer, _ func(float64, string)) error {
	_, err := fmt.Fprint(out[0], o.Seed)
	return err
}

// wide returns a graph of n actions in layers of 100 with 3 inputs each, one in four of
// them transient, and all of the last layer.
func wide(n int) (*engine.Graph, []*engine.Artifact) {
	g := &engine.Graph{}
	var all []*engine.Artifact
	for i := range n {
		a := engine.Action{
			Step: fmt.Sprint("step ", i), Op: still{i}, Outputs: []engine.Output{{Transient: i%4 == 3}},
		}
		if layer := i / 100 * 100; layer > 0 {
			for j := range 3 {
				a.In = append(a.In, all[layer-100+(i*7+j*31)%100])
			}
		}
		all = append(all, g.Add(a)...)
	}
	return g, all[n-100:]
}

func benchmark(b *testing.B, f func(g *engine.Graph, want []*engine.Artifact, opt engine.Options) error) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			store := cache.NewMem(clock)
			g, want := wide(n)
			opt := engine.Options{Store: store, History: store, Locker: store}
			build(b, g, opt, want...)
			b.ReportAllocs()
			for b.Loop() {
				if err := f(g, want, opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNoOp is a build with nothing to do.
func BenchmarkNoOp(b *testing.B) {
	benchmark(b, func(g *engine.Graph, want []*engine.Artifact, opt engine.Options) error {
		_, err := engine.Build(context.Background(), g, want, opt)
		return err
	})
}

// BenchmarkPlan is a plan that finds nothing to do.
func BenchmarkPlan(b *testing.B) {
	benchmark(b, func(g *engine.Graph, want []*engine.Artifact, opt engine.Options) error {
		_, err := engine.MakePlan(context.Background(), g, want, opt)
		return err
	})
}

// BenchmarkCold is a build of everything, by ops that do nothing.
func BenchmarkCold(b *testing.B) {
	benchmark(b, func(g *engine.Graph, want []*engine.Artifact, opt engine.Options) error {
		store := cache.NewMem(clock)
		opt.Store, opt.History, opt.Locker = store, store, store
		_, err := engine.Build(context.Background(), g, want, opt)
		return err
	})
}
