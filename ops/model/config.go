package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnsupported is what every refusal of a well-formed config.json wraps.
var ErrUnsupported = errors.New("unsupported model")

// A Config is what a config.json says about a forward pass, defaults filled in. All fields are exported and plain,
// so that an op can hold one as a setting.
type Config struct {
	Type         string  // "llama", "mistral", "qwen2" or "qwen3"
	Vocab        int     // rows of the embedding
	Hidden       int     // width of the residual stream
	Intermediate int     // width inside the MLP
	Layers       int     // number of layers
	Heads        int     // query heads
	KVHeads      int     // key and value heads; divides Heads
	HeadDim      int     // width of one head, even
	Epsilon      float64 // added to the mean square in every RMSNorm
	Context      int     // longest sequence the author claims, tokens
	Tied         bool    // the head is the embedding
	QKVBias      bool    // q, k and v projections have a bias
	OutBias      bool    // the o projection has one
	MLPBias      bool    // gate, up and down projections have one
	QKNorm       bool    // queries and keys are normed per head
	Rope         Rope    // rotary embedding
	Windows      []int   // nil, or for each layer the sliding window in tokens, 0 for full attention
}

// supported lists the model types with an adapter, in the order messages name them.
func supported() []string { return []string{"llama", "mistral", "qwen2", "qwen3"} }

