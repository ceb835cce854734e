package model_test

import (
	"math"
	"testing"

	"bonsai/ops/model"
)

// The figures are those of architectures.md 7, computed by an independent program from transformers' formulas.

func TestRopeLlama3(t *testing.T) {
	plain, _ := model.Rope{Type: "default", Base: 5e5}.Frequencies(128)
	r := model.Rope{Type: "llama3", Base: 5e5, Factor: 8, LowFreq: 1, HighFreq: 4, Original: 8192}
	got, scale := r.Frequencies(128)
	if scale != 1 {
		t.Errorf("scale is %g", scale)
	}
	between := []float64{1.207484, 1.553415, 2.026313, 2.694530, 3.684253, 5.257327}
	for j := range got {
		want := 8.0
		switch {
		case j <= 28:
			want = 1
		case j <= 34:
			want = between[j-29]
		}
		if d := plain[j] / got[j]; math.Abs(d-want) > 1e-6*want {
			t.Errorf("frequency %d is divided by %.7g, want %.7g", j, d, want)
		}
	}
}

func TestRopeYarn(t *testing.T) {
	r := model.Rope{
		Type: "yarn", Base: 1e6, Factor: 4, Original: 32768, BetaFast: 32, BetaSlow: 1, Truncate: true,
		Attention: 0.1*math.Log(4) + 1,
	}
	got, scale := r.Frequencies(128)
	if math.Abs(scale-1.138629436) > 1e-9 {
		t.Errorf("scale is %.10g", scale)
	}
	for j, want := range map[int]float64{
		0: 1, 23: 6.978305849e-3, 24: 5.375321490e-3, 32: 6.029411765e-4, 40: 4.445698525e-5, 63: 3.102344402e-7,
	} {
		if math.Abs(got[j]-want) > 1e-9*want {
			t.Errorf("frequency %d is %.10g, want %.10g", j, got[j], want)
		}
	}
}

func TestRopeYarnScale(t *testing.T) {
	for _, test := range []struct {
		dict map[string]any
		want float64
	}{
		{map[string]any{"type": "yarn", "factor": 4}, 0.1*math.Log(4) + 1},
		{map[string]any{"type": "yarn", "factor": 4, "attention_factor": 1.5}, 1.5},
		{map[string]any{"type": "yarn", "factor": 4, "mscale": 1, "mscale_all_dim": 1}, 1},
		{map[string]any{"type": "yarn", "factor": 1}, 1},
	} {
		c, err := model.ParseConfig(edit("qwen3", map[string]any{"rope_scaling": test.dict}))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(c.Rope.Attention-test.want) > 1e-12 {
			t.Errorf("%v: attention is scaled by %g, want %g", test.dict, c.Rope.Attention, test.want)
		}
	}
}

func TestRopeLinear(t *testing.T) {
	got, _ := model.Rope{Type: "linear", Base: 10000, Factor: 4}.Frequencies(4)
	if got[0] != 0.25 || math.Abs(got[1]-0.0025) > 1e-15 {
		t.Errorf("got %v", got)
	}
}
