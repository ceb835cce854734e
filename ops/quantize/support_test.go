package quantize_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/opstest"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
)

// An op is engine.Op's Run.
type op interface {
	Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error
}

// try runs an op with one output and returns that and its note.
func try(ctx context.Context, o op, in ...[]byte) (out []byte, note string, err error) {
	var files []*io.SectionReader
	for _, b := range in {
		files = append(files, opstest.Blob(b))
	}
	var b bytes.Buffer
	err = o.Run(ctx, files, []io.Writer{&b}, func(done float64, n string) {
		if done == 1 {
			note = n
		}
	})
	return b.Bytes(), note, err
}

// run is try, and fails the test on an error.
func run(t testing.TB, o op, in ...[]byte) []byte {
	t.Helper()
	out, _, err := try(t.Context(), o, in...)
	if err != nil {
		t.Fatalf("%T: %v", o, err)
	}
	return out
}

// wantError fails the test unless err's text holds all parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}

// open opens the bytes of a safetensors file.
func open(t testing.TB, b []byte) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(bytes.NewReader(b), int64(len(b)), "test")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes a safetensors file of one tensor.
func write(t testing.TB, spec safetensors.Spec, raw []byte, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, []safetensors.Spec{spec}, metadata)
	if err == nil {
		err = w.Write(spec.Name, raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// floats returns a file of one F32 tensor.
func floats(t testing.TB, name string, x []float32, metadata map[string]string, shape ...int64) []byte {
	t.Helper()
	raw, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, safetensors.Spec{Name: name, DType: safetensors.F32, Shape: shape}, raw, metadata)
}

// hessianFile returns the artifact of a Hessian.
func hessianFile(t testing.TB, h []float32, width int, tokens string) []byte {
	t.Helper()
	return floats(t, "hessian", h, map[string]string{"tokens": tokens}, int64(width), int64(width))
}

// A subject is a random model of two layers, its calibration and its rotation.
type subject struct {
	engine   *mlx.Engine
	config   *model.Config
	weights  modeltest.Weights
	shard    []byte
	tokens   []byte
	rotation []byte
}

// newSubject makes a subject with that many sequences of 32 tokens.
func newSubject(t testing.TB, kind string, sequences int) *subject {
	t.Helper()
	s := &subject{engine: mlx.New(""), config: modeltest.Tiny(kind)}
	s.weights = modeltest.Random(s.config, 1)
	s.save(t)
	rng := rand.New(rand.NewPCG(2, 0))
	raw := []byte{}
	for range sequences * 32 {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(rng.IntN(s.config.Vocab)))
	}
	s.tokens = write(t, safetensors.Spec{Name: "tokens", DType: safetensors.I32, Shape: []int64{int64(sequences), 32}}, raw, nil)
	s.rotation = run(t, quantize.Rotation{Block: 128, Seed: 3, Widths: s.config.Widths()})
	return s
}

// save makes the shard of the weights as they are.
func (s *subject) save(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	modeltest.Write(t, dir, s.config, s.weights)
	var err error
	if s.shard, err = os.ReadFile(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
}

// embed returns the states that enter layer 0.
func (s *subject) embed(t testing.TB) []byte {
	t.Helper()
	return run(t, quantize.Embed{Vocab: s.config.Vocab, Hidden: s.config.Hidden}, s.tokens, s.shard)
}

// state returns the states that a group of layer 0 is computed from, nothing quantized.
func (s *subject) state(t testing.TB, g model.Group) []byte {
	t.Helper()
	x := s.embed(t)
	if g.From == model.MidResidual {
		x = run(t, quantize.Inputs{Config: *s.config, Half: quantize.Mid}.On(s.engine, 0), x, s.rotation, s.shard)
	}
	return x
}

// tensors returns the tensors of a group of layer 0.
func (s *subject) tensors(g model.Group) (tensors []model.Tensor) {
	for _, t := range s.config.LayerTensors(0) {
		if t.Group == g.Name {
			tensors = append(tensors, t)
		}
	}
	return tensors
}
