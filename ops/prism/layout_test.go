package prism_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/prism"
)

// known are models whose size is published. (architectures.md 5)
var known = []struct {
	config  string
	weights int64
	payload float64 // GB of PTQ1_0, without a tied table
	table   int64   // bytes of a tied table
}{
	{`{"model_type":"qwen3","hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"intermediate_size":12288,"vocab_size":151936}`, 8_190_735_360, 1.79, 0},
	{`{"model_type":"qwen3","hidden_size":1024,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":128,"intermediate_size":3072,"vocab_size":151936,"tie_word_embeddings":true}`, 596_049_920, 0.096, 2 * 155_582_464},
	{`{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"rope_theta":500000,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192}}`, 8_030_261_248, 1.76, 0},
	{`{"model_type":"mistral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32768,"sliding_window":null}`, 7_248_023_552, 1.58, 0},
}

func TestPlanKnownModels(t *testing.T) {
	for _, test := range known {
		c, err := model.ParseConfig([]byte(test.config))
		if err != nil {
			t.Fatal(err)
		}
		l, err := prism.Plan(c, "PTQ1_0", ternary(c), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := float64(l.Bytes-test.table) / 1e9
		if l.Weights != test.weights || math.Abs(got/test.payload-1) > 0.01 {
			t.Errorf("%s of %d layers: %d weights, %.3f GB, want %d, %.3f", c.Type, c.Layers, l.Weights, got, test.weights, test.payload)
		}
		if untied := !c.Tied; untied && math.Abs(l.BitsPerWeight()-1.752) > 0.003 {
			t.Errorf("%s: %.4f bits a weight", c.Type, l.BitsPerWeight())
		}
	}
}

// ternary returns all tensors that can be.
func ternary(c *model.Config) (names []string) {
	for _, t := range c.Tensors() {
		if t.Group != "" && (!c.Tied || t.Name != model.EmbedName) {
			names = append(names, t.Name)
		}
	}
	return names
}

func TestPlanRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		config  string
		context int
		want    string
	}{
		"a window in some layers":  {`{"model_type":"qwen3","num_hidden_layers":4,"use_sliding_window":true,"sliding_window":64,"max_window_layers":3}`, 0, "layer 3 has a sliding window of 64 tokens"},
		"a context over a window":  {`{"model_type":"mistral","max_position_embeddings":4096,"sliding_window":4096}`, 4097, "sliding window of 4096"},
		"biases of qwen3":          {`{"model_type":"qwen3","attention_bias":true}`, 0, "qwen3 has no biases"},
		"llama3 scaling of qwen3":  {`{"model_type":"qwen3","rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192}}`, 0, "rope_freqs.weight"},
		"yarn that does not round": {`{"model_type":"qwen3","rope_scaling":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":32768,"truncate":false}}`, 0, "truncate"},
		"yarn with other bounds":   {`{"model_type":"llama","rope_scaling":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":32768,"beta_fast":16}}`, 0, "beta_fast 16"},
		"qwen2":                    {`{"model_type":"qwen2"}`, 0, "qwen2"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := model.ParseConfig([]byte(test.config))
			if err != nil {
				t.Fatal(err)
			}
			_, err = prism.Plan(c, "PQ2_0", ternary(c), test.context)
			if !errors.Is(err, model.ErrUnsupported) || !contains(err, test.want) {
				t.Errorf("Plan = %v, want ErrUnsupported with %q", err, test.want)
			}
		})
	}
	c, err := model.ParseConfig([]byte(`{"model_type":"llama","hidden_size":320,"intermediate_size":512,"num_attention_heads":5,"num_key_value_heads":5}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prism.Plan(c, "PTQ1_0", ternary(c), 0); !contains(err, "model.embed_tokens.weight") || !contains(err, "width 320 is not a multiple of 128") {
		t.Errorf("Plan of width 320 = %v", err)
	}
}

// A window that is no shorter than the context changes nothing and is no error.
func TestPlanWindow(t *testing.T) {
	c, err := model.ParseConfig([]byte(`{"model_type":"mistral","max_position_embeddings":4096,"sliding_window":4096}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prism.Plan(c, "PTQ1_0", ternary(c), 0); err != nil {
		t.Error(err)
	}
}

func ExamplePlan() {
	c, err := model.ParseConfig([]byte(known[0].config))
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := prism.Plan(c, "PTQ1_0", ternary(c), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d tensors, %d ternary, %d bytes, %.3f bits a weight\n", l.Arch, len(l.Tensors), l.Ternary(), l.Bytes, l.BitsPerWeight())
	fmt.Println(l.Tensors[2].From, "->", l.Tensors[2].Name, l.Tensors[2].Type, l.Tensors[2].Shape)
	// Output:
	// qwen3: 399 tensors, 254 ternary, 1792888832 bytes, 1.751 bits a weight
	// model.layers.0.self_attn.q_proj.weight -> blk.0.attn_q.weight PTQ1_0 [4096 4096]
}
