package prism_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/prism"
	"bonsai/ops/safetensors"
)

// shardOf returns the weights of a golden checkpoint.
func shardOf(name string) []byte {
	b, err := os.ReadFile(filepath.Join(testdata, "golden", name, "model.safetensors"))
	if err != nil {
		panic(err)
	}
	return b
}

// storiesFixture is the trained stories260K, widened to widths that can be ternary.
func storiesFixture(t testing.TB) *fixture {
	t.Helper()
	dir := filepath.Join(testdata, "models/stories260K")
	narrow, set := modeltest.Open(t, dir)
	wide, weights := modeltest.Widen(t, narrow, set, 128, 256, 16)
	return memoryFixture(t, wide, weights, map[string][]byte{
		prism.TokenizerFile:       readFile(t, dir, "tokenizer.json"),
		prism.TokenizerConfigFile: readFile(t, dir, "tokenizer_config.json"),
		prism.GenerationFile:      readFile(t, dir, "generation_config.json"),
	})
}

// memoryFixture makes every weight of a model in memory ternary, as PTQ1_0.
func memoryFixture(t testing.TB, c *model.Config, weights modeltest.Weights, files map[string][]byte) *fixture {
	t.Helper()
	var specs []safetensors.Spec
	for _, x := range c.Tensors() {
		specs = append(specs, safetensors.Spec{Name: x.Name, DType: safetensors.F32, Shape: x.Shape})
	}
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, specs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		if err := w.WriteFloats(s.Name, weights[s.Name]); err != nil {
			t.Fatal(err)
		}
	}
	files[prism.ConfigFile] = configJSON(t, c)
	return newFixture(t, "PTQ1_0", files, b.Bytes(), weights, nil)
}

// configJSON is modeltest.ConfigJSON with rope_scaling.
func configJSON(t testing.TB, c *model.Config) []byte {
	t.Helper()
	var keys map[string]any
	if err := json.Unmarshal(modeltest.ConfigJSON(c), &keys); err != nil {
		t.Fatal(err)
	}
	r := c.Rope
	scaling := map[string]any{"rope_type": r.Type, "factor": r.Factor}
	switch r.Type {
	case "llama3":
		scaling["low_freq_factor"], scaling["high_freq_factor"] = r.LowFreq, r.HighFreq
		scaling["original_max_position_embeddings"] = r.Original
	case "yarn":
		scaling["beta_fast"], scaling["beta_slow"], scaling["truncate"] = r.BetaFast, r.BetaSlow, r.Truncate
		scaling["original_max_position_embeddings"], scaling["attention_factor"] = r.Original, r.Attention
	}
	if r.Type != "default" {
		keys["rope_scaling"] = scaling
	}
	text, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
