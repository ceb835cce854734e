package evaluate_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bonsai/ops/evaluate"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/opstest"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
	"bonsai/ops/tokenizer"
)

const (
	testdata  = "../../testdata"
	modelDir  = testdata + "/models/tiny-qwen3"
	separator = "<|endoftext|>"
)

// A chain is the ops of a recipe in order, run without an engine.
type chain struct {
	t      *testing.T
	engine *mlx.Engine
	config *model.Config

	shard, rotation []byte
	calibration     []byte
	tokenizer       [2][]byte

	body            [][]byte // codes of the layers' groups
	head, embedding []byte   // codes
	rtn             [][]byte // codes of all tensors, each group rounded by itself; nil unless rounds
	rounds          bool
}

// newChain opens the tiny model, of which it keeps that many layers.
func newChain(t *testing.T, layers int) *chain {
	t.Helper()
	c := &chain{t: t, engine: mlx.New(""), shard: read(t, modelDir, "model.safetensors")}
	var err error
	if c.config, err = model.ParseConfig(read(t, modelDir, "config.json")); err != nil {
		t.Fatal(err)
	}
	c.config.Layers = min(layers, c.config.Layers)
	return c
}

// compress makes the codes of all tensors, calibrated on that many blocks of 128 tokens of
// the training text.
func (c *chain) compress(seed uint64, blocks int) {
	c.t.Helper()
	t := c.t
	c.tokenizer = [2][]byte{read(t, modelDir, "tokenizer.json"), read(t, modelDir, "tokenizer_config.json")}
	c.calibration = c.calibrate(seed, blocks, 128)
	c.rotation = c.run(quantize.Rotation{Block: 256, Seed: seed, Widths: c.config.Widths()})
	c.body, c.rtn = nil, nil
	c.quantize()
}

