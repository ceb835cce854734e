package engine_test

import (
	"context"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// TestStrict holds that results are shared between backends, and are not if the build
// is strict.
func TestStrict(t *testing.T) {
	for strict, want := range map[bool]bool{false: true, true: false} {
		store := cache.NewMem(clock)
		hit := false
		for _, backend := range []string{"go", "xla:cuda"} {
			g := new(engine.Graph)
			a := g.Add(engine.Action{Step: "word", Op: mix{Seed: 1, Spread: []int{1}, tally: newTally()}, Outputs: []engine.Output{{}}})
			_, err := engine.Build(context.Background(), g, a, engine.Options{
				Store: store, Backend: backend, Strict: strict,
				Emit: func(e engine.Event) {
					if f, ok := e.(engine.Finished); ok {
						hit = f.Hit
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if hit != want {
			t.Errorf("strict %v: the other backend's result is a hit: %v, want %v", strict, hit, want)
		}
	}
}
