// Package prism is Prism's layout of a ternary model in a GGUF file: how tensors are
// named and ordered, which metadata a runtime needs, and the contract that tells it to
// rotate activations (the keys prism.hadamard.*).
//
// It knows dense models of the llama and qwen3 architectures of GGUF; it does not know
// how codes are found, nor the bytes of the container (ops/gguf).
// Start at Plan for what a file will hold, Write and Verify for the ops that make one,
// Load to run one.
//
// Source: the published files of PrismML and the loader of its llama.cpp fork, tags
// prism-b10683 to b10777.
package prism

import (
	"errors"
	"fmt"

	"bonsai/ops/gguf"
	"bonsai/ops/model"
)

// ErrMismatch is wrapped by what Verify finds: a file that is not what was to be written.
var ErrMismatch = errors.New("the file is not what was to be written")

// Formats returns the formats of ternary tensors that Write knows, by ggml's names.
func Formats() []string { return []string{gguf.PTQ1.String(), gguf.PQ2.String()} }

// formatOf returns the type of a format and the number that general.file_type has in the
// published files of it.
func formatOf(format string) (t gguf.Type, fileType uint32, err error) {
	switch format {
	case gguf.PTQ1.String():
		return gguf.PTQ1, 143, nil
	case gguf.PQ2.String():
		return gguf.PQ2, 141, nil
	default:
		return 0, 0, fmt.Errorf("format %q is none of %v", format, Formats())
	}
}

// archOf returns general.architecture for a model, or an error that wraps
// model.ErrUnsupported for one that a runtime would compute otherwise, or not at all.
func archOf(c *model.Config, context int) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%w in GGUF: %s", model.ErrUnsupported, fmt.Sprintf(format, args...))
	}
	arch := ""
	switch c.Type {
	case "llama", "mistral":
		arch = "llama"
	case "qwen3":
		arch = "qwen3"
	case "qwen2":
		return refuse("Prism's runtime does not load prism.hadamard.* for qwen2, so a rotated file of it would be refused")
	default:
		return refuse("no layout for model_type %q", c.Type)
	}
	for l := range c.Layers {
		if w := c.Window(l); w > 0 && w < context {
			return refuse("layer %d has a sliding window of %d tokens, which architecture %s has no key for; beyond %d tokens of context the runtime would compute another model (context_length is %d)", l, w, arch, w, context)
		}
	}
	if arch == "qwen3" && (c.QKVBias || c.OutBias || c.MLPBias) {
		return refuse("architecture qwen3 has no biases, the model has")
	}
	if arch == "qwen3" && c.Rope.Type == "llama3" {
		return refuse("architecture qwen3 takes no rope_freqs.weight, which llama3 rope scaling needs")
	}
	if r := c.Rope; r.Type == "yarn" && (!r.Truncate || r.BetaFast != yarnFast || r.BetaSlow != yarnSlow) {
		return refuse("yarn rope scaling with beta_fast %g, beta_slow %g, truncate %v; the runtime has %d, %d and true", r.BetaFast, r.BetaSlow, r.Truncate, yarnFast, yarnSlow)
	}
	return arch, nil
}

// contextOf returns the context_length to write.
func contextOf(c *model.Config, context int) int {
	if context == 0 {
		return c.Context
	}
	return context
}
