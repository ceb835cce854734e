package model_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
)

const golden = "../../testdata/golden"

// TestGolden compares the logits of six small checkpoints with those of an independent program in float64.
func TestGolden(t *testing.T) {
	for _, name := range []string{"llama", "llama3-rope", "mistral-window", "qwen2", "qwen3", "qwen3-tied"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(golden, name)
			c, src := modeltest.Open(t, dir)
			var ids []int32
			text, err := os.ReadFile(filepath.Join(dir, "tokens.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &ids); err != nil {
				t.Fatal(err)
			}
			want, shape := modeltest.ReadNPY(t, filepath.Join(dir, "logits.npy"))
			if shape[0] != len(ids) || shape[1] != c.Vocab {
				t.Fatalf("logits.npy has shape %v", shape)
			}
			r := model.NewRunner(mlx.New("go"), c)
			got, err := r.Forward(src, ids, len(ids))
			if err != nil {
				t.Fatal(err)
			}
			if d := maxDiff(got, want); d > 2e-3 {
				t.Errorf("logits differ by up to %g, want 2e-3 at most", d)
			} else {
				t.Logf("logits differ by up to %.2g", d)
			}
		})
	}
}

func maxDiff(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}
