package prism

import (
	"errors"
	"fmt"
	"math"

	"bonsai/ops/gguf"
	"bonsai/ops/model"
)

// readConfig reads the config of a model from the keys of its architecture.
func readConfig(f *gguf.File, arch string) (*model.Config, error) {
	if arch != "llama" && arch != "qwen3" {
		return nil, fmt.Errorf("%s: %w: architecture %q; llama and qwen3 can be read", f.Name(), model.ErrUnsupported, arch)
	}
	k := &keys{f: f, arch: arch}
	c := &model.Config{
		Type:         arch,
		Hidden:       k.whole("embedding_length", -1),
		Intermediate: k.whole("feed_forward_length", -1),
		Layers:       k.whole("block_count", -1),
		Heads:        k.whole("attention.head_count", -1),
		Epsilon:      k.real("attention.layer_norm_rms_epsilon", -1),
		Context:      k.whole("context_length", -1),
		QKNorm:       arch == "qwen3",
	}
	c.KVHeads = k.whole("attention.head_count_kv", c.Heads)
	c.HeadDim = k.whole("attention.key_length", c.Hidden/max(c.Heads, 1))
	k.same("attention.value_length", c.HeadDim)
	k.same("rope.dimension_count", c.HeadDim)
	for _, unknown := range []string{"expert_count", "attention.sliding_window", "attention.logit_scale", "attention.clamp_kqv"} {
		k.absent(unknown)
	}
	k.tables(c)
	k.biases(c)
	k.rope(c)
	if k.err != nil {
		return nil, k.err
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", f.Name(), gguf.ErrFormat, err)
	}
	return c, nil
}

// keys reads the keys of one architecture; the first error stays in err.
type keys struct {
	f    *gguf.File
	arch string
	err  error
}

func (k *keys) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// whole returns a count. It must be there unless missing, its default, is at least 0.
func (k *keys) whole(key string, missing int) int {
	n, err := k.f.Int(k.arch + "." + key)
	if errors.Is(err, gguf.ErrMissing) && missing >= 0 {
		return missing
	}
	if err == nil && (n < 0 || n > math.MaxInt32) {
		err = refuse(k.f, "key %s.%s is %d", k.arch, key, n)
	}
	if err != nil {
		k.fail(err)
		return 0
	}
	return int(n)
}

// real returns a float. It must be there unless missing, its default, is at least 0.
func (k *keys) real(key string, missing float64) float64 {
	x, err := gguf.Get[float32](k.f, k.arch+"."+key)
	if errors.Is(err, gguf.ErrMissing) && missing >= 0 {
		return missing
	}
	if err != nil {
		k.fail(err)
	}
	return shortest(x)
}

// shortest returns the float64 with the shortest decimal form that rounds to x: 1e-6 for
// the float32 that is nearest to it, which is what the config said.
func shortest(x float32) float64 {
	var y float64
	if _, err := fmt.Sscan(fmt.Sprint(x), &y); err != nil || float32(y) != x {
		return float64(x)
	}
	return y
}

// same refuses a key that is there with another value than want.
func (k *keys) same(key string, want int) {
	if got := k.whole(key, want); got != want && k.err == nil {
		k.fail(refuse(k.f, "key %s.%s is %d, only %d can be read", k.arch, key, got, want))
	}
}

// absent refuses a key that changes what the model computes.
func (k *keys) absent(key string) {
	if n, err := k.f.Int(k.arch + "." + key); !errors.Is(err, gguf.ErrMissing) && (err != nil || n != 0) {
		k.fail(fmt.Errorf("%s: %w: key %s.%s", k.f.Name(), model.ErrUnsupported, k.arch, key))
	}
}

// tables takes the vocabulary from the embedding, which has a row for each token.
func (k *keys) tables(c *model.Config) {
	t, ok := k.f.Lookup(embedName)
	if !ok || len(t.Shape) != 2 {
		k.fail(fmt.Errorf("%s: tensor %s: %w, or no matrix", k.f.Name(), embedName, gguf.ErrMissing))
		return
	}
	c.Vocab = int(min(t.Shape[0], math.MaxInt32))
	k.same("vocab_size", c.Vocab)
	if tokens, err := gguf.Get[[]string](k.f, "tokenizer.ggml.tokens"); err == nil && len(tokens) != c.Vocab {
		k.fail(refuse(k.f, "%d tokens in tokenizer.ggml.tokens, %d rows in %s", len(tokens), c.Vocab, embedName))
	}
	_, hasHead := k.f.Lookup(headName)
	c.Tied = !hasHead
}

// biases takes from the tensors which projections have a bias.
func (k *keys) biases(c *model.Config) {
	has := func(kind string) bool {
		_, ok := k.f.Lookup("blk.0." + kind + ".bias")
		return ok
	}
	c.QKVBias, c.OutBias, c.MLPBias = has("attn_q"), has("attn_output"), has("ffn_down")
}

// rope reads the rotary embedding.
func (k *keys) rope(c *model.Config) {
	c.Rope = model.Rope{Type: "default", Base: k.real("rope.freq_base", 10000)}
	kind, err := optional(k.f, k.arch+".rope.scaling.type", "none")
	if err != nil {
		k.fail(err)
		return
	}
	_, hasFreqs := k.f.Lookup(freqsName)
	switch {
	case hasFreqs && kind != "none":
		k.fail(refuse(k.f, "tensor %s with rope scaling of type %q", freqsName, kind))
	case hasFreqs:
		k.llama3(c)
	case kind == "none":
	case kind == "linear":
		c.Rope.Type, c.Rope.Factor = kind, k.real("rope.scaling.factor", -1)
	case kind == "yarn":
		c.Rope.Type, c.Rope.Factor = kind, k.real("rope.scaling.factor", -1)
		c.Rope.Original = k.whole("rope.scaling.original_context_length", c.Context)
		c.Rope.Attention = k.real("rope.scaling.attn_factor", 1) * yarnAttention(c.Rope.Factor)
		c.Rope.BetaFast, c.Rope.BetaSlow, c.Rope.Truncate = yarnFast, yarnSlow, true
	default:
		k.fail(fmt.Errorf("%s: %w: rope scaling of type %q", k.f.Name(), model.ErrUnsupported, kind))
	}
}

// llama3 finds the scaling whose table rope_freqs.weight is.
func (k *keys) llama3(c *model.Config) {
	divisors, err := k.f.Floats(freqsName)
	if err != nil {
		k.fail(err)
		return
	}
	if c.HeadDim != 2*len(divisors) || k.arch != "llama" {
		k.fail(refuse(k.f, "tensor %s of %d values in a model of architecture %s with heads of %d", freqsName, len(divisors), k.arch, c.HeadDim))
		return
	}
	r, ok := fitLlama3(c.Rope.Base, divisors)
	if !ok {
		k.fail(fmt.Errorf("%s: %w: %s is not the table of a llama3 rope scaling", k.f.Name(), model.ErrUnsupported, freqsName))
	}
	c.Rope = r
}
