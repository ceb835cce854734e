package prism

import (
	"math"

	"bonsai/ops/gguf"
	"bonsai/ops/model"
)

// general returns the keys that say what the file is.
func general(arch, name string, fileType uint32) []gguf.KV {
	return []gguf.KV{
		{Key: "general.architecture", Value: arch},
		{Key: "general.type", Value: "model"},
		{Key: "general.name", Value: name},
		{Key: "general.file_type", Value: fileType},
		{Key: "general.quantization_version", Value: uint32(2)},
	}
}

// architecture returns the keys that say how the model computes.
func architecture(arch string, c *model.Config, context int) []gguf.KV {
	var keys []gguf.KV
	count := func(key string, n int) { keys = append(keys, gguf.KV{Key: arch + "." + key, Value: uint32(n)}) }
	float := func(key string, x float64) { keys = append(keys, gguf.KV{Key: arch + "." + key, Value: float32(x)}) }
	count("block_count", c.Layers)
	count("context_length", context)
	count("embedding_length", c.Hidden)
	count("feed_forward_length", c.Intermediate)
	count("attention.head_count", c.Heads)
	count("attention.head_count_kv", c.KVHeads)
	count("attention.key_length", c.HeadDim)
	count("attention.value_length", c.HeadDim)
	float("attention.layer_norm_rms_epsilon", c.Epsilon)
	float("rope.freq_base", c.Rope.Base)
	count("rope.dimension_count", c.HeadDim)
	if arch == "llama" {
		count("vocab_size", c.Vocab)
	}
	return append(keys, scaling(arch, c.Rope)...)
}

// scaling returns the keys of a rotary embedding that is stretched; llama3 has none, as
// its table says all.
func scaling(arch string, r model.Rope) []gguf.KV {
	if r.Type != "linear" && r.Type != "yarn" {
		return nil
	}
	start := arch + ".rope.scaling."
	keys := []gguf.KV{{Key: start + "type", Value: r.Type}, {Key: start + "factor", Value: float32(r.Factor)}}
	if r.Type == "linear" {
		return keys
	}
	keys = append(keys, gguf.KV{Key: start + "original_context_length", Value: uint32(r.Original)})
	if factor := r.Attention / yarnAttention(r.Factor); math.Abs(factor-1) > 1e-6 {
		keys = append(keys, gguf.KV{Key: start + "attn_factor", Value: float32(factor)})
	}
	return keys
}

// The turns between which yarn stretches by parts. llama.cpp has keys for others, and
// ignores them in architectures llama and qwen3 (seen with v0.5.0, which heeds attn_factor).
const (
	yarnFast = 32
	yarnSlow = 1
)

// yarnAttention is what the runtime multiplies cos and sin by at a factor, before
// attn_factor.
func yarnAttention(factor float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 1 + 0.1*math.Log(factor)
}

// freqs returns rope_freqs.weight, [dim/2]: what each frequency is divided by.
func freqs(c *model.Config) []float32 {
	plain, _ := model.Rope{Type: "default", Base: c.Rope.Base}.Frequencies(c.HeadDim)
	stretched, _ := c.Rope.Frequencies(c.HeadDim)
	divisors := make([]float32, len(plain))
	for i := range divisors {
		divisors[i] = float32(plain[i] / stretched[i])
	}
	return divisors
}
