package model_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
)

// edit returns the JSON of a small config of the given type with some keys changed.
func edit(kind string, keys map[string]any) []byte {
	all := map[string]any{}
	if err := json.Unmarshal(modeltest.ConfigJSON(modeltest.Tiny(kind)), &all); err != nil {
		panic(err)
	}
	maps.Copy(all, keys)
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return text
}

func TestParseConfigDefaults(t *testing.T) {
	rope := model.Rope{Type: "default", Base: 10000}
	window := make([]int, 32)
	for i := range window {
		window[i] = 4096
	}
	for _, want := range []model.Config{
		{
			Type: "llama", Vocab: 32000, Hidden: 4096, Intermediate: 11008, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 128,
			Epsilon: 1e-6, Context: 2048, Rope: rope,
		},
		{
			Type: "mistral", Vocab: 32000, Hidden: 4096, Intermediate: 14336, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128,
			Epsilon: 1e-6, Context: 131072, Rope: rope, Windows: window,
		},
		{
			Type: "qwen2", Vocab: 151936, Hidden: 4096, Intermediate: 22016, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 128,
			Epsilon: 1e-6, Context: 32768, QKVBias: true, Rope: rope,
		},
		{
			Type: "qwen3", Vocab: 151936, Hidden: 4096, Intermediate: 22016, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 128,
			Epsilon: 1e-6, Context: 32768, QKNorm: true, Rope: rope,
		},
	} {
		got, err := model.ParseConfig([]byte(`{"model_type": "` + want.Type + `"}`))
		if err != nil {
			t.Errorf("%s: %v", want.Type, err)
		} else if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v\nwant %+v", want.Type, *got, want)
		}
	}
}

