package model_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
)

// TestTensorsOfCheckpoints checks that the golden and trained checkpoints have the tensors that their configs ask for.
func TestTensorsOfCheckpoints(t *testing.T) {
	for _, dir := range []string{
		"golden/llama", "golden/llama3-rope", "golden/mistral-window", "golden/qwen2", "golden/qwen3", "golden/qwen3-tied",
		"models/tiny-qwen3", "models/stories260K",
	} {
		c, set := modeltest.Open(t, filepath.Join("../../testdata", dir))
		have := map[string][]int64{}
		for _, x := range set.Tensors() {
			have[x.Name] = x.Shape
		}
		if err := c.CheckTensors(have); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func shapes(c *model.Config) map[string][]int64 {
	have := map[string][]int64{}
	for _, x := range c.Tensors() {
		have[x.Name] = x.Shape
	}
	return have
}

func TestCheckTensors(t *testing.T) {
	c := modeltest.Tiny("qwen2")
	have := shapes(c)
	have["model.layers.0.self_attn.rotary_emb.inv_freq"] = []int64{16}
	if err := c.CheckTensors(have); err != nil {
		t.Errorf("stored frequencies: %v", err)
	}
	delete(have, "model.norm.weight")
	have["model.layers.1.mlp.up_proj.weight"] = []int64{128, 256}
	have["model.layers.0.self_attn.o_proj.bias"] = []int64{128}
	err := c.CheckTensors(have)
	var e *model.TensorsError
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"1 missing: model.norm.weight",
		"1 of another shape: model.layers.1.mlp.up_proj.weight is [128 256], want [256 128]",
		"1 unexpected: model.layers.0.self_attn.o_proj.bias",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	err = c.CheckTensors(nil)
	if !strings.Contains(err.Error(), "27 missing: model.embed_tokens.weight, ") || !strings.HasSuffix(err.Error(), ", …") {
		t.Errorf("got %v", err)
	}
}

func TestCheckTied(t *testing.T) {
	c := modeltest.Tiny("llama")
	w := modeltest.Random(c, 1)
	have := shapes(c)
	c.Tied = true
	if err := c.CheckTensors(have); err != nil {
		t.Errorf("a copy of a tied table: %v", err)
	}
	if err := c.CheckTied(have, w); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Errorf("tables that differ: %v", err)
	}
	w["lm_head.weight"] = w[model.EmbedName]
	if err := c.CheckTied(have, w); err != nil {
		t.Errorf("equal tables: %v", err)
	}
	delete(have, "lm_head.weight")
	if err := c.CheckTied(have, nil); err != nil {
		t.Errorf("one table: %v", err)
	}
	if c.HeadName() != model.EmbedName {
		t.Errorf("the head of a tied model is %s", c.HeadName())
	}
}

func TestGroups(t *testing.T) {
	c := modeltest.Tiny("qwen3")
	c.HeadDim = 64
	var names []string
	for _, g := range c.Groups(1) {
		names = append(names, g.Name)
		for _, name := range g.Tensors {
			i := slices.IndexFunc(c.Tensors(), func(x model.Tensor) bool { return x.Name == name })
			x := c.Tensors()[i]
			if x.Shape[1] != int64(g.Width) || x.Layer != 1 || x.Group != g.Name {
				t.Errorf("group %s of width %d has %+v", g.Name, g.Width, x)
			}
		}
	}
	if want := []string{"qkv", "o", "gateup", "down"}; !slices.Equal(names, want) {
		t.Errorf("groups are %v, want %v", names, want)
	}
	if got := c.Widths(); !slices.Equal(got, []int{128, 256}) {
		t.Errorf("widths are %v", got)
	}
}
