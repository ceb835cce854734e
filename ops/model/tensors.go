package model

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the tensors outside the layers.
const (
	EmbedName = "model.embed_tokens.weight" // [vocab, hidden]
	NormName  = "model.norm.weight"         // [hidden]
	headName  = "lm_head.weight"            // [vocab, hidden]
)

// A Tensor is one tensor that a checkpoint of a Config must have.
type Tensor struct {
	Name  string
	Shape []int64 // [out, in] for weights, [n] for norms and biases
	Layer int     // -1 outside the layers
	Group string  // the group of a weight that can be made ternary; "" for norms and biases
}

// Size returns the number of elements.
func (t Tensor) Size() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// HeadName returns the name of the tensor that the head multiplies with: the embedding's when it is tied.
func (c *Config) HeadName() string {
	if c.Tied {
		return EmbedName
	}
	return headName
}

// Tensors returns every tensor of the model in data-flow order: embedding, layers, final norm, and the head unless tied.
func (c *Config) Tensors() []Tensor {
	table := []int64{int64(c.Vocab), int64(c.Hidden)}
	all := []Tensor{{Name: EmbedName, Shape: table, Layer: -1, Group: GroupEmbed}}
	for l := range c.Layers {
		all = append(all, c.LayerTensors(l)...)
	}
	all = append(all, Tensor{Name: NormName, Shape: []int64{int64(c.Hidden)}, Layer: -1})
	if !c.Tied {
		all = append(all, Tensor{Name: headName, Shape: table, Layer: -1, Group: GroupHead})
	}
	return all
}

// LayerTensors returns the tensors of one layer in data-flow order.
func (c *Config) LayerTensors(layer int) []Tensor {
	var all []Tensor
	vector := func(name string, n int) {
		all = append(all, Tensor{Name: tensorName(layer, name), Shape: []int64{int64(n)}, Layer: layer})
	}
	weight := func(group, name string, out, in int, bias bool) {
		all = append(all, Tensor{
			Name: tensorName(layer, name+".weight"), Shape: []int64{int64(out), int64(in)},
			Layer: layer, Group: group,
		})
		if bias {
			vector(name+".bias", out)
		}
	}
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	vector("input_layernorm.weight", c.Hidden)
	weight(GroupQKV, "self_attn.q_proj", q, c.Hidden, c.QKVBias)
	weight(GroupQKV, "self_attn.k_proj", kv, c.Hidden, c.QKVBias)
	weight(GroupQKV, "self_attn.v_proj", kv, c.Hidden, c.QKVBias)
	if c.QKNorm {
		vector("self_attn.q_norm.weight", c.HeadDim)
		vector("self_attn.k_norm.weight", c.HeadDim)
	}
	weight(GroupO, "self_attn.o_proj", c.Hidden, q, c.OutBias)
	vector("post_attention_layernorm.weight", c.Hidden)
	weight(GroupGateUp, "mlp.gate_proj", c.Intermediate, c.Hidden, c.MLPBias)
	weight(GroupGateUp, "mlp.up_proj", c.Intermediate, c.Hidden, c.MLPBias)
	weight(GroupDown, "mlp.down_proj", c.Hidden, c.Intermediate, c.MLPBias)
	return all
}

func tensorName(layer int, name string) string { return fmt.Sprintf("model.layers.%d.%s", layer, name) }

// Groups returns the four groups of a layer in data-flow order: the inputs of each are computed with the groups
// above it already quantized.
func (c *Config) Groups(layer int) []Group {
	groups := []Group{
		{Name: GroupQKV, Width: c.Hidden, From: LayerInput},
		{Name: GroupO, Width: c.Heads * c.HeadDim, From: LayerInput},
		{Name: GroupGateUp, Width: c.Hidden, From: MidResidual},
		{Name: GroupDown, Width: c.Intermediate, From: MidResidual},
	}
	for _, t := range c.LayerTensors(layer) {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == t.Group })
		if i >= 0 {
			groups[i].Tensors = append(groups[i].Tensors, t.Name)
		}
	}
	return groups
}

// A TensorsError lists how a checkpoint's tensors differ from what its config asks for.
type TensorsError struct {
	Missing    []string // names
	Wrong      []string // "name is [2 3], want [3 2]"
	Unexpected []string // names; ignoring them would compute another model
}

// Error implements error; it shows the first few of each kind.
func (e *TensorsError) Error() string {
	var parts []string
	for _, p := range []struct {
		what  string
		names []string
	}{{"missing", e.Missing}, {"of another shape", e.Wrong}, {"unexpected", e.Unexpected}} {
		const show = 4
		n := len(p.names)
		switch {
		case n > show:
			parts = append(parts, fmt.Sprintf("%d %s: %s, …", n, p.what, strings.Join(p.names[:show], ", ")))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s: %s", n, p.what, strings.Join(p.names, ", ")))
		}
	}
	return "the tensors do not fit config.json: " + strings.Join(parts, "; ")
}

// CheckTensors compares a checkpoint's tensors, shape by name, with what c asks for and returns a *TensorsError if
// one is missing, has another shape or is not known. Stored rotary frequencies (inv_freq, in old llama files) and a
// second copy of a tied table are no error; CheckTied compares the latter.
func (c *Config) CheckTensors(have map[string][]int64) error {
	var e TensorsError
	known := map[string]bool{}
	for _, t := range c.Tensors() {
		known[t.Name] = true
		shape, ok := have[t.Name]
		switch {
		case !ok:
			e.Missing = append(e.Missing, t.Name)
		case !slices.Equal(shape, t.Shape):
			e.Wrong = append(e.Wrong, fmt.Sprintf("%s is %v, want %v", t.Name, shape, t.Shape))
		}
	}
	for name := range have {
		ignored := strings.HasSuffix(name, ".rotary_emb.inv_freq") || (c.Tied && name == headName)
		if !known[name] && !ignored {
			e.Unexpected = append(e.Unexpected, name)
		}
	}
	if e.Missing == nil && e.Wrong == nil && e.Unexpected == nil {
		return nil
	}
	slices.Sort(e.Unexpected)
	return &e
}

// CheckTied compares the two copies that a tied checkpoint may hold of its table, and returns an error if they
// differ: then the config is wrong, or one of them was changed. have names the tensors there are.
func (c *Config) CheckTied(have map[string][]int64, src Source) error {
	if _, ok := have[headName]; !ok || !c.Tied {
		return nil
	}
	embed, err := src.Floats(EmbedName)
	if err != nil {
		return err
	}
	head, err := src.Floats(headName)
	if err != nil {
		return err
	}
	if !slices.Equal(embed, head) {
		return fmt.Errorf("config.json says tie_word_embeddings, but %s and %s differ", EmbedName, headName)
	}
	return nil
}

// CheckFiles returns an error if the names of a folder's files are those of an adapter (PEFT, LoRA) without a model.
func CheckFiles(names []string) error {
	for _, n := range names {
		if n == "adapter_config.json" || strings.HasPrefix(n, "adapter_model.") {
			return fmt.Errorf("%w: %s belongs to an adapter (PEFT, LoRA): merge it into its base model first", ErrUnsupported, n)
		}
	}
	return nil
}
