package prism_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"bonsai/kernels"
	"bonsai/ops/gguf"
	"bonsai/ops/model"
	"bonsai/ops/opstest"
	"bonsai/ops/prism"
)

func TestManifest(t *testing.T) {
	w := prism.Write{Format: "PTQ1_0", Name: "n", Context: 7, Ternary: []string{"a", "b"}, Files: []string{"config.json"}}
	opstest.CheckManifest(t, w)
	opstest.CheckManifest(t, prism.Verify{Write: w})
}

// decodePTQ1 and decodePQ2 read a block as formats.md 1 defines it, by closed forms.
func decodePTQ1(b []byte) (codes [128]int8, scale uint16) {
	for e := range codes {
		i, n := 24+(e-120)%2, (e-120)/2
		switch {
		case e < 80:
			i, n = e%16, e/16
		case e < 120:
			i, n = 16+(e-80)%8, (e-80)/8
		}
		codes[e] = int8(int(b[i])*[]int{3, 9, 27, 81, 243}[n]/256%3) - 1
	}
	return codes, uint16(b[26]) | uint16(b[27])<<8
}

func decodePQ2(b []byte) (codes [128]int8, scale uint16) {
	for j := range codes {
		codes[j] = int8(b[2+j/4]>>(2*(j%4))&3) - 1
	}
	return codes, uint16(b[0]) | uint16(b[1])<<8
}

// permuted returns the row of the checkpoint that architecture llama has at a row of q or
// k: reshape to [heads, 2, dim/2], swap the last two.
func permuted(row, dim int) int {
	head, i := row/dim, row%dim
	return head*dim + i%2*dim/2 + i/2
}

// Every tensor of a file, decoded here from bytes alone, holds the codes and scales of
// the artifact, in the order of rows that the architecture wants.
func TestWriteCodes(t *testing.T) {
	for _, test := range []struct {
		golden, format, arch string
		block                int
		decode               func([]byte) ([128]int8, uint16)
	}{
		{"llama", "PTQ1_0", "llama", 28, decodePTQ1},
		{"llama3-rope", "PQ2_0", "llama", 34, decodePQ2},
		{"qwen3", "PTQ1_0", "qwen3", 28, decodePTQ1},
		{"qwen3-tied", "PQ2_0", "qwen3", 34, decodePQ2},
	} {
		t.Run(test.golden, func(t *testing.T) {
			x := goldenFixture(t, test.golden, test.format)
			f := openGGUF(t, x.mustRun(t))
			seen := 0
			for _, tensor := range f.Tensors() {
				if tensor.Type.String() != test.format {
					continue
				}
				seen++
				raw, err := f.Bytes(tensor.Name)
				if err != nil {
					t.Fatal(err)
				}
				name := checkpointName(tensor.Name)
				groups := int(tensor.Shape[1] / 128)
				for row := range int(tensor.Shape[0]) {
					from := row
					if test.arch == "llama" && (strings.Contains(name, "q_proj") || strings.Contains(name, "k_proj")) {
						from = permuted(row, x.config.HeadDim)
					}
					for g := range groups {
						codes, scale := test.decode(raw[(row*groups+g)*test.block:])
						at := from*groups + g
						want := x.coded[name]
						if scale != want.scales[at] || !slices.Equal(codes[:], want.codes[at*128:(at+1)*128]) {
							t.Fatalf("%s: row %d, group %d is not row %d of %s", tensor.Name, row, g, from, name)
						}
					}
				}
			}
			if seen != len(x.write.Ternary) {
				t.Errorf("%d ternary tensors, want %d", seen, len(x.write.Ternary))
			}
		})
	}
}

// checkpointName spells the table of architectures.md 4.1 backwards.
func checkpointName(name string) string {
	switch name {
	case "token_embd.weight":
		return "model.embed_tokens.weight"
	case "output.weight":
		return "lm_head.weight"
	case "output_norm.weight":
		return "model.norm.weight"
	}
	parts := strings.Split(name, ".")
	kind := map[string]string{
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
		"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
	}[parts[2]]
	return fmt.Sprintf("model.layers.%s.%s.%s", parts[1], kind, parts[3])
}

