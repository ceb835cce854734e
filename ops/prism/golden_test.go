package prism_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/prism"
)

// Files of an independent writer give the logits of an independent runtime, as closely as
// its 8-bit activations allow.
func TestGoldenLogits(t *testing.T) {
	dir := filepath.Join(testdata, "golden/gguf")
	var ids []int32
	if err := json.Unmarshal(readFile(t, dir, "tokens.json"), &ids); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"llama-ptq", "qwen3-pq2"} {
		t.Run(name, func(t *testing.T) {
			c, w, err := prism.Load(openGGUF(t, readFile(t, dir, name+".gguf")))
			if err != nil {
				t.Fatal(err)
			}
			r := model.NewRunner(mlx.New("go"), c)
			defer r.Free()
			got, err := r.Forward(w, ids, len(ids))
			if err != nil {
				t.Fatal(err)
			}
			want, shape := modeltest.ReadNPY(t, filepath.Join(dir, name+".logits.npy"))
			if !slices.Equal(shape, []int{len(ids), c.Vocab}) {
				t.Fatalf("logits of shape %v", shape)
			}
			kl, top1 := compare(want, got, c.Vocab)
			t.Logf("KL %.2g, top-1 %.3f", kl, top1)
			if !(kl < 5e-4) || top1 < 0.95 {
				t.Errorf("KL %g and top-1 %g, want below 5e-4 and at least 0.95", kl, top1)
			}
		})
	}
}

// compare returns mean KL(want ‖ got) in nats and the share of rows with the same top.
func compare(want, got []float32, vocab int) (kl, top1 float64) {
	rows := float64(len(want) / vocab)
	for i := 0; i < len(want); i += vocab {
		p, q := logProbabilities(want[i:i+vocab]), logProbabilities(got[i:i+vocab])
		for j := range p {
			kl += math.Exp(p[j]) * (p[j] - q[j]) / rows
		}
		if slices.Index(p, slices.Max(p)) == slices.Index(q, slices.Max(q)) {
			top1 += 1 / rows
		}
	}
	return kl, top1
}

func logProbabilities(logits []float32) []float64 {
	top := float64(slices.Max(logits))
	var sum float64
	p := make([]float64, len(logits))
	for i, v := range logits {
		p[i] = float64(v) - top
		sum += math.Exp(p[i])
	}
	for i := range p {
		p[i] -= math.Log(sum)
	}
	return p
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