func TestParseConfigReads(t *testing.T) {
	for _, test := range []struct {
		name string
		kind string
		keys map[string]any
		want func(c *model.Config) bool
	}{
		{"head_dim null is absent", "llama", map[string]any{"head_dim": nil}, func(c *model.Config) bool { return c.HeadDim == 32 }},
		{"head_dim need not be hidden/heads", "qwen3", map[string]any{"head_dim": 64}, func(c *model.Config) bool { return c.HeadDim == 64 }},
		{
			"attention_bias of llama includes o", "llama",
			map[string]any{"attention_bias": true, "mlp_bias": true},
			func(c *model.Config) bool { return c.QKVBias && c.OutBias && c.MLPBias },
		},
		{"qwen2 has no o bias", "qwen2", nil, func(c *model.Config) bool { return c.QKVBias && !c.OutBias }},
		{"mistral without window", "mistral", map[string]any{"sliding_window": nil}, func(c *model.Config) bool { return c.Windows == nil }},
		{
			"mistral with window", "mistral",
			map[string]any{"sliding_window": 16},
			func(c *model.Config) bool { return c.Window(0) == 16 && c.Window(1) == 16 },
		},
		{
			"qwen2 ignores a window that is not used", "qwen2",
			map[string]any{"sliding_window": 16, "max_window_layers": 0},
			func(c *model.Config) bool { return c.Windows == nil && c.Window(1) == 0 },
		},
		{
			"qwen2 windows start at max_window_layers", "qwen2",
			map[string]any{"sliding_window": 16, "max_window_layers": 1, "use_sliding_window": true},
			func(c *model.Config) bool { return slices.Equal(c.Windows, []int{0, 16}) },
		},
		{
			"layer_types decide", "qwen3",
			map[string]any{"sliding_window": 16, "use_sliding_window": true, "layer_types": []string{"sliding_attention", "full_attention"}},
			func(c *model.Config) bool { return slices.Equal(c.Windows, []int{16, 0}) },
		},
		{
			"rope_theta of the dictionary wins", "llama",
			map[string]any{"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 5e5}},
			func(c *model.Config) bool { return c.Rope.Base == 5e5 },
		},
		{
			"rope_scaling wins over rope_parameters", "llama",
			map[string]any{
				"rope_scaling":    map[string]any{"type": "linear", "factor": 2},
				"rope_parameters": map[string]any{"rope_type": "default"},
			},
			func(c *model.Config) bool { return c.Rope.Type == "linear" && c.Rope.Factor == 2 },
		},
		{
			"yarn without an original length takes the context", "qwen3",
			map[string]any{"rope_scaling": map[string]any{"type": "yarn", "factor": 4}},
			func(c *model.Config) bool { return c.Rope.Original == 256 && c.Rope.Truncate },
		},
	} {
		c, err := model.ParseConfig(edit(test.kind, test.keys))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if !test.want(c) {
			t.Errorf("%s: got %+v", test.name, *c)
		}
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for _, test := range []struct {
		name        string
		kind        string
		keys        map[string]any
		unsupported bool   // wraps ErrUnsupported
		want        string // in the message
	}{
		{"unknown type", "llama", map[string]any{"model_type": "gpt2"}, true, `model_type "gpt2"; supported are llama, mistral, qwen2, qwen3`},
		{"no type", "llama", map[string]any{"model_type": nil}, true, `model_type ""; supported are`},
		{"hybrid", "llama", map[string]any{"model_type": "qwen3_5"}, true, `model_type "qwen3_5"; supported are`},
		{"experts by type", "qwen3", map[string]any{"model_type": "qwen3_moe"}, true, "mixture of experts"},
		{"mixtral", "mistral", map[string]any{"model_type": "mixtral"}, true, "mixture of experts"},
		{"experts by count", "llama", map[string]any{"num_local_experts": 8}, true, "mixture of experts"},
		{"quantized", "llama", map[string]any{"quantization_config": map[string]any{"quant_method": "gptq"}}, true, "quantized already"},
		{"activation", "llama", map[string]any{"hidden_act": "gelu"}, true, `hidden_act "gelu"`},
		{"tensor parallel", "llama", map[string]any{"pretraining_tp": 2}, true, "pretraining_tp 2"},
		{"adapter", "llama", map[string]any{"peft_type": "LORA"}, true, "adapter"},
		{"partial rotation", "llama", map[string]any{"partial_rotary_factor": 0.5}, true, "partial_rotary_factor 0.5"},
		{"dynamic rope", "llama", map[string]any{"rope_scaling": map[string]any{"type": "dynamic", "factor": 2}}, true, `rotary embedding of type "dynamic"`},
		{"longrope", "llama", map[string]any{"rope_scaling": map[string]any{"rope_type": "longrope"}}, true, `rotary embedding of type "longrope"`},
		{
			"rope by layer type", "qwen3",
			map[string]any{"rope_parameters": map[string]any{"full_attention": map[string]any{"rope_type": "default"}}},
			true, "differ between layers",
		},
		{"layer type", "qwen3", map[string]any{"layer_types": []string{"full_attention", "linear_attention"}}, true, "linear_attention"},
		{"number of layer types", "qwen3", map[string]any{"layer_types": []string{"full_attention"}}, false, "layer_types has 1 entries for 2 layers"},
		{"wrong kind of value", "llama", map[string]any{"hidden_size": "4096"}, false, `hidden_size is "4096", want a whole number`},
		{"fraction", "llama", map[string]any{"hidden_size": 12.5}, false, "hidden_size is 12.5, want a whole number"},
		{"negative", "llama", map[string]any{"vocab_size": -1}, false, "vocab_size is -1"},
		{"huge", "llama", map[string]any{"num_hidden_layers": 1 << 40}, false, "num_hidden_layers is 1099511627776"},
		{"heads", "llama", map[string]any{"num_key_value_heads": 3}, false, "not a multiple of num_key_value_heads 3"},
		{"no heads", "llama", map[string]any{"num_attention_heads": 0, "head_dim": nil}, false, "num_attention_heads is 0"},
		{"odd head", "llama", map[string]any{"head_dim": 31}, false, "head_dim 31 is odd"},
		{"epsilon", "llama", map[string]any{"rms_norm_eps": 0}, false, "rms_norm_eps is 0"},
		{"negative window", "mistral", map[string]any{"sliding_window": -5}, false, "sliding_window of layer 0 is -5"},
		{"base", "llama", map[string]any{"rope_theta": 0}, false, "rope_theta is 0"},
		{"no factor", "llama", map[string]any{"rope_scaling": map[string]any{"type": "linear"}}, false, "factor is 0"},
		{"factors of llama3", "llama", map[string]any{"rope_scaling": map[string]any{"type": "llama3", "factor": 8}}, false, "low_freq_factor 0"},
		{"yarn bounds", "qwen3", map[string]any{"rope_scaling": map[string]any{"type": "yarn", "factor": 4, "beta_fast": 1}}, false, "beta_fast 1"},
	} {
		_, err := model.ParseConfig(edit(test.kind, test.keys))
		switch {
		case err == nil:
			t.Errorf("%s: no error", test.name)
		case !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: %q does not say %q", test.name, err, test.want)
		case errors.Is(err, model.ErrUnsupported) != test.unsupported:
			t.Errorf("%s: %q wraps ErrUnsupported: %v", test.name, err, !test.unsupported)
		}
	}
	for _, text := range []string{"", "null", "[]", "{", `"x"`} {
		if _, err := model.ParseConfig([]byte(text)); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

// FuzzParseConfig looks for panics, and for configs that are accepted though they are not valid.
func FuzzParseConfig(f *testing.F) {
	for _, kind := range []string{"llama", "mistral", "qwen2", "qwen3"} {
		f.Add(edit(kind, nil))
	}
	f.Add(edit("qwen3", map[string]any{"rope_scaling": map[string]any{"type": "yarn", "factor": 4}, "use_sliding_window": true}))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := model.ParseConfig(text)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCheckTernary(t *testing.T) {
	c := modeltest.Tiny("llama")
	if err := c.CheckTernary(); err != nil {
		t.Error(err)
	}
	c.Hidden, c.Intermediate = 64, 172
	err := c.CheckTernary()
	if !errors.Is(err, model.ErrUnsupported) || !strings.Contains(err.Error(), "hidden_size 64, intermediate_size 172") {
		t.Errorf("got %v", err)
	}
}

func TestCheckFiles(t *testing.T) {
	if err := model.CheckFiles([]string{"config.json", "model.safetensors"}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors"} {
		if err := model.CheckFiles([]string{"README.md", name}); !errors.Is(err, model.ErrUnsupported) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestConfigOfTestModels checks the configs that other packages test with.
func TestConfigOfTestModels(t *testing.T) {
	for _, dir := range []string{"models/tiny-qwen3", "models/stories260K", "golden/llama", "golden/qwen3-tied"} {
		text, err := os.ReadFile(filepath.Join("../../testdata", dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.ParseConfig(text); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