// unrotated is s ⊙ (H z) by the definition of H, on blocks of 128.
func unrotated(z []float64, signs []int8) []float64 {
	out := make([]float64, len(z))
	for i := range z {
		first := i / 128 * 128
		for j := range 128 {
			v := z[first+j]
			if bits.OnesCount(uint(i%128&j))%2 == 1 {
				v = -v
			}
			out[i] += v
		}
		out[i] *= float64(signs[i]) / math.Sqrt(128)
	}
	return out
}

// Load gives back what the codes stand for, in the checkpoint's basis and order; and what
// was kept, rounded to BF16 or exact.
func TestLoadUndoesWrite(t *testing.T) {
	for _, name := range []string{"llama", "llama3-rope", "qwen3", "qwen3-tied"} {
		t.Run(name, func(t *testing.T) {
			x := goldenFixture(t, name, "PTQ1_0", "layers.1.self_attn.k_proj.weight")
			c, w, err := prism.Load(openGGUF(t, x.mustRun(t)))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(c) != fmt.Sprint(x.config) {
				t.Errorf("config = %+v, want %+v", c, x.config)
			}
			for _, tensor := range x.config.Tensors() {
				got, err := w.Floats(tensor.Name)
				if err != nil {
					t.Fatal(err)
				}
				want := x.values(t, tensor)
				for i := range want {
					if math.Abs(float64(got[i])-want[i]) > 1e-5*(1+math.Abs(want[i])) {
						t.Fatalf("%s: element %d = %v, want %v", tensor.Name, i, got[i], want[i])
					}
				}
				checkRows(t, w, tensor, got)
			}
		})
	}
}

// values returns what the file should say a tensor is.
func (x *fixture) values(t *testing.T, tensor model.Tensor) []float64 {
	t.Helper()
	c, ok := x.coded[tensor.Name]
	if !ok {
		w, err := x.weights.Floats(tensor.Name)
		if err != nil {
			t.Fatal(err)
		}
		var want []float64
		for _, v := range w {
			if len(tensor.Shape) == 2 {
				u := math.Float32bits(v)
				v = math.Float32frombits((u + 0x7fff + u>>16&1) &^ 0xffff)
			}
			want = append(want, float64(v))
		}
		return want
	}
	width := int(tensor.Shape[1])
	signs, err := x.signs.Of(width)
	if err != nil {
		t.Fatal(err)
	}
	var want []float64
	for row := range int(tensor.Shape[0]) {
		z := make([]float64, width)
		for i := range z {
			at := row*width + i
			z[i] = float64(c.codes[at]) * float64(kernels.HalfToFloat(c.scales[at/128]))
		}
		want = append(want, unrotated(z, signs)...)
	}
	return want
}

// checkRows compares rows read alone with the whole tensor.
func checkRows(t *testing.T, w *prism.Weights, tensor model.Tensor, whole []float32) {
	t.Helper()
	width := 1
	if len(tensor.Shape) == 2 {
		width = int(tensor.Shape[1])
	}
	first := 5 * width
	x := make([]float32, 3*width)
	if err := w.ReadFloats(tensor.Name, x, int64(first)); err != nil || !slices.Equal(x, whole[first:first+len(x)]) {
		t.Errorf("ReadFloats(%s, rows 5 to 8) differs: %v", tensor.Name, err)
	}
	if err := w.ReadFloats(tensor.Name, x, tensor.Size()); err == nil {
		t.Errorf("ReadFloats(%s, past the end) = nil", tensor.Name)
	}
}

