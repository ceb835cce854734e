package quantize_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"bonsai/kernels"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/opstest"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
)

func TestLayerOpsManifests(t *testing.T) {
	c := *modeltest.Tiny("mistral")
	c.Windows = []int{16, 0}
	opstest.CheckManifest(t, quantize.Hessian{Config: c, Layer: 1, Group: model.GroupO})
	opstest.CheckManifest(t, quantize.FinalHessian{Config: c})
	opstest.CheckManifest(t, quantize.GainHessian{Tensor: "norm", Width: 128})
	opstest.CheckManifest(t, quantize.Inputs{Config: c, Layer: 1, Half: quantize.Mid})
	opstest.CheckManifest(t, quantize.Embed{Vocab: 96, Hidden: 128})
}

// TestHessianIsTheMeanOuterProduct computes it again for the first group, in float64 and
// in the basis of the checkpoint, and rotates it.
func TestHessianIsTheMeanOuterProduct(t *testing.T) {
	s := newSubject(t, "llama", 3)
	g := s.config.Groups(0)[0]
	f := open(t, run(t, quantize.Hessian{Config: *s.config, Group: g.Name}.On(s.engine, 0), s.state(t, g), s.rotation, s.shard))
	if got := f.Metadata()["tokens"]; got != "96" {
		t.Errorf("%s tokens, want 96", got)
	}
	got, err := f.Floats("hessian")
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, g.Width*g.Width)
	x := s.normed(t)
	for i := range g.Width {
		for j := range g.Width {
			var sum float64
			for at := 0; at < len(x); at += g.Width {
				sum += float64(x[at+i]) * float64(x[at+j])
			}
			want[i*g.Width+j] = float32(sum / 96)
		}
	}
	s.rotateGram(t, want, g.Width)
	closeTo(t, got, want, 1e-5)
}

func (s *subject) rotateGram(t testing.TB, h []float32, width int) {
	t.Helper()
	signs, err := quantize.ReadSigns(open(t, s.rotation))
	if err != nil {
		t.Fatal(err)
	}
	v, err := signs.Of(width)
	if err != nil {
		t.Fatal(err)
	}
	kernels.RotateGram(h, v, signs.Block)
}

func closeTo(t testing.TB, got, want []float32, bound float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i, v := range got {
		if math.Abs(float64(v-want[i])) > bound {
			t.Fatalf("element %d is %v, want %v", i, v, want[i])
		}
	}
}

func TestGainHessianIsRotatedSquares(t *testing.T) {
	s := newSubject(t, "llama", 1)
	const norm = "model.layers.0.input_layernorm.weight"
	f := open(t, run(t, quantize.GainHessian{Tensor: norm, Width: 128}, s.rotation, s.shard))
	got, err := f.Floats("hessian")
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 128*128)
	for i, g := range s.weights[norm] {
		want[i*128+i] = g * g
	}
	s.rotateGram(t, want, 128)
	closeTo(t, got, want, 1e-6)
	if tokens := f.Metadata()["tokens"]; tokens != "0" {
		t.Errorf("%s tokens, want 0", tokens)
	}
	_, _, err = try(t.Context(), quantize.GainHessian{Tensor: norm, Width: 256}, s.rotation, s.shard)
	wantError(t, err, norm, "128 elements, want 256")
}

// TestStatesAreThoseOfTheModel runs both layers by Inputs and compares with the model's own
// forward pass: the states lose what BF16 rounds away, twice a layer.
func TestStatesAreThoseOfTheModel(t *testing.T) {
	s := newSubject(t, "qwen3", 2)
	x := s.embed(t)
	for l := range s.config.Layers {
		for _, half := range []string{quantize.Mid, quantize.Out} {
			x = run(t, quantize.Inputs{Config: *s.config, Layer: l, Half: half}.On(s.engine, 0), x, s.rotation, s.shard)
		}
	}
	f := open(t, x)
	if got := f.Metadata()["length"]; got != "32" {
		t.Errorf("length %q, want 32", got)
	}
	states, err := f.Floats("x")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := open(t, s.tokens).Int32s("tokens")
	if err != nil {
		t.Fatal(err)
	}
	r := model.NewRunner(s.engine, s.config)
	want, err := r.Forward(s.weights, ids, 32)
	if err != nil {
		t.Fatal(err)
	}
	normed, err := r.Final(s.weights, states)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Logits(s.weights, normed)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, got, want, 0.05)
}

