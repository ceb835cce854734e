package quantize_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"bonsai/kernels"
	"bonsai/ops/model"
	"bonsai/ops/opstest"
	"bonsai/ops/quantize"
)

func TestCodesManifest(t *testing.T) {
	opstest.CheckManifest(t, quantize.Codes{
		Tensors: []model.Tensor{{Name: "w", Shape: []int64{2, 128}, Layer: 1, Group: "o"}},
		Method:  quantize.GPTQ, Damping: 0.01, FewTokens: true,
	})
}

// codesOf quantizes a group of layer 0 with a method.
func (s *subject) codesOf(t testing.TB, g model.Group, method string) []byte {
	t.Helper()
	h := run(t, quantize.Hessian{Config: *s.config, Group: g.Name}.On(s.engine, 0), s.state(t, g), s.rotation, s.shard)
	return run(t, quantize.Codes{Tensors: s.tensors(g), Method: method, Damping: 0.01}, h, s.rotation, s.shard)
}

func TestGPTQBeatsRoundingInEveryGroup(t *testing.T) {
	s := newSubject(t, "qwen3", 48)
	for _, g := range s.config.Groups(0) {
		gptq, rtn := open(t, s.codesOf(t, g, quantize.GPTQ)), open(t, s.codesOf(t, g, quantize.RTN))
		for _, name := range g.Tensors {
			a, b := number(t, gptq.Metadata()["error."+name]), number(t, rtn.Metadata()["error."+name])
			if !(0 < a && a < b && b < 1) {
				t.Errorf("%s: relative error %v by GPTQ, %v by rounding", name, a, b)
			}
		}
	}
}