func TestWriteMetadata(t *testing.T) {
	x := goldenFixture(t, "llama3-rope", "PTQ1_0")
	f := openGGUF(t, x.mustRun(t))
	want := map[string]any{
		"general.architecture": "llama", "general.type": "model", "general.name": "test model",
		"general.file_type": uint32(143), "general.quantization_version": uint32(2),
		"llama.block_count": uint32(4), "llama.context_length": uint32(512), "llama.embedding_length": uint32(128),
		"llama.feed_forward_length": uint32(256), "llama.attention.head_count": uint32(4), "llama.attention.head_count_kv": uint32(2),
		"llama.attention.key_length": uint32(64), "llama.attention.value_length": uint32(64),
		"llama.attention.layer_norm_rms_epsilon": float32(1e-6), "llama.rope.freq_base": float32(500000),
		"llama.rope.dimension_count": uint32(64), "llama.vocab_size": uint32(320),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.add_bos_token": false,
		"tokenizer.ggml.add_eos_token": false, "tokenizer.ggml.bos_token_id": uint32(266), "tokenizer.ggml.eos_token_id": uint32(268),
		"tokenizer.ggml.eot_token_id": uint32(266), "tokenizer.ggml.eos_token_ids": []int32{268, 266},
		"tokenizer.ggml.padding_token_id": uint32(266), "tokenizer.chat_template": "{{ messages }}",
		"prism.hadamard.version": uint32(1), "prism.hadamard.block_size": uint32(128),
		"prism.hadamard.transform": "normalized-sylvester-walsh-hadamard", "prism.hadamard.axis": "input-last-dimension",
		"prism.hadamard.sign_mode": "explicit", "prism.hadamard.sign_widths": []int32{128, 256},
		"prism.hadamard.inverse_weight_names": []string{"token_embd.weight"},
	}
	for _, key := range []string{"tokens", "token_type", "merges"} {
		want["tokenizer.ggml."+key] = nil // looked at below
	}
	want["prism.hadamard.sign_values"], want["prism.hadamard.weight_names"] = nil, nil
	for _, kv := range f.Meta() {
		w, ok := want[kv.Key]
		if !ok || w != nil && fmt.Sprintf("%T%v", kv.Value, kv.Value) != fmt.Sprintf("%T%v", w, w) {
			t.Errorf("key %s = %T %v, want %T %v", kv.Key, kv.Value, kv.Value, w, w)
		}
		delete(want, kv.Key)
	}
	for key := range want {
		t.Errorf("key %s is missing", key)
	}
	checkVocabulary(t, f)
	values, err := gguf.Get[[]int32](f, "prism.hadamard.sign_values")
	if err != nil || len(values) != 384 {
		t.Fatalf("%d sign_values, %v", len(values), err)
	}
	signs, err := x.signs.Of(256)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values[128:] {
		if v != int32(signs[i]) {
			t.Fatalf("sign %d of width 256 = %d, want %d", i, v, signs[i])
		}
	}
	names, err := gguf.Get[[]string](f, "prism.hadamard.weight_names")
	if err != nil || len(names) != 29 || !slices.Contains(names, "output.weight") || slices.Contains(names, "token_embd.weight") {
		t.Errorf("weight_names = %v, %v", names, err)
	}
}

func checkVocabulary(t *testing.T, f *gguf.File) {
	t.Helper()
	tokens, err := gguf.Get[[]string](f, "tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	types, err := gguf.Get[[]int32](f, "tokenizer.ggml.token_type")
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) != 320 || len(types) != 320 || tokens[268] != "<|im_end|>" || types[268] != 3 || tokens[300] != "[PAD300]" || types[300] != 5 || types[0] != 1 {
		t.Errorf("tokens[268], [300] = %q %d, %q %d of %d", tokens[268], types[268], tokens[300], types[300], len(tokens))
	}
	merges, err := gguf.Get[[]string](f, "tokenizer.ggml.merges")
	if err != nil || len(merges) == 0 || strings.Count(merges[0], " ") != 1 {
		t.Errorf("merges = %q, %v", merges, err)
	}
}

// A tied table stays BF16, is in neither list of names, and there is no head.
func TestWriteTied(t *testing.T) {
	x := goldenFixture(t, "qwen3-tied", "PTQ1_0")
	f := openGGUF(t, x.mustRun(t))
	table, _ := f.Lookup("token_embd.weight")
	_, head := f.Lookup("output.weight")
	_, inverse := f.Value("prism.hadamard.inverse_weight_names")
	names, err := gguf.Get[[]string](f, "prism.hadamard.weight_names")
	if table.Type != gguf.BF16 || head || inverse || err != nil || slices.Contains(names, "token_embd.weight") || len(names) != 28 {
		t.Errorf("table %v, head %v, inverse %v, names %v, %v", table.Type, head, inverse, names, err)
	}
	if version, err := gguf.Get[uint32](f, "prism.hadamard.version"); err != nil || version != 1 {
		t.Errorf("version = %d, %v", version, err)
	}
}