// TestAnOverflowStopsWithItsName: numbers that overflow in a layer are reported there.
func TestAnOverflowStopsWithItsName(t *testing.T) {
	s := newSubject(t, "llama", 2)
	x := s.embed(t)
	down := s.weights["model.layers.1.mlp.down_proj.weight"]
	for i := range down {
		down[i] = 3e38
	}
	s.save(t)
	_, _, err := try(t.Context(), quantize.Inputs{Config: *s.config, Layer: 1, Half: quantize.Out}.On(s.engine, 0), x, s.rotation, s.shard)
	wantError(t, err, "layer 1", "not finite")

	gain := s.weights["model.layers.1.input_layernorm.weight"]
	for i := range gain {
		gain[i] = 1e30
	}
	s.save(t)
	_, _, err = try(t.Context(), quantize.Hessian{Config: *s.config, Layer: 1, Group: model.GroupQKV}.On(s.engine, 0), x, s.rotation, s.shard)
	wantError(t, err, "layer 1", "qkv", "Hessian is")
}

func TestLayerOpsRefuse(t *testing.T) {
	s := newSubject(t, "llama", 1)
	c := *s.config
	x := s.embed(t)
	wide := c
	wide.Hidden = 256
	small := quantize.Embed{Vocab: 10, Hidden: 128}
	for name, test := range map[string]struct {
		op   op
		in   [][]byte
		want string
	}{
		"no engine":                 {quantize.Hessian{Config: c, Group: model.GroupO}, [][]byte{x, s.rotation, s.shard}, "no tensor engine"},
		"no engine for half layers": {quantize.Inputs{Config: c, Half: quantize.Mid}, [][]byte{x, s.rotation, s.shard}, "no tensor engine"},
		"no engine for the end":     {quantize.FinalHessian{Config: c}, [][]byte{x, s.rotation, s.shard}, "no tensor engine"},
		"a group that is none":      {quantize.Hessian{Config: c, Group: "x"}.On(s.engine, 0), [][]byte{x, s.rotation, s.shard}, `group "x"`},
		"a layer that is none":      {quantize.Hessian{Config: c, Layer: 2, Group: "o"}.On(s.engine, 0), [][]byte{x, s.rotation, s.shard}, "layer 2"},
		"a half that is none":       {quantize.Inputs{Config: c, Half: "both"}.On(s.engine, 0), [][]byte{x, s.rotation, s.shard}, `"both"`},
		"states of another width":   {quantize.FinalHessian{Config: wide}.On(s.engine, 0), [][]byte{x, s.rotation, s.shard}, "width 256"},
		"tokens as states":          {quantize.FinalHessian{Config: c}.On(s.engine, 0), [][]byte{s.tokens, s.rotation, s.shard}, "not hidden states"},
		"a shard as rotation":       {quantize.FinalHessian{Config: c}.On(s.engine, 0), [][]byte{x, s.shard, s.shard}, ""},
		"states as rotation":        {quantize.FinalHessian{Config: c}.On(s.engine, 0), [][]byte{x, x, s.shard}, "not a rotation"},
		"a shard without the norm":  {quantize.FinalHessian{Config: c}.On(s.engine, 0), [][]byte{x, s.rotation, s.rotation}, ""},
		"too few inputs":            {quantize.Inputs{Config: c, Half: quantize.Mid}.On(s.engine, 0), [][]byte{x, s.rotation}, "2 inputs"},
		"ids beyond the vocabulary": {small, [][]byte{s.tokens, s.shard}, "vocabulary of 10"},
		"states as calibration":     {quantize.Embed{Vocab: 96, Hidden: 128}, [][]byte{x, s.shard}, "tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := try(t.Context(), test.op, test.in...)
			wantError(t, err, test.want)
		})
	}
}

