package prism_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/gguf"
	"bonsai/ops/mlx"
	"bonsai/ops/opstest"
	"bonsai/ops/prism"
)

// verify runs Verify on a file of a fixture.
func (x *fixture) verify(t testing.TB, file []byte) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	in := append([]*io.SectionReader{opstest.Blob(file)}, x.inputs(t)...)
	err := prism.Verify{Write: x.write}.On(mlx.New("go")).Run(context.Background(), in, []io.Writer{&out}, silent)
	return out.Bytes(), err
}

func TestVerify(t *testing.T) {
	for _, test := range []struct {
		name, format string
		keep         []string
	}{
		{"llama", "PTQ1_0", nil},
		{"llama3-rope", "PQ2_0", []string{"lm_head.weight"}},
		{"qwen3", "PQ2_0", []string{"q_proj.weight", "down_proj.weight", "embed_tokens.weight"}},
		{"qwen3-tied", "PTQ1_0", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := goldenFixture(t, test.name, test.format, test.keep...)
			file := x.mustRun(t)
			text, err := x.verify(t, file)
			if err != nil {
				t.Fatal(err)
			}
			var r prism.Report
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			l, err := prism.Plan(x.config, test.format, x.write.Ternary, 0)
			if err != nil {
				t.Fatal(err)
			}
			f := openGGUF(t, file)
			payload := int64(len(file)) - f.DataOffset()
			if r.Version != 1 || r.Tensors != len(f.Tensors()) || r.Ternary != len(x.write.Ternary) || r.Bytes != payload || r.Bytes != l.Bytes ||
				r.BitsPerWeight != l.BitsPerWeight() || r.Keys != len(f.Meta()) || r.Logits.Positions != 24 || r.Logits.KL > 1e-6 {
				t.Errorf("report = %+v, %d bytes of tensors", r, payload)
			}
			t.Logf("%.3f bits a weight, logits differ by %.2g", r.BitsPerWeight, r.Logits.Largest)
		})
	}
}

func TestVerifyStories(t *testing.T) {
	x := storiesFixture(t)
	if _, err := x.verify(t, x.mustRun(t)); err != nil {
		t.Error(err)
	}
}

// A part is a file taken apart, to be put together otherwise.
type parts struct {
	meta    []gguf.KV
	specs   []gguf.Spec
	tensors map[string][]byte
}