// calibrate returns whole blocks of the training text in random order.
func (c *chain) calibrate(seed uint64, blocks, length int) []byte {
	tok, err := tokenizer.Parse(c.tokenizer[0], c.tokenizer[1])
	if err != nil {
		c.t.Fatal(err)
	}
	ids := tok.Encode(string(read(c.t, testdata, "texts/calibration.txt")))
	var raw []byte
	for _, b := range rand.New(rand.NewPCG(seed, 0)).Perm(len(ids) / length)[:blocks] {
		for _, id := range ids[b*length : (b+1)*length] {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
		}
	}
	var out bytes.Buffer
	spec := safetensors.Spec{Name: "tokens", DType: safetensors.I32, Shape: []int64{int64(blocks), int64(length)}}
	w, err := safetensors.NewWriter(&out, []safetensors.Spec{spec}, nil)
	if err == nil {
		err = w.Write("tokens", raw)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return out.Bytes()
}

// quantize makes the codes of all layers, of the head and of the embedding.
func (c *chain) quantize() {
	x := c.run(quantize.Embed{Vocab: c.config.Vocab, Hidden: c.config.Hidden}, c.calibration, c.shard)
	for l := range c.config.Layers {
		x = c.layer(l, x)
	}
	h := c.run(quantize.FinalHessian{Config: *c.config}.On(c.engine, 0), x, c.rotation, c.shard)
	tensors := c.config.Tensors()
	c.head = c.codes(h, tensors[len(tensors)-1])
	norm := c.config.LayerTensors(0)[0].Name
	h = c.run(quantize.GainHessian{Tensor: norm, Width: c.config.Hidden}, c.rotation, c.shard)
	c.embedding = c.codes(h, tensors[0])
}

// layer makes the codes of one layer and returns the states that leave it.
func (c *chain) layer(l int, x []byte) []byte {
	var done [][]byte
	state := x
	for _, g := range c.config.Groups(l) {
		if g.Name == model.GroupGateUp {
			half := quantize.Inputs{Config: *c.config, Layer: l, Half: quantize.Mid}.On(c.engine, 0)
			state = c.run(half, append([][]byte{x, c.rotation, c.shard}, done...)...)
		}
		op := quantize.Hessian{Config: *c.config, Layer: l, Group: g.Name}.On(c.engine, 0)
		h := c.run(op, append([][]byte{state, c.rotation, c.shard}, done...)...)
		var tensors []model.Tensor
		for _, t := range c.config.LayerTensors(l) {
			if slices.Contains(g.Tensors, t.Name) {
				tensors = append(tensors, t)
			}
		}
		done = append(done, c.codes(h, tensors...))
	}
	c.body = append(c.body, done...)
	half := quantize.Inputs{Config: *c.config, Layer: l, Half: quantize.Out}.On(c.engine, 0)
	return c.run(half, append([][]byte{state, c.rotation, c.shard}, done...)...)
}

func (c *chain) codes(hessian []byte, tensors ...model.Tensor) []byte {
	op := quantize.Codes{Tensors: tensors, Method: quantize.GPTQ, Damping: 0.01}
	if c.rounds {
		plain := op
		plain.Method = quantize.RTN
		c.rtn = append(c.rtn, c.run(plain, hessian, c.rotation, c.shard))
	}
	return c.run(op, hessian, c.rotation, c.shard)
}

// figures are what the anchors state.
type figures struct{ Original, NLL, KL, Top1 float64 }

// stages returns body, head, all: the stages of a chain, each with the codes of those before it.
func (c *chain) stages() [][][]byte {
	head := append(slices.Clone(c.body), c.head)
	return [][][]byte{c.body, head, append(slices.Clone(head), c.embedding)}
}

// scores scores the model with each of some sets of codes on the start of a text.
func (c *chain) scores(text string, tokens int, stages ...[][]byte) []figures {
	c.t.Helper()
	documents := c.documents(text)
	op := evaluate.Tokens{Limit: tokens, Window: 128, BOS: evaluate.NoBOS, Join: separator}
	windows := c.run(op, c.tokenizer[0], c.tokenizer[1], documents)
	base := evaluate.Checkpoint(*c.config, 1)
	original := c.run(evaluate.Hidden{Model: base}.On(c.engine, 0), windows, c.shard)
	var all []figures
	for _, codes := range stages {
		files := append([][]byte{c.shard, c.rotation}, codes...)
		m := evaluate.Checkpoint(*c.config, len(files))
		hidden := c.run(evaluate.Hidden{Model: m}.On(c.engine, 0), append([][]byte{windows}, files...)...)
		report := c.run(evaluate.Compare{Original: base, Model: m}, append([][]byte{windows, original, hidden, c.shard}, files...)...)
		var r evaluate.Report
		if err := json.Unmarshal(report, &r); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, figures{r.Original.NLL, r.Model.NLL, r.KL, r.Top1})
	}
	return all
}

// documents returns a text or a JSON list of texts as documents.
func (c *chain) documents(name string) []byte {
	raw := read(c.t, testdata, "texts", name)
	texts := []string{string(raw)}
	if filepath.Ext(name) == ".json" {
		texts = nil
		if err := json.Unmarshal(raw, &texts); err != nil {
			c.t.Fatal(err)
		}
	}
	var out []byte
	for _, s := range texts {
		line, err := json.Marshal(map[string]string{"text": s})
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
	return out
}

// An op is engine.Op's Run.
type op interface {
	Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error
}

func (c *chain) run(o op, in ...[]byte) []byte {
	c.t.Helper()
	out, note, err := run(c.t.Context(), o, in...)
	if err != nil {
		c.t.Fatalf("%T: %v", o, err)
	}
	if testing.Verbose() {
		c.t.Logf("%T: %d bytes, %s", o, len(out), note)
	}
	return out
}

// run runs an op with one output and returns that and its note.
func run(ctx context.Context, o op, in ...[]byte) (out []byte, note string, err error) {
	var files []*io.SectionReader
	for _, b := range in {
		files = append(files, opstest.Blob(b))
	}
	var b bytes.Buffer
	err = o.Run(ctx, files, []io.Writer{&b}, func(done float64, n string) {
		if done == 1 {
			note = n
		} else if done < 0 || done > 1 {
			panic(fmt.Sprintf("progress %v", done))
		}
	})
	return b.Bytes(), note, err
}

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
