package model_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
)

// variants are the forward passes that differ in more than sizes.
func variants() map[string]*model.Config {
	all := map[string]*model.Config{}
	for _, kind := range []string{"llama", "qwen2", "qwen3"} {
		all[kind] = modeltest.Tiny(kind)
	}
	c := modeltest.Tiny("llama")
	c.QKVBias, c.OutBias, c.MLPBias, c.Tied = true, true, true, true
	all["llama with all biases"] = c
	c = modeltest.Tiny("mistral")
	c.Windows = []int{0, 5}
	all["window in one layer"] = c
	return all
}

func tokens(n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*i*31 + i*17 + 3) % vocab)
	}
	return ids
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestBatch checks that a sequence's logits do not depend on the sequences beside it, to the bit, though the two are
// computed by products of different sizes.
func TestBatch(t *testing.T) {
	for name, c := range variants() {
		r, w := model.NewRunner(mlx.New("go"), c), modeltest.Random(c, 1)
		const length, seqs = 70, 17 // 17 × 70 is more than a chunk; 70 more than a block of queries
		ids := tokens(length*seqs, c.Vocab)
		forward := must[[]float32](t)
		all := forward(r.Forward(w, ids, length))
		for s := 0; s < seqs; s += 8 {
			one := forward(r.Forward(w, ids[s*length:(s+1)*length], length))
			if !slices.Equal(one, all[s*length*c.Vocab:(s+1)*length*c.Vocab]) {
				t.Errorf("%s: sequence %d depends on the others", name, s)
			}
		}
	}
}

// TestPrefix checks that no token sees a later one.
func TestPrefix(t *testing.T) {
	for name, c := range variants() {
		r, w := model.NewRunner(mlx.New("go"), c), modeltest.Random(c, 2)
		ids := tokens(90, c.Vocab)
		forward := must[[]float32](t)
		all := forward(r.Forward(w, ids, len(ids)))
		for _, n := range []int{1, 3, 64, 65} {
			some := forward(r.Forward(w, ids[:n], n))
			if d := maxDiff(some, all[:len(some)]); d > 1e-5 {
				t.Errorf("%s: logits of the first %d tokens differ by %g when more follow", name, n, d)
			}
		}
	}
}

// TestParts checks that the input vectors of each group, put through the group's weights here, give the state that
// the layer's graphs give.
func TestParts(t *testing.T) {
	for name, c := range variants() {
		const seqs, length = 3, 20
		r, w := model.NewRunner(mlx.New("go"), c), modeltest.Random(c, 3)
		get := must[[]float32](t)
		x := get(r.Embed(w, tokens(seqs*length, c.Vocab)))
		l := must[*model.Layer](t)(r.LoadLayer(w, 1))
		defer l.Free()
		y := get(l.Mid(x, seqs, length))
		next := get(l.Out(y, seqs, length))
		for _, g := range c.Groups(1) {
			state := x
			if g.From == model.MidResidual {
				state = y
			}
			in := get(l.Input(g.Name, state, seqs, length))
			if len(in) != seqs*length*g.Width {
				t.Fatalf("%s: input of %s has %d values", name, g.Name, len(in))
			}
			prefix := "model.layers.1."
			switch g.Name {
			case model.GroupQKV, model.GroupGateUp:
				norm := prefix + map[string]string{"qkv": "input_layernorm", "gateup": "post_attention_layernorm"}[g.Name] + ".weight"
				near(t, name+": input of "+g.Name, in, rmsNorm(state, w[norm], c.Epsilon))
			case model.GroupO:
				near(t, name+": state after attention", y, add(x, dense(in, w, prefix+"self_attn.o_proj", g.Width, c.OutBias)))
			case model.GroupDown:
				near(t, name+": state after the MLP", next, add(y, dense(in, w, prefix+"mlp.down_proj", g.Width, c.MLPBias)))
				h := rmsNorm(y, w[prefix+"post_attention_layernorm.weight"], c.Epsilon)
				gate, up := dense(h, w, prefix+"mlp.gate_proj", c.Hidden, c.MLPBias), dense(h, w, prefix+"mlp.up_proj", c.Hidden, c.MLPBias)
				for i, a := range gate {
					up[i] *= a / float32(1+math.Exp(-float64(a)))
				}
				near(t, name+": input of down", in, up)
			}
		}
	}
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if d := maxDiff(got, want); d > 2e-5 {
		t.Errorf("%s differs by %g", what, d)
	}
}

func add(a, b []float32) []float32 {
	sum := make([]float32, len(a))
	for i := range a {
		sum[i] = a[i] + b[i]
	}
	return sum
}