func takeApart(t testing.TB, file []byte) *parts {
	t.Helper()
	f := openGGUF(t, file)
	p := &parts{meta: f.Meta(), tensors: map[string][]byte{}}
	for _, x := range f.Tensors() {
		p.specs = append(p.specs, gguf.Spec{Name: x.Name, Type: x.Type, Shape: x.Shape})
		b, err := f.Bytes(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		p.tensors[x.Name] = b
	}
	return p
}

func (p *parts) together(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, p.meta, p.specs)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.specs {
		if err := w.Write(s.Name, p.tensors[s.Name]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// set gives a key another value; nil removes it.
func (p *parts) set(key string, value any) {
	p.meta = slices.DeleteFunc(p.meta, func(kv gguf.KV) bool { return kv.Key == key })
	if value != nil {
		p.meta = append(p.meta, gguf.KV{Key: key, Value: value})
	}
}

// remove leaves a tensor out.
func (p *parts) remove(name string) {
	p.specs = slices.DeleteFunc(p.specs, func(s gguf.Spec) bool { return s.Name == name })
}

// add adds a tensor of F32 zeros.
func (p *parts) add(name string, n int64) {
	p.specs = append(p.specs, gguf.Spec{Name: name, Type: gguf.F32, Shape: []int64{n}})
	p.tensors[name] = make([]byte, 4*n)
}

// Whatever is changed in a file, Verify finds it and names it.
func TestVerifyFinds(t *testing.T) {
	x := goldenFixture(t, "llama", "PTQ1_0", "layers.2.self_attn.q_proj.weight")
	file := x.mustRun(t)
	for _, test := range []struct {
		name, want string
		spoil      func(p *parts)
	}{
		{"a code", "tensor blk.1.attn_q.weight: the file is not what was to be written: code ", func(p *parts) { p.tensors["blk.1.attn_q.weight"][28*3+5] ^= 0x80 }},
		{"a scale", "tensor output.weight: the file is not what was to be written: scale 0 is", func(p *parts) { p.tensors["output.weight"][26] ^= 1 }},
		{"an infinite scale", `tensor "output.weight": element 0 is`, func(p *parts) { binary.LittleEndian.PutUint16(p.tensors["output.weight"][26:], 0x7c00) }},
		{"a norm", "tensor blk.3.ffn_norm.weight: the file is not what was to be written: element 9", func(p *parts) { p.tensors["blk.3.ffn_norm.weight"][4*9] ^= 1 }},
		{"a NaN", `tensor "output_norm.weight": element 2 is NaN`, func(p *parts) {
			binary.LittleEndian.PutUint32(p.tensors["output_norm.weight"][8:], 0x7fc00000)
		}},
		{"a kept matrix", "tensor blk.2.attn_q.weight: the file is not what was to be written: element 1", func(p *parts) { p.tensors["blk.2.attn_q.weight"][2] ^= 1 }},
		{"two rows of q", "tensor blk.0.attn_q.weight", func(p *parts) {
			b := p.tensors["blk.0.attn_q.weight"]
			row := slices.Clone(b[:28])
			copy(b[:28], b[28:56])
			copy(b[28:56], row)
		}},
		{"a missing tensor", "tensor blk.3.ffn_down.weight is missing", func(p *parts) { p.remove("blk.3.ffn_down.weight") }},
		{"a tensor too many", "tensor extra was not planned", func(p *parts) { p.add("extra", 8) }},
		{"tensors in another order", "tensor output_norm.weight stands where", func(p *parts) { slices.Reverse(p.specs[len(p.specs)-2:]); slices.Reverse(p.specs) }},
		{"another shape", "tensor output_norm.weight is F32 [2 64]", func(p *parts) { p.specs[len(p.specs)-2].Shape = []int64{2, 64} }},
		{"a missing sign", "key prism.hadamard.sign_values", func(p *parts) { p.set("prism.hadamard.sign_values", []int32{1}) }},
		{"no contract", "key prism.hadamard.version is missing", func(p *parts) { p.set("prism.hadamard.version", nil) }},
		{"another type of value", "key llama.block_count", func(p *parts) { p.set("llama.block_count", int32(4)) }},
		{"a template that is lost", "key tokenizer.chat_template is missing", func(p *parts) { p.set("tokenizer.chat_template", nil) }},
		{"a key too many", "key tokenizer.ggml.cls_token_id was not to be written", func(p *parts) { p.set("tokenizer.ggml.cls_token_id", uint32(1)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := takeApart(t, file)
			test.spoil(p)
			_, err := x.verify(t, p.together(t))
			if !errors.Is(err, prism.ErrMismatch) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Verify = %v, want ErrMismatch with %q", err, test.want)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	x := goldenFixture(t, "qwen3", "PTQ1_0")
	file := x.mustRun(t)
	for n := range 3 {
		if _, err := x.verify(t, file[:len(file)*n/3]); !errors.Is(err, prism.ErrMismatch) || !errors.Is(err, gguf.ErrFormat) {
			t.Errorf("Verify of %d thirds of the file = %v, want ErrMismatch and ErrFormat", n, err)
		}
	}
	v := prism.Verify{Write: x.write}
	in := append([]*io.SectionReader{opstest.Blob(file)}, x.inputs(t)...)
	if err := v.Run(context.Background(), in, []io.Writer{io.Discard}, silent); err == nil || !strings.Contains(err.Error(), "no tensor engine") {
		t.Errorf("Run without an engine = %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := v.On(mlx.New("go")).Run(ctx, in, []io.Writer{io.Discard}, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("Run of a cancelled context = %v", err)
	}
	if err := v.On(mlx.New("go")).Run(context.Background(), nil, []io.Writer{io.Discard}, silent); err == nil {
		t.Error("Run without inputs = nil")
	}
}
