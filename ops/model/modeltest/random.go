package modeltest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// Weights is a model.Source in memory.
type Weights map[string][]float32

// Floats implements model.Source.
func (w Weights) Floats(name string) ([]float32, error) {
	v, ok := w[name]
	if !ok {
		return nil, fmt.Errorf("no tensor %s", name)
	}
	return slices.Clone(v), nil
}

// Random returns the weights of an untrained model: normal, of variance 1/in, norms near one, biases small. The same
// seed gives the same weights.
func Random(c *model.Config, seed uint64) Weights {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := Weights{}
	for _, t := range c.Tensors() {
		center, spread := 0.0, 0.1
		switch {
		case len(t.Shape) == 2:
			spread = 1 / math.Sqrt(float64(t.Shape[1]))
		case strings.HasSuffix(t.Name, "norm.weight"):
			center = 1
		}
		v := make([]float32, t.Size())
		for i := range v {
			v[i] = float32(center + spread*rng.NormFloat64())
		}
		w[t.Name] = v
	}
	return w
}

// Tiny returns a config of the given type with two layers, all of whose ternary widths are multiples of 128.
func Tiny(kind string) *model.Config {
	c := &model.Config{
		Type: kind, Vocab: 96, Hidden: 128, Intermediate: 256, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32,
		Epsilon: 1e-6, Context: 256, Rope: model.Rope{Type: "default", Base: 10000},
	}
	c.QKNorm, c.QKVBias = kind == "qwen3", kind == "qwen2"
	return c
}

// Write writes a checkpoint of float32 weights in the Hugging Face layout to a folder, which it makes: config.json and
// model.safetensors. The config must be one that config.json can say without rope_scaling or windows.
func Write(t testing.TB, dir string, c *model.Config, w Weights) {
	t.Helper()
	if err := write(dir, c, w); err != nil {
		t.Fatal(err)
	}
}

func write(dir string, c *model.Config, w Weights) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), ConfigJSON(c), 0o666); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return err
	}
	defer f.Close()
	var specs []safetensors.Spec
	for _, x := range c.Tensors() {
		specs = append(specs, safetensors.Spec{Name: x.Name, DType: safetensors.F32, Shape: x.Shape})
	}
	out, err := safetensors.NewWriter(f, specs, nil)
	if err != nil {
		return err
	}
	for _, s := range specs {
		if err := out.WriteFloats(s.Name, w[s.Name]); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return f.Close()
}

// ConfigJSON returns the config.json of a config without rope_scaling and windows.
func ConfigJSON(c *model.Config) []byte {
	keys := map[string]any{
		"model_type":              c.Type,
		"vocab_size":              c.Vocab,
		"hidden_size":             c.Hidden,
		"intermediate_size":       c.Intermediate,
		"num_hidden_layers":       c.Layers,
		"num_attention_heads":     c.Heads,
		"num_key_value_heads":     c.KVHeads,
		"head_dim":                c.HeadDim,
		"rms_norm_eps":            c.Epsilon,
		"max_position_embeddings": c.Context,
		"tie_word_embeddings":     c.Tied,
		"rope_theta":              c.Rope.Base,
		"hidden_act":              "silu",
	}
	if c.Type == "mistral" {
		keys["sliding_window"] = nil
	}
	if c.Type == "llama" || c.Type == "qwen3" {
		keys["attention_bias"] = c.QKVBias
	}
	if c.Type == "llama" {
		keys["mlp_bias"] = c.MLPBias
	}
	text, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		panic(err) // numbers and strings always have a JSON form
	}
	return text
}
