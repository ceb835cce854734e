//go:build integration

package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The shipped recipe on the trained model, killed ten times on its way.
func TestIntegrationKill(t *testing.T) {
	k := killed{recipe: tinyRecipe(t), dir: t.TempDir()}
	whole := k.build(t, 0)
	want := k.placedFiles(t)
	rng := rand.New(rand.NewPCG(3, 4))
	var moments []time.Duration
	for range 10 {
		moments = append(moments, time.Duration(rng.Float64()*float64(whole.took)/5))
	}
	checkRestart(t, k, want, moments...)
}
