package evaluate

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExpIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 100000 {
		x := -720 * math.Pow(rng.Float64(), 4)
		got, want := exp(x), math.Exp(x)
		if x >= -708 && math.Abs(got-want) > 1e-15*want || x < -708 && got != 0 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{0, math.Inf(-1), math.Inf(1), math.NaN()} {
		if got, want := exp(x), math.Exp(x); got != want && want == want || want != want && got == got {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestPiecesAreTheWhole adds logits in pieces, among them ever higher ones, and compares with
// the definitions.
func TestPiecesAreTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	const n = 1000
	var z [2][]float32
	for s := range z {
		z[s] = make([]float32, n)
		for i := range z[s] {
			z[s][i] = float32(20*rng.NormFloat64()) + float32(i)/20
		}
	}
	for _, piece := range []int{n, 1, 7, 333, 999} {
		p := newPosition(&windows{ids: []int32{5, 123}, window: 2}, 0)
		for row := 0; row < n; row += piece {
			end := min(row+piece, n)
			p.add([][]float32{z[0][row:end], z[1][row:end]}, make([]float64, end-row), row)
		}
		got, err := total([]position{p}, 2)
		if err != nil {
			t.Fatal(err)
		}
		nll, kl := plainly(z, 123)
		for s := range nll {
			if math.Abs(got.nll[s]-nll[s]) > 1e-12*nll[s] {
				t.Errorf("pieces of %d: nll of side %d is %v, want %v", piece, s, got.nll[s], nll[s])
			}
		}
		if math.Abs(got.kl-kl) > 1e-12*kl {
			t.Errorf("pieces of %d: KL %v, want %v", piece, got.kl, kl)
		}
	}
}

// plainly computes the figures of one position by their definitions.
func plainly(z [2][]float32, next int) (nll [2]float64, kl float64) {
	var logp [2][]float64
	for s := range z {
		most, sum := math.Inf(-1), 0.0
		for _, v := range z[s] {
			most = max(most, float64(v))
		}
		for _, v := range z[s] {
			sum += math.Exp(float64(v) - most)
		}
		for _, v := range z[s] {
			logp[s] = append(logp[s], float64(v)-most-math.Log(sum))
		}
		nll[s] = -logp[s][next]
	}
	for i, l := range logp[0] {
		kl += math.Exp(l) * (l - logp[1][i])
	}
	return nll, kl
}

func TestLogitsThatAreNotFiniteAreNamed(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range 3 {
			z := []float32{1, 2, 3}
			z[at] = float32(bad)
			p := newPosition(&windows{ids: []int32{0, int32(at)}, window: 2}, 0)
			p.add([][]float32{z}, make([]float64, 3), 0)
			if _, err := total([]position{p}, 1); err == nil {
				t.Errorf("logit %d is %v: no error", at, bad)
			}
		}
	}
}

// TestNoPerplexity holds that a model so wrong that its perplexity overflows is an error.
func TestNoPerplexity(t *testing.T) {
	p := newPosition(&windows{ids: []int32{0, 1}, window: 2}, 0)
	p.add([][]float32{{1000, 0}}, make([]float64, 2), 0)
	if _, err := total([]position{p}, 1); err == nil {
		t.Error("a negative log likelihood of 1000 nats has a perplexity")
	}
}
