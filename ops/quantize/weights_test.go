package quantize_test

import (
	"bytes"
	"io"
	"math"
	"slices"
	"testing"

	"bonsai/kernels"
	"bonsai/ops/model"
	"bonsai/ops/opstest"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
)

func sections(files ...[]byte) (in []*io.SectionReader) {
	for _, f := range files {
		in = append(in, opstest.Blob(f))
	}
	return in
}

func TestWeightsOfCodesAreInTheCheckpointsBasis(t *testing.T) {
	s := newSubject(t, "llama", 16)
	g := s.config.Groups(0)[3] // down: a width of two blocks
	codes := s.codesOf(t, g, quantize.RTN)
	w, err := quantize.OpenWeights(sections(codes, s.shard, s.rotation)) // in any order
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	name := g.Tensors[0]
	got, err := w.Floats(name)
	if err != nil {
		t.Fatal(err)
	}
	want := rounded(t, s, name, g.Width)
	for i, v := range got {
		if math.Abs(float64(v-want[i])) > 1e-6 {
			t.Fatalf("weight %d of %s is %v, want %v", i, name, v, want[i])
		}
	}
	part := make([]float32, 3*g.Width)
	if err := w.ReadFloats(name, part, int64(2*g.Width)); err != nil || !slices.Equal(part, got[2*g.Width:5*g.Width]) {
		t.Errorf("rows 2 to 5 differ from those of all rows (error %v)", err)
	}
	wantError(t, w.ReadFloats(name, part, 5), name)
	wantError(t, w.ReadFloats(name, part, int64(len(got))), name)
}

// rounded does again what RTN and the way back are.
func rounded(t *testing.T, s *subject, name string, width int) []float32 {
	t.Helper()
	signs, err := quantize.ReadSigns(open(t, s.rotation))
	if err != nil {
		t.Fatal(err)
	}
	v, err := signs.Of(width)
	if err != nil {
		t.Fatal(err)
	}
	x := slices.Clone(s.weights[name])
	kernels.Rotate(x, v, signs.Block)
	codes := make([]int8, kernels.Group)
	for at := 0; at < len(x); at += kernels.Group {
		scale, err := kernels.FitGroup(codes, x[at:at+kernels.Group])
		if err != nil {
			t.Fatal(err)
		}
		kernels.Dequantize(x[at:at+kernels.Group], codes, []uint16{scale})
	}
	kernels.Unrotate(x, v, signs.Block)
	return x
}

func TestWeightsWithoutCodesAreTheCheckpoints(t *testing.T) {
	s := newSubject(t, "qwen2", 1)
	w, err := quantize.OpenWeights(sections(s.shard))
	if err != nil {
		t.Fatal(err)
	}
	for _, tensor := range s.config.Tensors() {
		got, err := w.Floats(tensor.Name)
		if err != nil || !slices.Equal(got, s.weights[tensor.Name]) {
			t.Errorf("%s differs (error %v)", tensor.Name, err)
		}
	}
	_, err = w.Floats("absent")
	wantError(t, err, "absent")
}

func TestOverlayReadsPartsOfAnySource(t *testing.T) {
	s := newSubject(t, "llama", 1)
	w, err := quantize.Overlay(s.weights, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	part := make([]float32, 5)
	if err := w.ReadFloats(model.EmbedName, part, 7); err != nil || !slices.Equal(part, s.weights[model.EmbedName][7:12]) {
		t.Errorf("elements 7 to 12 are %v (error %v)", part, err)
	}
	wantError(t, w.ReadFloats(model.EmbedName, part, int64(len(s.weights[model.EmbedName])-2)), model.EmbedName)
}

func TestOpenWeightsRefuses(t *testing.T) {
	s := newSubject(t, "llama", 16)
	g := s.config.Groups(0)[1]
	codes := s.codesOf(t, g, quantize.RTN)
	other := run(t, quantize.Rotation{Block: 128, Seed: 4, Widths: s.config.Widths()})
	var noScales bytes.Buffer
	f := open(t, codes)
	raw, err := f.Bytes(g.Tensors[0] + ".codes")
	if err != nil {
		t.Fatal(err)
	}
	spec := safetensors.Spec{Name: g.Tensors[0] + ".codes", DType: safetensors.U8, Shape: []int64{128, 32}}
	w, err := safetensors.NewWriter(&noScales, []safetensors.Spec{spec}, f.Metadata())
	if err == nil {
		err = w.Write(spec.Name, raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		in   [][]byte
		want string
	}{
		"codes of another rotation": {[][]byte{other, codes, s.shard}, "codes of rotation"},
		"codes without a rotation":  {[][]byte{codes, s.shard}, "no rotation"},
		"codes twice":               {[][]byte{s.rotation, codes, codes}, g.Tensors[0]},
		"a shard twice":             {[][]byte{s.shard, s.shard}, "model.embed_tokens.weight"},
		"something else":            {[][]byte{[]byte("GGUF....")}, "weights 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := quantize.OpenWeights(sections(test.in...))
			wantError(t, err, test.want)
		})
	}
	t.Run("codes without scales", func(t *testing.T) {
		w, err := quantize.OpenWeights(sections(s.rotation, noScales.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Floats(g.Tensors[0])
		wantError(t, err, g.Tensors[0], "scales")
	})
}