func rmsNorm(x, gain []float32, eps float64) []float32 {
	y := make([]float32, len(x))
	n := len(gain)
	for r := 0; r < len(x); r += n {
		sum := 0.0
		for _, v := range x[r : r+n] {
			sum += float64(v) * float64(v)
		}
		for i := range n {
			y[r+i] = float32(float64(x[r+i]) / math.Sqrt(sum/float64(n)+eps) * float64(gain[i]))
		}
	}
	return y
}

func dense(x []float32, w modeltest.Weights, name string, in int, bias bool) []float32 {
	weight := w[name+".weight"]
	out := len(weight) / in
	y := make([]float32, len(x)/in*out)
	for i := range y {
		sum := 0.0
		for k := range in {
			sum += float64(x[i/out*in+k]) * float64(weight[i%out*in+k])
		}
		if bias {
			sum += float64(w[name+".bias"][i%out])
		}
		y[i] = float32(sum)
	}
	return y
}

// counting is a source that notes what is read.
type counting struct {
	modeltest.Weights
	read map[string]int
}

func (c counting) Floats(name string) ([]float32, error) {
	c.read[name]++
	return c.Weights.Floats(name)
}

// TestLoadLayerIsLazy checks that a part reads the weights it needs, once.
func TestLoadLayerIsLazy(t *testing.T) {
	c := modeltest.Tiny("llama")
	src := counting{modeltest.Random(c, 4), map[string]int{}}
	r := model.NewRunner(mlx.New("go"), c)
	l := must[*model.Layer](t)(r.LoadLayer(src, 0))
	defer l.Free()
	x := make([]float32, 4*c.Hidden)
	for range 2 {
		must[[]float32](t)(l.Input("qkv", x, 1, 4))
	}
	if want := map[string]int{"model.layers.0.input_layernorm.weight": 1}; fmt.Sprint(src.read) != fmt.Sprint(want) {
		t.Errorf("the input of qkv read %v", src.read)
	}
	y := must[[]float32](t)(l.Mid(x, 1, 4))
	must[[]float32](t)(l.Out(y, 1, 4))
	for _, x := range c.LayerTensors(0) {
		if n := src.read[x.Name]; n != 1 {
			t.Errorf("%s was read %d times", x.Name, n)
		}
	}
}

func TestNonFinite(t *testing.T) {
	c := modeltest.Tiny("llama")
	w := modeltest.Random(c, 5)
	w["model.layers.1.mlp.up_proj.weight"][7*c.Hidden] = 3e38
	r := model.NewRunner(mlx.New("go"), c)
	_, err := r.Forward(w, tokens(6, c.Vocab), 6)
	var e *model.NonFiniteError
	if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "layer 1: the state after the MLP is not finite at token ") {
		t.Fatalf("got %v", err)
	}
}

func TestRunnerRefuses(t *testing.T) {
	c := modeltest.Tiny("llama")
	w := modeltest.Random(c, 6)
	r := model.NewRunner(mlx.New("go"), c)
	l := must[*model.Layer](t)(r.LoadLayer(w, 0))
	defer l.Free()
	short := modeltest.Random(c, 6)
	short[model.NormName] = short[model.NormName][:5]
	short["model.layers.0.self_attn.q_proj.weight"] = short["model.layers.0.self_attn.q_proj.weight"][:130]
	bad := must[*model.Layer](t)(r.LoadLayer(short, 0))
	delete(short, model.EmbedName)
	x := make([]float32, 2*c.Hidden)
	for _, test := range []struct {
		want string
		call func() (any, error)
	}{
		{"layer 2 of a model with 2", func() (any, error) { return r.LoadLayer(w, 2) }},
		{"token 1 is 96, not in a vocabulary of 96", func() (any, error) { return r.Embed(w, []int32{0, 96}) }},
		{"token 0 is -1", func() (any, error) { return r.Embed(w, []int32{-1}) }},
		{"no tensor model.embed_tokens.weight", func() (any, error) { return r.Embed(short, nil) }},
		{`layer 0 has no group "x"`, func() (any, error) { return l.Input("x", x, 1, 2) }},
		{"no states of width 128 of 2 sequences of 3", func() (any, error) { return l.Mid(x, 2, 3) }},
		{"no states of width 128", func() (any, error) { return l.Out(nil, 0, 0) }},
		{"no states of width 128", func() (any, error) { return r.Final(w, x[:3]) }},
		{"3 tokens are no sequences of 2", func() (any, error) { return r.Forward(w, []int32{1, 2, 3}, 2) }},
		{"q_proj.weight has 130 weights, which are no rows of 128", func() (any, error) { return bad.Mid(x, 1, 2) }},
		{"model.norm.weight: norm: ", func() (any, error) { return r.Final(short, x) }},
		{"backend not available", func() (any, error) { return model.NewRunner(mlx.New("tpu"), c).Final(w, x) }},
	} {
		if _, err := test.call(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
