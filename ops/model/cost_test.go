package model_test

import (
	"math"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
)

// qwen3x8B is the shape of Qwen3-8B.
func qwen3x8B() *model.Config {
	c := modeltest.Tiny("qwen3")
	c.Vocab, c.Hidden, c.Intermediate, c.Layers, c.Heads, c.KVHeads, c.HeadDim = 151936, 4096, 12288, 36, 32, 8, 128
	return c
}

// TestForwardFLOPs compares with the 15.1 GFLOP a token that architectures of this size are planned with, to which
// attention adds four for each channel of each key seen.
func TestForwardFLOPs(t *testing.T) {
	c := qwen3x8B()
	const seen = 1024.5 // by the average of 2048 queries
	want := 15.136e9 + 36*4*4096*seen
	if got := c.ForwardFLOPs(2048); math.Abs(got/want-1) > 1e-3 {
		t.Errorf("%.4g FLOP a token, want %.4g", got, want)
	}
	c.Windows = make([]int, c.Layers)
	for i := range c.Windows {
		c.Windows[i] = 128
	}
	want = 15.136e9 + 36*4*4096*128
	if got := c.ForwardFLOPs(2048); math.Abs(got/want-1) > 1e-3 {
		t.Errorf("with windows %.4g FLOP a token, want %.4g", got, want)
	}
}

// TestPeak checks the estimates against their largest terms: states, weights, and what a call of at least a sequence needs.
func TestPeak(t *testing.T) {
	c := qwen3x8B()
	const tokens, length = 8 * 2048, 2048
	for part, want := range map[string]int64{
		model.PartEmbed:    4 * (tokens + int64(c.Vocab)) * 4096,
		model.GroupQKV:     4 * tokens * 2 * 4096,
		model.GroupO:       4 * (tokens*2*4096 + 4096*6144),
		model.PartMid:      4 * (tokens*2*4096 + 4096*(6144+4096)),
		model.GroupGateUp:  4 * tokens * 2 * 4096,
		model.GroupDown:    4 * (tokens*(4096+12288) + 2*4096*12288),
		model.PartOut:      4 * (tokens*2*4096 + 3*4096*12288),
		model.PartFinal:    4 * tokens * 2 * 4096,
		model.PartLogits:   4 * (tokens*(4096+int64(c.Vocab)) + 4096*int64(c.Vocab)),
		"no part, no cost": 4 * tokens * 4096,
	} {
		got := c.Peak(part, tokens, length, 2)
		if got < want || got > 3*want {
			t.Errorf("%s: %d bytes, its states and weights alone take %d", part, got, want)
		}
		if more := c.Peak(part, 2*tokens, length, 2); more <= got {
			t.Errorf("%s: %d bytes for twice the tokens, %d for half", part, more, got)
		}
	}
}