// The trained tiny model with its own files.
func TestWriteSentencePiece(t *testing.T) {
	x := storiesFixture(t)
	f := openGGUF(t, x.mustRun(t))
	for key, want := range map[string]any{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.add_bos_token": true,
		"tokenizer.ggml.add_space_prefix": true, "tokenizer.ggml.bos_token_id": uint32(1),
		"tokenizer.ggml.eos_token_id": uint32(2), "tokenizer.ggml.unknown_token_id": uint32(0),
	} {
		if got, ok := f.Value(key); !ok || got != want {
			t.Errorf("key %s = %v, want %v", key, got, want)
		}
	}
	scores, err := gguf.Get[[]float32](f, "tokenizer.ggml.scores")
	types, _ := gguf.Get[[]int32](f, "tokenizer.ggml.token_type")
	if err != nil || len(scores) != 512 || types[0] != 2 || types[1] != 3 || types[3] != 6 || types[300] != 1 {
		t.Errorf("%d scores, types %v, %v", len(scores), types, err)
	}
	if _, ok := f.Value("tokenizer.ggml.merges"); ok {
		t.Error("a SentencePiece tokenizer has merges")
	}
}

func TestWriteTemplateFile(t *testing.T) {
	x := goldenFixture(t, "qwen3", "PQ2_0")
	x.files[prism.TemplateFile] = []byte("{{ other }}")
	x.write.Files = append(x.write.Files, prism.TemplateFile)
	f := openGGUF(t, x.mustRun(t))
	if got, err := gguf.Get[string](f, "tokenizer.chat_template"); err != nil || got != "{{ other }}" {
		t.Errorf("chat_template = %q, %v", got, err)
	}
}

