// Package quantize makes a model ternary, one group of projections at a time: the rotation,
// the hidden states that stream from layer to layer, the Hessian of each group's inputs in
// the rotated basis, and the codes and scales that GPTQ finds against it.
//
// It knows how these artifacts look as files and which order a model's parts are quantized
// in; it does not know recipes, caching, nor how a layer computes (ops/model does).
// Start at Codes, the op that all others feed, and at Weights, which gives the result back
// as weights of the original basis.
//
// Sources: GPTQ, arXiv:2210.17323; Hadamard rotation of inputs, arXiv:2404.00456 section 4.
package quantize

import (
	"context"
	"errors"
	"fmt"
	"io"

	"bonsai/ops/mlx"
)

// errNoEngine is returned by an op that computes with tensors and was given no engine.
var errNoEngine = errors.New("no tensor engine")

// A machine is what an op computes on. It never changes a result.
type machine struct {
	engine  *mlx.Engine
	threads int // of kernels; 0 means GOMAXPROCS
	batch   int // tokens of a forward pass; 0 means batchTokens for each call the engine runs at once
}

// batchTokens is how many tokens go through a layer at once, rounded down to whole
// sequences but at least one: enough to keep matrix multiplies busy, little beside a layer.
const batchTokens = 1024

// sequences returns how many sequences of length tokens go through a layer at once.
func (m machine) sequences(length int) int {
	tokens := m.batch
	if tokens == 0 {
		tokens = batchTokens * max(2, m.parallel())
	}
	return max(1, tokens/length)
}

// parallel returns how many calls the engine runs at once.
func (m machine) parallel() int {
	if m.engine == nil {
		return 1
	}
	return m.engine.Parallel()
}

// wantInputs returns an error unless there are at least n inputs.
func wantInputs(in []*io.SectionReader, n int, what string) error {
	if len(in) < n {
		return fmt.Errorf("%d inputs, want at least %d: %s", len(in), n, what)
	}
	return nil
}

// A reporter tells how far an op is.
type reporter = func(done float64, note string)

// step reports progress below 1 and returns ctx's error.
func step(ctx context.Context, report reporter, done, all int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if done < all {
		report(float64(done)/float64(all), "")
	}
	return nil
}
