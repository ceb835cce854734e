package modeltest

import (
	"math"
	"strings"
	"testing"

	"bonsai/ops/model"
)

// Widen returns a model that computes the same logits with wider layers: hidden, intermediate and, in proportion, the
// heads are padded with zeros, and the norms corrected for the longer mean. heads must be a multiple of the heads per
// key head.
func Widen(t testing.TB, c *model.Config, src model.Source, hidden, intermediate, heads int) (*model.Config, Weights) {
	t.Helper()
	wide := *c
	wide.Hidden, wide.Intermediate, wide.Heads = hidden, intermediate, heads
	wide.KVHeads = heads * c.KVHeads / c.Heads
	ratio := float64(c.Hidden) / float64(hidden)
	wide.Epsilon *= ratio // the mean square is ratio times as large
	w := Weights{}
	old := c.Tensors()
	for i, to := range wide.Tensors() {
		v, err := src.Floats(to.Name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(to.Name, "layernorm.weight") || to.Name == model.NormName {
			for j := range v {
				v[j] = float32(float64(v[j]) * math.Sqrt(ratio))
			}
		}
		w[to.Name] = pad(v, old[i].Shape, to)
	}
	return &wide, w
}

// pad puts v, of shape from, in the corner of zeros.
func pad(v []float32, from []int64, to model.Tensor) []float32 {
	rowsTo, rowTo := int64(1), to.Shape[len(to.Shape)-1]
	rows, row := int64(1), from[len(from)-1]
	if len(from) == 2 {
		rows, rowsTo = from[0], to.Shape[0]
	}
	wide := make([]float32, rowsTo*rowTo)
	for r := range rows {
		copy(wide[r*rowTo:], v[r*row:(r+1)*row])
	}
	return wide
}