// ParseConfig reads a config.json of the Hugging Face layout. Absent keys get the defaults of their model type's
// class in transformers 5. It refuses, wrapping ErrUnsupported and naming the key, whatever the forward pass of this
// package would get wrong: mixture-of-experts and already quantized checkpoints, other activations, rotary
// embeddings that change with the length, adapters without their base model.
func ParseConfig(configJSON []byte) (*Config, error) {
	f, err := parseFields(configJSON)
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	if err := refuse(f); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	c := read(f)
	if f.err != nil {
		return nil, fmt.Errorf("config.json: %w", f.err)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

// refuse returns an error for what no supported model has.
func refuse(f *fields) error {
	if f.has("peft_type") {
		return fmt.Errorf("%w: this is an adapter (PEFT), not a model: merge it into its base model first", ErrUnsupported)
	}
	kind := f.text("model_type", "")
	for _, key := range []string{"num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"} {
		if f.has(key) && f.whole(key, 0) > 0 || strings.Contains(kind, "moe") || kind == "mixtral" {
			return fmt.Errorf("%w: a mixture of experts (model_type %q); only dense models are supported", ErrUnsupported, kind)
		}
	}
	if !slices.Contains(supported(), kind) {
		return fmt.Errorf("%w: model_type %q; supported are %s", ErrUnsupported, kind, strings.Join(supported(), ", "))
	}
	if f.has("quantization_config") {
		return fmt.Errorf("%w: quantization_config says that its weights are quantized already; use the original checkpoint", ErrUnsupported)
	}
	if act := f.text("hidden_act", "silu"); act != "silu" {
		return fmt.Errorf("%w: hidden_act %q; only silu is supported", ErrUnsupported, act)
	}
	if tp := f.whole("pretraining_tp", 1); tp != 1 {
		return fmt.Errorf("%w: pretraining_tp %d; only 1 is supported", ErrUnsupported, tp)
	}
	if r := f.number("partial_rotary_factor", 1); r != 1 {
		return fmt.Errorf("%w: partial_rotary_factor %g; only full rotation is supported", ErrUnsupported, r)
	}
	return f.err
}

// defaults are the values of a model type's class where they differ between types.
type defaults struct{ vocab, intermediate, kvHeads, headDim, context int }

func defaultsOf(kind string, heads int) defaults {
	switch kind {
	case "mistral":
		return defaults{vocab: 32000, intermediate: 14336, kvHeads: 8, context: 131072}
	case "qwen2":
		return defaults{vocab: 151936, intermediate: 22016, kvHeads: 32, context: 32768}
	case "qwen3":
		return defaults{vocab: 151936, intermediate: 22016, kvHeads: 32, headDim: 128, context: 32768}
	default:
		return defaults{vocab: 32000, intermediate: 11008, kvHeads: heads, context: 2048}
	}
}

// read builds a Config from the fields of a supported type; errors stay in f.
func read(f *fields) *Config {
	kind := f.text("model_type", "")
	heads := f.whole("num_attention_heads", 32)
	d := defaultsOf(kind, heads)
	c := &Config{
		Type:         kind,
		Vocab:        f.whole("vocab_size", d.vocab),
		Hidden:       f.whole("hidden_size", 4096),
		Intermediate: f.whole("intermediate_size", d.intermediate),
		Layers:       f.whole("num_hidden_layers", 32),
		Heads:        heads,
		KVHeads:      f.whole("num_key_value_heads", d.kvHeads),
		HeadDim:      f.whole("head_dim", d.headDim),
		Epsilon:      f.number("rms_norm_eps", 1e-6),
		Context:      f.whole("max_position_embeddings", d.context),
		Tied:         f.flag("tie_word_embeddings", false),
		QKNorm:       kind == "qwen3",
	}
	switch kind {
	case "llama":
		c.MLPBias = f.flag("mlp_bias", false)
		fallthrough
	case "qwen3":
		c.QKVBias = f.flag("attention_bias", false)
		c.OutBias = c.QKVBias
	case "qwen2":
		c.QKVBias = true
	}
	if c.HeadDim == 0 && heads > 0 {
		c.HeadDim = c.Hidden / heads
	}
	c.Rope = readRope(f)
	c.Windows = readWindows(f, c)
	return c
}

// readWindows returns the sliding window of each layer, or nil when no layer has one.
func readWindows(f *fields, c *Config) []int {
	size := 0
	switch c.Type {
	case "mistral":
		if !f.isNull("sliding_window") {
			size = f.whole("sliding_window", 4096)
		}
	case "qwen2", "qwen3":
		if f.flag("use_sliding_window", false) && !f.isNull("sliding_window") {
			size = f.whole("sliding_window", 4096)
		}
	}
	kinds := f.texts("layer_types")
	if kinds != nil && len(kinds) != c.Layers {
		f.fail("layer_types has %d entries for %d layers", len(kinds), c.Layers)
		return nil
	}
	for _, k := range kinds {
		if k != "full_attention" && k != "sliding_attention" {
			f.fail("%w: layer_types has %q; supported are full_attention and sliding_attention", ErrUnsupported, k)
		}
	}
	if size == 0 || c.Layers <= 0 || c.Layers > maxLayers {
		return nil
	}
	first := 0
	if c.Type != "mistral" {
		first = f.whole("max_window_layers", 28)
	}
	windows := make([]int, c.Layers)
	for i := range windows {
		if (kinds == nil && i >= first) || (kinds != nil && kinds[i] == "sliding_attention") {
			windows[i] = size
		}
	}
	if slices.Max(windows) == 0 {
		return nil
	}
	return windows
}

// Bounds on a config's numbers: far above any real model, low enough that products of two stay exact.
const (
	maxLayers = 4096
	maxWidth  = 1 << 24
)

// Validate returns an error if a size is out of range or does not fit the others, naming it as config.json does.
func (c *Config) Validate() error {
	sizes := []struct {
		key   string
		value int
		limit int
	}{
		{"vocab_size", c.Vocab, maxWidth},
		{"hidden_size", c.Hidden, maxWidth},
		{"intermediate_size", c.Intermediate, maxWidth},
		{"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, maxWidth},
		{"num_key_value_heads", c.KVHeads, maxWidth},
		{"head_dim", c.HeadDim, maxWidth},
		{"max_position_embeddings", c.Context, 1 << 30},
	}
	for _, s := range sizes {
		if s.value < 1 || s.value > s.limit {
			return fmt.Errorf("%s is %d, want 1 to %d", s.key, s.value, s.limit)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("num_attention_heads %d is not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("head_dim %d is odd; rotary embeddings need pairs", c.HeadDim)
	case c.Heads*c.HeadDim > maxWidth:
		return fmt.Errorf("%d heads of %d are wider than %d", c.Heads, c.HeadDim, maxWidth)
	case !(c.Epsilon > 0 && c.Epsilon < 1):
		return fmt.Errorf("rms_norm_eps is %g, want above 0 and below 1", c.Epsilon)
	case c.Windows != nil && len(c.Windows) != c.Layers:
		return fmt.Errorf("%d sliding windows for %d layers", len(c.Windows), c.Layers)
	}
	for i, w := range c.Windows {
		if w < 0 {
			return fmt.Errorf("sliding_window of layer %d is %d", i, w)
		}
	}
	return c.Rope.validate()
}

// CheckTernary returns an error that names every input width which is not a multiple of 128, the number of weights
// that share one scale: such a model runs, but cannot be made ternary.
func (c *Config) CheckTernary() error {
	const group = 128
	var bad []string
	for _, w := range []struct {
		key   string
		value int
	}{
		{"hidden_size", c.Hidden},
		{"num_attention_heads × head_dim", c.Heads * c.HeadDim},
		{"intermediate_size", c.Intermediate},
	} {
		if w.value%group != 0 {
			bad = append(bad, fmt.Sprintf("%s %d", w.key, w.value))
		}
	}
	if bad == nil {
		return nil
	}
	return fmt.Errorf("%w: ternary weights need input widths that are multiples of %d, not %s", ErrUnsupported, group, strings.Join(bad, ", "))
}

// Window returns the sliding window of a layer: token i attends to tokens above i - window, up to i. 0 means all.
func (c *Config) Window(layer int) int {
	if c.Windows == nil {
		return 0
	}
	return c.Windows[layer]
}

// Widths returns the distinct input widths of the weights that are made ternary, ascending.
func (c *Config) Widths() []int {
	w := []int{c.Hidden, c.Heads * c.HeadDim, c.Intermediate}
	slices.Sort(w)
	return slices.Compact(w)
}
