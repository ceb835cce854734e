package model

import (
	"fmt"
	"sync"

	"bonsai/kernels"
	"bonsai/ops/mlx"
)

// chunkTokens is about how many tokens one call of a graph takes: enough that packing weights for a product costs
// little, few enough that states of a small model stay in the cache and those of a large one in memory.
const chunkTokens = 1024

// A NonFiniteError reports the first value of a part that is not a number, or infinite.
type NonFiniteError struct {
	What    string // what was computed, such as "layer 3: the input of self_attn.o_proj"
	Token   int    // which token of the call
	Channel int    // which channel of it
}

// Error implements error.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("%s is not finite at token %d, channel %d", e.What, e.Token, e.Channel)
}

// A call is one use of a part.
type call struct {
	part string
	what string // what it computes, for errors
	out  int    // width of the result
	deep bool   // its state has an axis of sequences
}

// run computes a part of x, [seqs·length, width], in chunks of whole sequences, several at once.
func (r *Runner) run(c call, x []float32, seqs, length int, w []*mlx.Tensor) ([]float32, error) {
	result := make([]float32, seqs*length*c.out)
	width := len(x) / (seqs * length)
	n := max(1, chunkTokens/length)
	errs := make([]error, (seqs+n-1)/n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, r.engine.Parallel())
	for i := range errs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			from, to := i*n*length, min((i+1)*n, seqs)*length
			dims := []int{to - from, width}
			if c.deep {
				dims = []int{(to - from) / length, length, width}
			}
			errs[i] = r.chunk(c, x[from*width:to*width], dims, result[from*c.out:to*c.out], from, w)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return result, nil
}

// chunk computes a part of x, of shape dims, into dst; first is the number of x's first token.
func (r *Runner) chunk(c call, x []float32, dims []int, dst []float32, first int, w []*mlx.Tensor) error {
	in, err := r.engine.Upload(x, dims...)
	if err != nil {
		return err
	}
	defer in.Free()
	results, err := r.parts[c.part].Call(append([]*mlx.Tensor{in}, w...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", c.what, err)
	}
	defer results[0].Free()
	if err := results[0].Read(dst); err != nil {
		return err
	}
	if i := kernels.NotFinite(dst); i >= 0 {
		return &NonFiniteError{What: c.what, Token: first + i/c.out, Channel: i % c.out}
	}
	return nil
}
