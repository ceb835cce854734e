//go:build integration

package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The shipped recipe on the trained model, killed ten times on its way.
func TestIntegrationKill(t *testing.T) {
	k := killed{program: "bonsai", recipe: tinyRecipe(t), dir: t.TempDir()}
	whole := k.build(t, 0)
	want := k.placedFiles(t)
	rng := rand.New(rand.NewPCG(3, 4))
	var moments []time.Duration
	for range 10 {
		moments = append(moments, time.Duration(rng.Float64()*float64(whole.took)/5))
	}
	checkRestart(t, k, want, moments...)
}

// A thousand builds of a synthetic graph, each killed at a random moment.
func TestIntegrationKills(t *testing.T) { soakKills(t, 1000) }

// A hundred builds of one target on one cache at the same time.
func TestIntegrationCrowd(t *testing.T) { soakCrowd(t, 100) }
