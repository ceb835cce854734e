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
	real := func(key string, x float64) { keys = append(keys, gguf.KV{Key: arch + "." + key, Value: float32(x)}) }
	count("block_count", c.Layers)
	count("context_length", context)
	count("embedding_length", c.Hidden)
	count("feed_forward_length", c.Intermediate)
	count("attention.head_count", c.Heads)
	count("attention.head_count_kv", c.KVHeads)
	count("attention.key_length", c.HeadDim)
	count("attention.value_length", c.HeadDim)
	real("attention.layer_norm_rms_epsilon", c.Epsilon)
	real("rope.freq_base", c.Rope.Base)
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
	prefix := arch + ".rope.scaling."
	keys := []gguf.KV{{Key: prefix + "type", Value: r.Type}, {Key: prefix + "factor", Value: float32(r.Factor)}}
	if r.Type == "linear" {
		return keys
	}
	keys = append(keys, gguf.KV{Key: prefix + "original_context_length", Value: uint32(r.Original)})
	for _, k := range []struct {
		key          string
		value, usual float64 // the runtime's value without the key
	}{
		{"attn_factor", r.Attention / yarnAttention(r.Factor), 1},
		{"yarn_beta_fast", r.BetaFast, 32},
		{"yarn_beta_slow", r.BetaSlow, 1},
	} {
		if math.Abs(k.value-k.usual) > 1e-6 {
			keys = append(keys, gguf.KV{Key: prefix + k.key, Value: float32(k.value)})
		}
	}
	return keys
}

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