// A window is exact in a file that promises no longer context.
func TestWriteWindow(t *testing.T) {
	x := goldenFixture(t, "mistral-window", "PTQ1_0")
	x.write.Context = 16
	f := openGGUF(t, x.mustRun(t))
	if got, err := f.Int("llama.context_length"); err != nil || got != 16 {
		t.Errorf("context_length = %d, %v", got, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, test := range []struct {
		name, golden, want string
		spoil              func(x *fixture)
	}{
		{"qwen2", "qwen2", "prism.hadamard.* for qwen2", nil},
		{"a window", "mistral-window", "layer 0 has a sliding window of 16 tokens", nil},
		{"an unknown format", "qwen3", `format "TQ9_0" is none of`, func(x *fixture) { x.write.Format = "TQ9_0" }},
		{"a ternary tied table", "qwen3-tied", "model.embed_tokens.weight is tied", func(x *fixture) { x.write.Ternary = append(x.write.Ternary, model.EmbedName) }},
		{"a ternary norm", "qwen3", "model.norm.weight to be ternary is a norm", func(x *fixture) { x.write.Ternary = append(x.write.Ternary, model.NormName) }},
		{"a tensor named twice", "qwen3", "lm_head.weight to be ternary is not in the model, or named twice", func(x *fixture) { x.write.Ternary = append(x.write.Ternary, "lm_head.weight") }},
		{"no ternary tensor", "qwen3", "no tensor is to be ternary", func(x *fixture) { x.write.Ternary = nil }},
		{"only the embedding", "qwen3", "only the embedding is ternary", func(x *fixture) {
			x.write.Ternary = []string{model.EmbedName}
			x.coded = map[string]coded{model.EmbedName: x.coded[model.EmbedName]}
		}},
		{"codes that are missing", "qwen3", "lm_head.weight: to be ternary, but lm_head.weight.codes is in no file", func(x *fixture) { delete(x.coded, "lm_head.weight") }},
		{"codes too many", "qwen3", "lm_head.weight.codes: codes of a tensor that is not", func(x *fixture) {
			x.write.Ternary = slices.DeleteFunc(x.write.Ternary, func(s string) bool { return s == "lm_head.weight" })
		}},
		{"a code of 2", "qwen3", `"output.weight": element 7 has code +2`, func(x *fixture) { x.coded["lm_head.weight"].codes[7] = 2 }},
		{"an infinite scale", "qwen3", `"output.weight": element 256 is +Inf`, func(x *fixture) { x.coded["lm_head.weight"].scales[2] = 0x7c00 }},
		{"no tokenizer", "qwen3", "no input tokenizer.json", func(x *fixture) { x.write.Files = []string{prism.ConfigFile} }},
		{"a file twice", "qwen3", `"config.json" is not known or comes twice`, func(x *fixture) { x.write.Files = append(x.write.Files, prism.ConfigFile) }},
		{"a broken config", "qwen3", "config.json", func(x *fixture) { x.files[prism.ConfigFile] = []byte("{") }},
		{"a broken tokenizer", "qwen3", "tokenizer.json", func(x *fixture) { x.files[prism.TokenizerFile] = []byte("{}") }},
		{"a broken generation config", "qwen3", "generation_config.json", func(x *fixture) { x.files[prism.GenerationFile] = []byte(`{"eos_token_id": "x"}`) }},
		{"a stop token out of range", "qwen3", "generation_config.json: token 320 of a vocabulary of 320", func(x *fixture) { x.files[prism.GenerationFile] = []byte(`{"eos_token_id": [1, 320]}`) }},
		{"a checkpoint of another model", "qwen3", "the tensors do not fit config.json", func(x *fixture) { x.shard = shardOf("llama") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := goldenFixture(t, test.golden, "PTQ1_0")
			if test.spoil != nil {
				test.spoil(x)
			}
			if _, err := x.run(t); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Run = %v, want an error with %q", err, test.want)
			}
		})
	}
}

// A larger tokenizer than the table is refused with both numbers.
func TestWriteRefusesTokens(t *testing.T) {
	x := goldenFixture(t, "qwen3", "PTQ1_0")
	x.files[prism.TokenizerFile] = readFile(t, testdata, "models/tiny-qwen3/tokenizer.json")
	x.files[prism.TokenizerConfigFile] = []byte("{}")
	if _, err := x.run(t); err == nil || !strings.Contains(err.Error(), "the tokenizer has 2048 ids, the model's table 320 rows") {
		t.Errorf("Run = %v", err)
	}
}

func TestWriteRefusesRotation(t *testing.T) {
	x := goldenFixture(t, "qwen3", "PTQ1_0")
	in := x.inputs(t)
	without := slices.DeleteFunc(slices.Clone(in), func(r *io.SectionReader) bool { return r.Size() == int64(len(x.rotation)) })
	err := x.write.Run(context.Background(), without, []io.Writer{io.Discard}, silent)
	if err == nil || !strings.Contains(err.Error(), "no rotation") {
		t.Errorf("Run without a rotation = %v", err)
	}
	err = x.write.Run(context.Background(), append(in, opstest.Blob(x.rotation)), []io.Writer{io.Discard}, silent)
	if err == nil || !strings.Contains(err.Error(), "a second rotation") {
		t.Errorf("Run with two rotations = %v", err)
	}
	err = x.write.Run(context.Background(), in[:2], []io.Writer{io.Discard}, silent)
	if err == nil || !strings.Contains(err.Error(), "2 inputs") {
		t.Errorf("Run with two inputs = %v", err)
	}
}

func TestWriteStops(t *testing.T) {
	x := goldenFixture(t, "qwen3", "PTQ1_0")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := x.write.Run(ctx, x.inputs(t), []io.Writer{io.Discard}, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("Run of a cancelled context = %v", err)
	}
	if err := x.write.Run(context.Background(), x.inputs(t), []io.Writer{full{}}, silent); !errors.Is(err, errFull) {
		t.Errorf("Run to a full disk = %v", err)
	}
}

var errFull = errors.New("no space left")

// A full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// The same inputs give the same bytes, in whatever order the weights come.
func TestWriteRepeats(t *testing.T) {
	x := goldenFixture(t, "llama", "PTQ1_0")
	in := x.inputs(t)
	slices.Reverse(in[len(x.write.Files):])
	var b bytes.Buffer
	if err := x.write.Run(context.Background(), in, []io.Writer{&b}, silent); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), x.mustRun(t)) {
		t.Error("another order of inputs gives another file")
	}
}
