package prism_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/gguf"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/prism"
)

const key = "prism.hadamard."

func goldenParts(t *testing.T, name string) *parts {
	t.Helper()
	return takeApart(t, readFile(t, testdata, "golden/gguf", name))
}

func TestReadRotation(t *testing.T) {
	r, err := prism.ReadRotation(openGGUF(t, readFile(t, testdata, "golden/gguf/llama-ptq.gguf")))
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != 1 || r.Block != 128 || len(r.Signs) != 2 || len(r.Signs[512]) != 512 || len(r.Tensors) != 29 || !r.Inverse {
		t.Errorf("rotation = version %d, block %d, %d widths, %d tensors, inverse %v", r.Version, r.Block, len(r.Signs), len(r.Tensors), r.Inverse)
	}
	p := goldenParts(t, "llama-ptq.gguf")
	p.meta = slices.DeleteFunc(p.meta, func(kv gguf.KV) bool { return strings.HasPrefix(kv.Key, key) })
	if r, err := prism.ReadRotation(openGGUF(t, p.together(t))); r != nil || err != nil {
		t.Errorf("rotation of a file without = %v, %v", r, err)
	}
}

// What Prism's loader refuses is refused, and the key named. (formats.md 2.5)
func TestReadRotationRefuses(t *testing.T) {
	signs := func(change func([]int32) []int32) func(*parts) {
		return func(p *parts) {
			i := slices.IndexFunc(p.meta, func(kv gguf.KV) bool { return kv.Key == key+"sign_values" })
			p.set(key+"sign_values", change(slices.Clone(p.meta[i].Value.([]int32))))
		}
	}
	names := func(change func([]string) []string) func(*parts) {
		return func(p *parts) {
			i := slices.IndexFunc(p.meta, func(kv gguf.KV) bool { return kv.Key == key+"weight_names" })
			p.set(key+"weight_names", change(slices.Clone(p.meta[i].Value.([]string))))
		}
	}
	set := func(name string, value any) func(*parts) { return func(p *parts) { p.set(key+name, value) } }
	for _, test := range []struct {
		name, want string
		spoil      func(*parts)
	}{
		{"keys without version", "without prism.hadamard.version", set("version", nil)},
		{"version 3", "version is 3", set("version", uint32(3))},
		{"version of 64 bits", `version" is uint64`, set("version", uint64(1))},
		{"version 2 without tied_output", "version is 2 and prism.hadamard.tied_output false", set("version", uint32(2))},
		{"version 1 with tied_output", "tied_output true", set("tied_output", true)},
		{"tied_output of another type", `tied_output" is uint32`, set("tied_output", uint32(1))},
		{"gdn_v_grouped of another type", `gdn_v_grouped" is string`, set("gdn_v_grouped", "yes")},
		{"version 2 with a head", "tied_output with a tensor output.weight", func(p *parts) { p.set(key+"version", uint32(2)); p.set(key+"tied_output", true) }},
		{"version 2 without a table", "tied_output without token_embd.weight", func(p *parts) {
			p.set(key+"version", uint32(2))
			p.set(key+"tied_output", true)
			p.set(key+"inverse_weight_names", nil)
			p.remove("output.weight")
		}},
		{"a table without a head", "no tensor output.weight under version 1", func(p *parts) { p.remove("output.weight") }},
		{"no block", `block_size": not in the file`, set("block_size", nil)},
		{"a block of 0", "block_size is 0", set("block_size", uint32(0))},
		{"a block of 96", "block_size is 96", set("block_size", uint32(96))},
		{"a block over a width", "sign_widths: 256, with blocks of 512", set("block_size", uint32(512))},
		{"another transform", `transform is "fft"`, set("transform", "fft")},
		{"another axis", `axis is "rows"`, set("axis", "rows")},
		{"another sign mode", `sign_mode is "none"`, set("sign_mode", "none")},
		{"no sign mode", "sign_mode", set("sign_mode", nil)},
		{"no names", `weight_names is empty`, names(func([]string) []string { return []string{} })},
		{"names of another type", `weight_names" is array of int32`, set("weight_names", []int32{1})},
		{"a name twice", `"output.weight" comes twice`, names(func(n []string) []string { return append(n, "output.weight") })},
		{"a name of both lists", `"token_embd.weight" comes twice`, names(func(n []string) []string { return append(n, "token_embd.weight") })},
		{"a name of a norm", `"blk.0.attn_norm.weight" is no tensor whose input`, names(func(n []string) []string { return append(n, "blk.0.attn_norm.weight") })},
		{"a name with a sign", `"blk.-1.attn_q.weight" is no tensor`, names(func(n []string) []string { return append(n, "blk.-1.attn_q.weight") })},
		{"a tensor that is missing", `no tensor "blk.9.attn_q.weight"`, names(func(n []string) []string { return append(n, "blk.9.attn_q.weight") })},
		{"another inverse", `"output.weight" is not token_embd.weight`, func(p *parts) {
			names(func(n []string) []string { return n[1:] })(p)
			p.set(key+"inverse_weight_names", []string{"output.weight"})
		}},
		{"no widths", "sign_widths is empty", set("sign_widths", []int32{})},
		{"a width of 0", "sign_widths: 0", set("sign_widths", []int32{0, 512})},
		{"a width between blocks", "sign_widths: 100", set("sign_widths", []int32{100, 512})},
		{"a width twice", "sign_widths: 256", set("sign_widths", []int32{256, 256, 256})},
		{"a width past the values", "sign_widths: 1024", set("sign_widths", []int32{256, 1024})},
		{"a width that lacks", "tensor output.weight: width 256 is not in", set("sign_widths", []int32{640, 128})},
		{"values left over", "128 values more than sign_widths", signs(func(s []int32) []int32 { return append(s, s[:128]...) })},
		{"a sign of 2", "sign_values: 2 is not 1 or -1", signs(func(s []int32) []int32 { s[3] = 2; return s })},
		{"signs of 64 bits", `sign_values" is array of int64`, set("sign_values", []int64{1})},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := goldenParts(t, "llama-ptq.gguf")
			test.spoil(p)
			_, err := prism.ReadRotation(openGGUF(t, p.together(t)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("ReadRotation = %v, want an error with %q", err, test.want)
			}
			if !errors.Is(err, gguf.ErrFormat) && !errors.Is(err, gguf.ErrMissing) {
				t.Errorf("ReadRotation = %v, neither ErrFormat nor ErrMissing", err)
			}
			if _, _, err := prism.Load(openGGUF(t, p.together(t))); err == nil {
				t.Error("Load takes the file")
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	set := func(name string, value any) func(*parts) { return func(p *parts) { p.set(name, value) } }
	for _, test := range []struct {
		name, want string
		spoil      func(*parts)
	}{
		{"no architecture", `"general.architecture": not in the file`, set("general.architecture", nil)},
		{"another architecture", `architecture "gemma"`, set("general.architecture", "gemma")},
		{"no layers", `"llama.block_count": not in the file`, set("llama.block_count", nil)},
		{"a negative number of layers", "llama.block_count is -4", set("llama.block_count", int32(-4))},
		{"layers as text", `"llama.block_count" is string`, set("llama.block_count", "4")},
		{"too many layers", "num_hidden_layers is 5000", set("llama.block_count", uint32(5000))},
		{"five layers", "tensor blk.4.attn_norm.weight: not in the file", set("llama.block_count", uint32(5))},
		{"three layers", "tensor blk.3.attn_norm.weight belongs to no llama model", set("llama.block_count", uint32(3))},
		{"epsilon as a double", `layer_norm_rms_epsilon" is float64`, set("llama.attention.layer_norm_rms_epsilon", 1e-6)},
		{"other heads", "tensor blk.0.attn_k.weight is", set("llama.attention.head_count_kv", uint32(4))},
		{"values of another width", "attention.value_length is 32, only 64", set("llama.attention.value_length", uint32(32))},
		{"partial rotation", "rope.dimension_count is 32, only 64", set("llama.rope.dimension_count", uint32(32))},
		{"another vocabulary", "vocab_size is 100, only 320", set("llama.vocab_size", uint32(100))},
		{"too few tokens", "1 tokens in tokenizer.ggml.tokens, 320 rows", set("tokenizer.ggml.tokens", []string{"a"})},
		{"experts", "llama.expert_count", set("llama.expert_count", uint32(8))},
		{"a window", "llama.attention.sliding_window", set("llama.attention.sliding_window", uint32(8))},
		{"longrope", `rope scaling of type "longrope"`, set("llama.rope.scaling.type", "longrope")},
		{"a scaling without factor", "llama.rope.scaling.factor", set("llama.rope.scaling.type", "linear")},
		{"a factor of 0", "factor is 0", func(p *parts) {
			p.set("llama.rope.scaling.type", "linear")
			p.set("llama.rope.scaling.factor", float32(0))
		}},
		{"no embedding", "token_embd.weight", func(p *parts) { p.remove("token_embd.weight") }},
		{"an extra tensor", "tensor extra belongs to no llama model", func(p *parts) { p.add("extra", 4) }},
		{"a table of frequencies of zeros", "rope_freqs.weight is not the table", func(p *parts) { p.add("rope_freqs.weight", 32) }},
		{"a table of frequencies of another size", "rope_freqs.weight of 16 values", func(p *parts) { p.add("rope_freqs.weight", 16) }},
		{"two scalings", `rope_freqs.weight with rope scaling of type "linear"`, func(p *parts) {
			p.add("rope_freqs.weight", 32)
			p.set("llama.rope.scaling.type", "linear")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := goldenParts(t, "llama-ptq.gguf")
			p.meta = slices.DeleteFunc(p.meta, func(kv gguf.KV) bool { return strings.HasPrefix(kv.Key, key) })
			test.spoil(p)
			_, _, err := prism.Load(openGGUF(t, p.together(t)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load = %v, want an error with %q", err, test.want)
			}
		})
	}
}

// Signs may be unsigned, or absent in mode identity, as Prism's loader has it.
func TestLoadSignForms(t *testing.T) {
	p := goldenParts(t, "llama-ptq.gguf")
	want, err := loadFloats(t, p, model.EmbedName)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.meta, func(kv gguf.KV) bool { return kv.Key == key+"sign_values" })
	signed := p.meta[i].Value.([]int32)
	unsigned := make([]uint32, len(signed))
	for i, s := range signed {
		unsigned[i] = uint32(s)
	}
	p.set(key+"sign_values", unsigned)
	p.set(key+"sign_widths", []uint32{256, 512})
	got, err := loadFloats(t, p, model.EmbedName)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("unsigned signs give other weights, %v", err)
	}
	p.set(key+"sign_mode", "identity")
	got, err = loadFloats(t, p, model.EmbedName)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v*float32(signed[i%256]) != want[i] {
			t.Fatalf("element %d without signs = %v, with sign %d = %v", i, v, signed[i%256], want[i])
		}
	}
}

func loadFloats(t *testing.T, p *parts, name string) ([]float32, error) {
	t.Helper()
	_, w, err := prism.Load(openGGUF(t, p.together(t)))
	if err != nil {
		t.Fatal(err)
	}
	return w.Floats(name)
}

// A tied table of version 2 is read: one rotated table for both uses.
func TestLoadVersion2(t *testing.T) {
	p := goldenParts(t, "qwen3-pq2.gguf")
	p.remove("output.weight")
	p.set(key+"version", uint32(2))
	p.set(key+"tied_output", true)
	i := slices.IndexFunc(p.meta, func(kv gguf.KV) bool { return kv.Key == key+"weight_names" })
	p.set(key+"weight_names", slices.Clone(p.meta[i].Value.([]string)[1:]))
	c, _, err := prism.Load(openGGUF(t, p.together(t)))
	if err != nil || !c.Tied {
		t.Errorf("Load of version 2: %v", err)
	}
}

func TestLoadMissingTensor(t *testing.T) {
	_, w, err := prism.Load(openGGUF(t, readFile(t, testdata, "golden/gguf/llama-ptq.gguf")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Floats("none"); !errors.Is(err, gguf.ErrMissing) {
		t.Errorf("Floats(none) = %v", err)
	}
	if err := w.ReadFloats("none", nil, 0); !errors.Is(err, gguf.ErrMissing) {
		t.Errorf("ReadFloats(none) = %v", err)
	}
}

// What config.json can say of a rotary embedding, biases and windows comes back.
func TestConfigRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*model.Config){
		"linear": func(c *model.Config) { c.Rope = model.Rope{Type: "linear", Base: 1e6, Factor: 4} },
		"yarn":   func(c *model.Config) { c.Rope = yarn(4, 64) },
		"yarn with a factor": func(c *model.Config) {
			c.Rope = yarn(8, 32)
			c.Rope.Attention = 1.5
		},
		"llama 3.1":       func(c *model.Config) { c.Rope = llama3(5e5, 8, 1, 4, 8192) },
		"llama 3.2":       func(c *model.Config) { c.Rope = llama3(5e5, 32, 1, 4, 8192) },
		"odd llama3":      func(c *model.Config) { c.Rope = llama3(1e4, 5.5, 2, 7, 100) },
		"steep llama3":    func(c *model.Config) { c.Rope = llama3(5e5, 8, 1, 1.5, 64) },
		"biases":          func(c *model.Config) { c.QKVBias, c.OutBias, c.MLPBias = true, true, true },
		"tied":            func(c *model.Config) { c.Tied = true },
		"a small epsilon": func(c *model.Config) { c.Epsilon = 3.7e-7 },
	} {
		t.Run(name, func(t *testing.T) {
			c := modeltest.Tiny("llama")
			c.Vocab = 320
			change(c)
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			got := throughFile(t, c)
			f, scale := c.Rope.Frequencies(c.HeadDim)
			g, gotScale := got.Rope.Frequencies(c.HeadDim)
			for i := range f {
				if math.Abs(g[i]/f[i]-1) > 1e-5 || math.Abs(gotScale/scale-1) > 1e-6 {
					t.Fatalf("frequency %d = %v, want %v (%+v, want %+v)", i, g[i], f[i], got.Rope, c.Rope)
				}
			}
			if strings.HasPrefix(name, "llama 3") && got.Rope != c.Rope {
				t.Errorf("rope = %+v, want %+v", got.Rope, c.Rope)
			}
			got.Rope = c.Rope
			if fmt.Sprint(got) != fmt.Sprint(c) {
				t.Errorf("config = %+v, want %+v", got, c)
			}
		})
	}
}

func yarn(factor float64, original int) model.Rope {
	return model.Rope{Type: "yarn", Base: 1e4, Factor: factor, Original: original, BetaFast: 32, BetaSlow: 1, Attention: 0.1*math.Log(factor) + 1, Truncate: true}
}

func llama3(base, factor, low, high float64, original int) model.Rope {
	return model.Rope{Type: "llama3", Base: base, Factor: factor, LowFreq: low, HighFreq: high, Original: original}
}

// throughFile writes a file of a random model and returns the config that Load reads,
// after Verify found that both compute the same.
func throughFile(t *testing.T, c *model.Config) *model.Config {
	t.Helper()
	x := memoryFixture(t, c, modeltest.Random(c, 1), byteTokenizer(t))
	file := x.mustRun(t)
	if _, err := x.verify(t, file); err != nil {
		t.Error(err)
	}
	got, _, err := prism.Load(openGGUF(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The file of a random model gives the logits of the ternary weights, computed with none
// of this package: only the rotation's definition and the checkpoint's own layout.
func TestLogitsOfFile(t *testing.T) {
	x := goldenFixture(t, "llama3-rope", "PTQ1_0")
	want := modeltest.Weights{}
	for _, tensor := range x.config.Tensors() {
		for _, v := range x.values(t, tensor) {
			want[tensor.Name] = append(want[tensor.Name], float32(v))
		}
	}
	c, w, err := prism.Load(openGGUF(t, x.mustRun(t)))
	if err != nil {
		t.Fatal(err)
	}
	ids := []int32{1, 50, 100, 150, 200, 250, 300, 319}
	engine := mlx.New("go")
	run := func(c *model.Config, src model.Source) []float32 {
		r := model.NewRunner(engine, c)
		defer r.Free()
		logits, err := r.Forward(src, ids, len(ids))
		if err != nil {
			t.Fatal(err)
		}
		return logits
	}
	kl, top1 := compare(run(x.config, want), run(c, w), c.Vocab)
	if !(math.Abs(kl) < 1e-8) || top1 < 1 {
		t.Errorf("KL %g, top-1 %g", kl, top1)
	}
}

// FuzzLoad checks that no value of a key makes Load panic, and that what it takes can be
// read.
func FuzzLoad(f *testing.F) {
	golden := takeApart(f, readFile(f, testdata, "golden/gguf/llama-ptq.gguf"))
	for i := range golden.meta {
		f.Add(uint8(i), uint8(i), int64(1<<i), "x")
	}
	f.Fuzz(func(t *testing.T, index, kind uint8, n int64, text string) {
		values := []any{
			nil, uint8(n), int32(n), uint32(n), n, uint64(n), float32(n), math.Float32frombits(uint32(n)), math.Float64frombits(uint64(n)),
			n > 0, text,
			[]string{text},
			[]int32{int32(n)},
			[]int32{},
			[]uint32{uint32(n), 128},
			[]float32{1},
			[]any{},
		}
		p := &parts{meta: slices.Clone(golden.meta), specs: golden.specs, tensors: golden.tensors}
		p.set(p.meta[int(index)%len(p.meta)].Key, values[int(kind)%len(values)])
		if text != "" && len(text) < 1000 {
			p.set("llama.rope.scaling.type", text)
		}
		file, err := gguf.Open(bytes.NewReader(p.together(t)), int64(len(p.together(t))), "fuzzed")
		if err != nil {
			return
		}
		_, w, err := prism.Load(file)
		if err != nil {
			return
		}
		if _, err := w.Floats(model.EmbedName); err != nil {
			t.Error(err)
		}
	})
}