func TestOpsStopWhenCancelled(t *testing.T) {
	s := newSubject(t, "llama", 16)
	x := s.embed(t)
	g := s.config.Groups(0)[0]
	h := run(t, quantize.Hessian{Config: *s.config, Group: g.Name}.On(s.engine, 0), x, s.rotation, s.shard)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		op op
		in [][]byte
	}{
		{quantize.Embed{Vocab: 96, Hidden: 128}, [][]byte{s.tokens, s.shard}},
		{quantize.Hessian{Config: *s.config, Group: g.Name}.On(s.engine, 0), [][]byte{x, s.rotation, s.shard}},
		{quantize.FinalHessian{Config: *s.config}.On(s.engine, 0), [][]byte{x, s.rotation, s.shard}},
		{quantize.Inputs{Config: *s.config, Half: quantize.Mid}.On(s.engine, 0), [][]byte{x, s.rotation, s.shard}},
		{quantize.Codes{Tensors: s.tensors(g), Method: quantize.GPTQ, Damping: 0.01}, [][]byte{h, s.rotation, s.shard}},
	} {
		if _, _, err := try(ctx, test.op, test.in...); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: error %v, want %v", test.op, err, context.Canceled)
		}
	}
}

// TestEmbedRoundsToBF16 looks embeddings up by hand.
func TestEmbedRoundsToBF16(t *testing.T) {
	s := newSubject(t, "llama", 2)
	f := open(t, s.embed(t))
	tensor, _ := f.Lookup("x")
	if tensor.DType != safetensors.BF16 || !slices.Equal(tensor.Shape, []int64{64, 128}) {
		t.Errorf("x is %s %v, want BF16 [64 128]", tensor.DType, tensor.Shape)
	}
	got, err := f.Floats("x")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := open(t, s.tokens).Int32s("tokens")
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		for j := range 128 {
			v := s.weights[model.EmbedName][int(id)*128+j]
			if d := math.Abs(float64(v - got[i*128+j])); d > math.Abs(float64(v))/256 {
				t.Fatalf("token %d, channel %d: %v, want %v", i, j, got[i*128+j], v)
			}
		}
	}
}

// TestPeaksAndCostsFollowShapes checks the closed forms where they are known by hand.
func TestPeaksAndCostsFollowShapes(t *testing.T) {
	c := *modeltest.Tiny("llama")
	tensors := []model.Tensor{{Name: "w", Shape: []int64{256, 128}}}
	codes := quantize.Codes{Tensors: tensors, Method: quantize.GPTQ}
	if got, want := codes.Cost(), 128.*128*128/3+3*256*128*128; got != want {
		t.Errorf("Cost of codes %v, want %v", got, want)
	}
	if got := codes.Peak(); got < 8*128*128 || got > 1<<21 {
		t.Errorf("Peak of codes %d", got)
	}
	h := quantize.Hessian{Config: c, Group: model.GroupDown}.On(mlx.New(""), 1)
	if got, want := h.Cost(10, 32), 10*(4*128*256+256.*256); got != want {
		t.Errorf("Cost of a Hessian %v, want %v", got, want)
	}
	if got := h.Peak(32); got < 12*256*256 || got > 1<<26 {
		t.Errorf("Peak of a Hessian %d", got)
	}
	half := quantize.Inputs{Config: c, Half: quantize.Out}
	if got, want := half.Cost(10, 32), 10*6*128*256.; got != want {
		t.Errorf("Cost of half a layer %v, want %v", got, want)
	}
	if half.Peak(32) <= 0 || (quantize.FinalHessian{Config: c}).Peak(32) <= 0 {
		t.Error("a peak is not positive")
	}
	if got, want := (quantize.FinalHessian{Config: c}).Cost(10), 10*128*128.; got != want {
		t.Errorf("Cost of the final Hessian %v, want %v", got, want)
	}
}

func TestNotesSayWhatHappened(t *testing.T) {
	s := newSubject(t, "llama", 16)
	g := s.config.Groups(0)[0]
	x := s.embed(t)
	h, note, err := try(t.Context(), quantize.Hessian{Config: *s.config, Group: g.Name}.On(s.engine, 0), x, s.rotation, s.shard)
	if err != nil || note != "512 tokens, 4.0 a column" {
		t.Errorf("note of a Hessian %q (error %v)", note, err)
	}
	_, note, err = try(t.Context(), quantize.Codes{Tensors: s.tensors(g), Method: quantize.GPTQ, Damping: 0.01}, h, s.rotation, s.shard)
	if err != nil || !strings.HasPrefix(note, "relative error 0.") || !strings.Contains(note, " % zeros") {
		t.Errorf("note of codes %q (error %v)", note, err)
	}
}
