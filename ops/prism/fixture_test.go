package prism_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/kernels"
	"bonsai/ops/gguf"
	"bonsai/ops/model"
	"bonsai/ops/opstest"
	"bonsai/ops/prism"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
)

const testdata = "../../testdata"

func readFile(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// silent is a report that nobody reads.
func silent(float64, string) {}

// coded is what an artifact of codes holds of one tensor, in the rotated basis and the
// checkpoint's order of rows.
type coded struct {
	codes  []int8
	scales []uint16
}

// A fixture is a checkpoint with codes, as the inputs of a Write.
type fixture struct {
	config   *model.Config
	weights  model.Source
	write    prism.Write
	files    map[string][]byte // by name
	shard    []byte
	rotation []byte
	coded    map[string]coded
	signs    *quantize.Signs
}

// goldenFixture makes every weight of a golden checkpoint ternary, but for those whose
// name ends with one of keep.
func goldenFixture(t testing.TB, name, format string, keep ...string) *fixture {
	t.Helper()
	dir := filepath.Join(testdata, "golden", name)
	shard := readFile(t, dir, "model.safetensors")
	weights, err := safetensors.Open(bytes.NewReader(shard), int64(len(shard)), name)
	if err != nil {
		t.Fatal(err)
	}
	files := byteTokenizer(t)
	files[prism.ConfigFile] = readFile(t, dir, "config.json")
	return newFixture(t, format, files, shard, weights, keep)
}

func newFixture(t testing.TB, format string, files map[string][]byte, shard []byte, weights model.Source, keep []string) *fixture {
	t.Helper()
	c, err := model.ParseConfig(files[prism.ConfigFile])
	if err != nil {
		t.Fatal(err)
	}
	x := &fixture{
		config: c, weights: weights, files: files, shard: shard, coded: map[string]coded{},
		write: prism.Write{Format: format, Name: "test model"},
	}
	for _, name := range []string{prism.ConfigFile, prism.TokenizerFile, prism.TokenizerConfigFile, prism.GenerationFile, prism.TemplateFile} {
		if _, ok := files[name]; ok {
			x.write.Files = append(x.write.Files, name)
		}
	}
	x.write.Ternary = slices.DeleteFunc(ternary(c), func(name string) bool {
		return slices.ContainsFunc(keep, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
	})
	x.rotate(t)
	x.quantize(t)
	return x
}

// rotate draws the signs.
func (x *fixture) rotate(t testing.TB) {
	t.Helper()
	var b bytes.Buffer
	op := quantize.Rotation{Block: 128, Seed: 7, Widths: x.config.Widths()}
	if err := op.Run(context.Background(), nil, []io.Writer{&b}, silent); err != nil {
		t.Fatal(err)
	}
	x.rotation = b.Bytes()
	f, err := safetensors.Open(bytes.NewReader(x.rotation), int64(b.Len()), "rotation")
	if err != nil {
		t.Fatal(err)
	}
	if x.signs, err = quantize.ReadSigns(f); err != nil {
		t.Fatal(err)
	}
}

// quantize fits every group by itself.
func (x *fixture) quantize(t testing.TB) {
	t.Helper()
	for _, tensor := range x.config.Tensors() {
		if !slices.Contains(x.write.Ternary, tensor.Name) {
			continue
		}
		w, err := x.weights.Floats(tensor.Name)
		if err != nil {
			t.Fatal(err)
		}
		signs, err := x.signs.Of(int(tensor.Shape[1]))
		if err != nil {
			t.Fatal(err)
		}
		kernels.Rotate(w, signs, x.signs.Block)
		c := coded{make([]int8, len(w)), make([]uint16, len(w)/128)}
		for g := range c.scales {
			if c.scales[g], err = kernels.FitGroup(c.codes[g*128:(g+1)*128], w[g*128:(g+1)*128]); err != nil {
				t.Fatal(err)
			}
		}
		x.coded[tensor.Name] = c
	}
}

// codeFile returns the file of codes of the tensors of one width: a file says which
// rotation its codes are of, and each width has its own signs.
func (x *fixture) codeFile(t testing.TB, width int) []byte {
	t.Helper()
	var specs []safetensors.Spec
	for _, tensor := range x.config.Tensors() {
		if _, ok := x.coded[tensor.Name]; ok && int(tensor.Shape[1]) == width {
			specs = append(specs,
				safetensors.Spec{Name: tensor.Name + ".codes", DType: safetensors.U8, Shape: []int64{tensor.Shape[0], tensor.Shape[1] / 4}},
				safetensors.Spec{Name: tensor.Name + ".scales", DType: safetensors.F16, Shape: []int64{tensor.Shape[0], tensor.Shape[1] / 128}})
		}
	}
	name, err := x.signs.Name(width)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, specs, map[string]string{"rotation": name})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		c := x.coded[strings.TrimSuffix(strings.TrimSuffix(s.Name, ".codes"), ".scales")]
		p := make([]byte, len(c.codes)/4)
		kernels.PackCodes(p, c.codes)
		if strings.HasSuffix(s.Name, ".scales") {
			p = p[:0]
			for _, v := range c.scales {
				p = append(p, byte(v), byte(v>>8))
			}
		}
		if err := w.Write(s.Name, p); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// inputs returns the inputs of the Write.
func (x *fixture) inputs(t testing.TB) (in []*io.SectionReader) {
	t.Helper()
	for _, name := range x.write.Files {
		in = append(in, opstest.Blob(x.files[name]))
	}
	for _, width := range x.config.Widths() {
		in = append(in, opstest.Blob(x.codeFile(t, width)))
	}
	return append(in, opstest.Blob(x.rotation), opstest.Blob(x.shard))
}

// run writes the file.
func (x *fixture) run(t testing.TB) ([]byte, error) {
	t.Helper()
	var b bytes.Buffer
	err := x.write.Run(context.Background(), x.inputs(t), []io.Writer{&b}, silent)
	return b.Bytes(), err
}

func (x *fixture) mustRun(t testing.TB) []byte {
	t.Helper()
	b, err := x.run(t)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openGGUF(t testing.TB, b []byte) *gguf.File {
	t.Helper()
	f, err := gguf.Open(bytes.NewReader(b), int64(len(b)), "model.gguf")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// byteTokenizer returns the files of a tokenizer of 266 tokens and three added ones, cut
// out of that of tiny-qwen3.
func byteTokenizer(t testing.TB) map[string][]byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(readFile(t, testdata, "models/tiny-qwen3/tokenizer.json"), &doc); err != nil {
		t.Fatal(err)
	}
	m := doc["model"].(map[string]any)
	vocab := map[string]any{}
	for token, id := range m["vocab"].(map[string]any) {
		if id.(float64) < 266 {
			vocab[token] = id
		}
	}
	var merges []any
	for _, merge := range m["merges"].([]any) {
		parts, ok := merge.([]any)
		if !ok {
			left, right, _ := strings.Cut(merge.(string), " ")
			parts = []any{left, right}
		}
		if _, ok := vocab[parts[0].(string)+parts[1].(string)]; ok {
			merges = append(merges, merge)
		}
	}
	m["vocab"], m["merges"] = vocab, merges
	for i, added := range doc["added_tokens"].([]any) {
		added.(map[string]any)["id"] = 266 + i
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		prism.TokenizerFile:       text,
		prism.TokenizerConfigFile: []byte(`{"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": false, "chat_template": "{{ messages }}"}`),
		prism.GenerationFile:      []byte(`{"eos_token_id": [268, 266], "bos_token_id": 266}`),
	}
}