func number(t testing.TB, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestErrorIsThatOfTheOutputs computes the relative error again from what the codes give in
// the checkpoint's basis, as the mean square of the outputs over the tokens.
func TestErrorIsThatOfTheOutputs(t *testing.T) {
	s := newSubject(t, "llama", 16)
	g := s.config.Groups(0)[0]
	for _, method := range []string{quantize.GPTQ, quantize.RTN} {
		codes := s.codesOf(t, g, method)
		w, err := quantize.OpenWeights(sections(s.rotation, codes, s.shard))
		if err != nil {
			t.Fatal(err)
		}
		x := s.normed(t)
		for _, name := range g.Tensors {
			q, err := w.Floats(name)
			if err != nil {
				t.Fatal(err)
			}
			want := outputError(x, s.weights[name], q, g.Width)
			got := number(t, open(t, codes).Metadata()["error."+name])
			if math.Abs(got-want) > 2e-3*want {
				t.Errorf("%s of %s: error %v, computed from outputs %v", method, name, got, want)
			}
		}
	}
}

// normed returns the inputs of layer 0's first group, [tokens, hidden].
func (s *subject) normed(t testing.TB) []float32 {
	t.Helper()
	x, err := open(t, s.embed(t)).Floats("x")
	if err != nil {
		t.Fatal(err)
	}
	gain, width := s.weights["model.layers.0.input_layernorm.weight"], s.config.Hidden
	for at := 0; at < len(x); at += width {
		row := x[at : at+width]
		sum := s.config.Epsilon * float64(width)
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		for i := range row {
			row[i] *= gain[i] * float32(math.Sqrt(float64(width)/sum))
		}
	}
	return x
}

func outputError(x, w, q []float32, width int) float64 {
	var loss, energy float64
	for t := 0; t < len(x); t += width {
		for r := 0; r < len(w); r += width {
			var d, y float64
			for i := range width {
				d += float64(w[r+i]-q[r+i]) * float64(x[t+i])
				y += float64(w[r+i]) * float64(x[t+i])
			}
			loss, energy = loss+d*d, energy+y*y
		}
	}
	return math.Sqrt(loss / energy)
}

// TestCodesDoNotDependOnThreads also covers rows in more than one chunk.
func TestCodesDoNotDependOnThreads(t *testing.T) {
	const rows, width = 1300, 128
	shard := floats(t, "w", normals(4, rows*width), nil, rows, width)
	rotation := run(t, quantize.Rotation{Block: 128, Widths: []int{width}})
	h := hessianFile(t, correlated(), width, "4096")
	op := quantize.Codes{
		Tensors: []model.Tensor{{Name: "w", Shape: []int64{rows, width}}},
		Method:  quantize.GPTQ, Damping: 0.01,
	}
	one, two := run(t, op.On(1), h, rotation, shard), run(t, op.On(3), h, rotation, shard)
	if !bytes.Equal(one, two) {
		t.Error("1 and 3 threads give other bytes")
	}
	half := op
	half.Tensors = []model.Tensor{{Name: "w", Shape: []int64{rows, width}}, {Name: "v", Shape: []int64{rows, width}}}
	_, _, err := try(t.Context(), half, h, rotation, shard)
	wantError(t, err, "v")
}

func normals(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// correlated returns the Hessian 0.9^|i−j| of 128 columns.
func correlated() []float32 {
	const n = 128
	h := make([]float32, n*n)
	for i := range n {
		for j := range n {
			h[i*n+j] = float32(math.Pow(0.9, math.Abs(float64(i-j))))
		}
	}
	return h
}

// low returns a matrix of ones but for its diagonal.
func low(n int, diagonal float32) []float32 {
	h := make([]float32, n*n)
	for i := range h {
		h[i] = 1
	}
	for i := range n {
		h[i*n+i] = diagonal
	}
	return h
}

func TestCodesOfADegenerateHessian(t *testing.T) {
	const width = 128
	shard := floats(t, "w", normals(5, 8*width), nil, 8, width)
	rotation := run(t, quantize.Rotation{Block: 128, Widths: []int{width}})
	op := quantize.Codes{Tensors: []model.Tensor{{Name: "w", Shape: []int64{8, width}}}, Method: quantize.GPTQ, Damping: 1e-3}

	t.Run("more damping is used and said", func(t *testing.T) {
		// Eigenvalues −0.005 but for one: 1 % of the diagonal makes them positive.
		out, note, err := try(t.Context(), op, hessianFile(t, low(width, 0.995), width, "4096"), rotation, shard)
		if err != nil {
			t.Fatal(err)
		}
		if got := open(t, out).Metadata()["damping"]; got != "0.01" {
			t.Errorf("damping %q in the metadata, want 0.01", got)
		}
		if want := "damping 0.01 because 0.001 was too little"; !bytes.Contains([]byte(note), []byte(want)) {
			t.Errorf("note %q lacks %q", note, want)
		}
	})
	t.Run("the error names tensor, tokens and column", func(t *testing.T) {
		_, _, err := try(t.Context(), op, hessianFile(t, low(width, 0.01), width, "4096"), rotation, shard)
		var factor *quantize.FactorError
		if !errors.As(err, &factor) {
			t.Fatalf("error %v, want a *FactorError", err)
		}
		if factor.Tokens != 4096 || factor.Width != width || factor.Column != width-2 || factor.Damping != 1 {
			t.Errorf("error %+v", factor)
		}
		wantError(t, err, "w", "4096 tokens", "32 a column", "column 126")
	})
	t.Run("float64 serves where float32 does not", func(t *testing.T) {
		// Of rank 1: the damping is all that the other pivots have, and float32 rounds it away.
		fine := op
		fine.Damping = 1e-9
		out := run(t, fine, hessianFile(t, low(width, 1), width, "4096"), rotation, shard)
		if m := open(t, out).Metadata(); m["precision"] != "f64" || m["damping"] != "1e-09" {
			t.Errorf("precision %q, damping %q, want f64, 1e-09", m["precision"], m["damping"])
		}
	})
}

func TestCodesRefuse(t *testing.T) {
	const width = 128
	shard := floats(t, "w", normals(5, 8*width), nil, 8, width)
	rotation := run(t, quantize.Rotation{Block: 128, Widths: []int{width}})
	other := run(t, quantize.Rotation{Block: 128, Widths: []int{256}})
	good := quantize.Codes{Tensors: []model.Tensor{{Name: "w", Shape: []int64{8, width}}}, Method: quantize.GPTQ, Damping: 0.01}
	h := correlated()
	change := func(f func(*quantize.Codes)) quantize.Codes {
		c := good
		f(&c)
		return c
	}
	bad := func(i int, v float32) []byte {
		b := append([]float32(nil), h...)
		b[i] = v
		return hessianFile(t, b, width, "4096")
	}
	huge := normals(5, 8*width)
	for i := range huge {
		huge[i] *= 1e30
	}
	file := hessianFile(t, h, width, "4096")
	for name, test := range map[string]struct {
		op   quantize.Codes
		in   [][]byte
		want string
	}{
		"too few tokens":         {good, [][]byte{hessianFile(t, h, width, "255"), rotation, shard}, "255 tokens for 128 columns"},
		"an unknown method":      {change(func(c *quantize.Codes) { c.Method = "awq" }), [][]byte{file, rotation, shard}, `"awq"`},
		"damping that is NaN":    {change(func(c *quantize.Codes) { c.Damping = math.NaN() }), [][]byte{file, rotation, shard}, "NaN"},
		"no tensors":             {change(func(c *quantize.Codes) { c.Tensors = nil }), [][]byte{file, rotation, shard}, "no tensors"},
		"a vector":               {change(func(c *quantize.Codes) { c.Tensors = []model.Tensor{{Name: "b", Shape: []int64{128}}} }), [][]byte{file, rotation, shard}, "b"},
		"a width without groups": {change(func(c *quantize.Codes) { c.Tensors = []model.Tensor{{Name: "b", Shape: []int64{2, 100}}} }), [][]byte{file, rotation, shard}, "multiple of 128"},
		"missing inputs":         {good, [][]byte{file, rotation}, "2 inputs"},
		"a NaN in the Hessian":   {good, [][]byte{bad(3, float32(math.NaN())), rotation, shard}, "NaN"},
		"a negative diagonal":    {good, [][]byte{bad(width+1, -1), rotation, shard}, "diagonal"},
		"a zero Hessian":         {good, [][]byte{hessianFile(t, make([]float32, width*width), width, "4096"), rotation, shard}, "zero"},
		"a Hessian of 2 widths":  {good, [][]byte{hessianFile(t, make([]float32, 64*64), 64, "4096"), rotation, shard}, "128 × 128"},
		"signs of other widths":  {good, [][]byte{file, other, shard}, "width 128"},
		"no rotation":            {good, [][]byte{file, shard, shard}, "w"},
		"a tensor that is absent": {
			change(func(c *quantize.Codes) { c.Tensors = []model.Tensor{{Name: "v", Shape: []int64{8, 128}}} }),
			[][]byte{file, rotation, shard},
			`"v"`,
		},
		"a scale beyond float16": {good, [][]byte{file, rotation, floats(t, "w", huge, nil, 8, width)}, "tensor w: rows from 0: row 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := try(t.Context(), test.op, test.in...)
			wantError(t, err, test.want)
		})
	}
}

func TestCodesSayWhenTokensAreFew(t *testing.T) {
	const width = 128
	shard := floats(t, "w", normals(5, 8*width), nil, 8, width)
	rotation := run(t, quantize.Rotation{Block: 128, Widths: []int{width}})
	op := quantize.Codes{Tensors: []model.Tensor{{Name: "w", Shape: []int64{8, width}}}, Method: quantize.GPTQ, Damping: 0.01}
	note := func(op quantize.Codes, tokens string) string {
		t.Helper()
		_, note, err := try(t.Context(), op, hessianFile(t, correlated(), width, tokens), rotation, shard)
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	if got, want := note(op, "1024"), "only 8.0 tokens a column"; !bytes.Contains([]byte(got), []byte(want)) {
		t.Errorf("note %q lacks %q", got, want)
	}
	if got := note(op, "2048"); bytes.Contains([]byte(got), []byte("only")) {
		t.Errorf("note %q of enough tokens", got)
	}
	op.FewTokens = true
	note(op, "12")
	op.FewTokens = false
	note(op, "0") // not a mean over tokens: the embedding's
}

// TestCodesOfZeros: a tensor of zeros has nothing to get wrong.
func TestCodesOfZeros(t *testing.T) {
	const width = 128
	rotation := run(t, quantize.Rotation{Block: 128, Widths: []int{width}})
	op := quantize.Codes{Tensors: []model.Tensor{{Name: "w", Shape: []int64{2, width}}}, Method: quantize.GPTQ, Damping: 0.01}
	out := run(t, op, hessianFile(t, correlated(), width, "4096"), rotation, floats(t, "w", make([]float32, 2*width), nil, 2, width))
	m := open(t, out).Metadata()
	if m["error.w"] != "0" || m["zeros.w"] != "1" {
		t.Errorf("error %s, zeros %s, want 0 and 1", m["error.w"], m["zeros.w"])
	}
	packed, err := open(t, out).Bytes("w.codes")
	if err != nil {
		t.Fatal(err)
	}
	codes := make([]int8, 2*width)
	kernels.UnpackCodes(codes, packed)
	for i, c := range codes {
		if c != 0 {
			t.Fatalf("code %d is %d", i, c)
		}
	}
}
