package evaluate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/evaluate"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/opstest"
	"bonsai/ops/safetensors"
)

func TestManifests(t *testing.T) {
	c := *modeltest.Tiny("mistral")
	c.Windows = []int{16, 0}
	one, two := evaluate.Checkpoint(c, 3), evaluate.Checkpoint(c, 1)
	opstest.CheckManifest(t, evaluate.Tokens{Limit: 1, Window: 2, BOS: evaluate.NoBOS, Join: "\n"})
	opstest.CheckManifest(t, evaluate.Hidden{Model: one})
	opstest.CheckManifest(t, evaluate.Compare{Original: two, Model: one})
}

// A pair is a random model and windows of random tokens.
type pair struct {
	engine  *mlx.Engine
	config  *model.Config
	weights modeltest.Weights
	shard   []byte
	windows []byte
}

func newPair(t *testing.T, seed uint64) *pair {
	t.Helper()
	p := &pair{engine: mlx.New(""), config: modeltest.Tiny("llama")}
	p.weights = modeltest.Random(p.config, seed)
	dir := t.TempDir()
	modeltest.Write(t, dir, p.config, p.weights)
	var err error
	if p.shard, err = os.ReadFile(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	p.windows = windowsOf(t, [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}, {90, 80, 70, 60, 50, 40, 30, 20}, {5, 5, 5, 5, 5, 5, 5, 95}})
	return p
}

// windowsOf writes windows of small ids as Tokens does.
func windowsOf(t *testing.T, windows [][]byte) []byte {
	t.Helper()
	var raw []byte
	for _, w := range windows {
		for _, id := range w {
			raw = append(raw, id, 0, 0, 0)
		}
	}
	var out bytes.Buffer
	spec := safetensors.Spec{Name: "tokens", DType: safetensors.I32, Shape: []int64{int64(len(windows)), int64(len(windows[0]))}}
	w, err := safetensors.NewWriter(&out, []safetensors.Spec{spec}, map[string]string{"bos": "none", "ids": "abc"})
	if err == nil {
		err = w.Write("tokens", raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (p *pair) model() evaluate.Model { return evaluate.Checkpoint(*p.config, 1) }

func (p *pair) hidden(t *testing.T) []byte {
	t.Helper()
	return must(t, evaluate.Hidden{Model: p.model()}.On(p.engine, 0), p.windows, p.shard)
}

func must(t *testing.T, o op, in ...[]byte) []byte {
	t.Helper()
	out, _, err := run(t.Context(), o, in...)
	if err != nil {
		t.Fatalf("%T: %v", o, err)
	}
	return out
}

func reportOf(t *testing.T, b []byte) (r evaluate.Report) {
	t.Helper()
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAModelAgainstItself(t *testing.T) {
	p := newPair(t, 1)
	h := p.hidden(t)
	r := reportOf(t, must(t, evaluate.Compare{Original: p.model(), Model: p.model()}, p.windows, h, h, p.shard, p.shard))
	if r.KL != 0 || r.Top1 != 1 || r.Model != r.Original {
		t.Errorf("KL %v, top-1 %v, figures %+v and %+v, want 0, 1 and the same", r.KL, r.Top1, r.Model, r.Original)
	}
	if r.Protocol.Positions != 3*7 || r.Protocol.Windows != 3 || r.Protocol.Window != 8 || r.Protocol.IDs != "abc" {
		t.Errorf("protocol %+v", r.Protocol)
	}
}

// TestFiguresByDefinition compares two models, and computes their figures again from the
// logits of their whole forward passes.
func TestFiguresByDefinition(t *testing.T) {
	a, b := newPair(t, 1), newPair(t, 2)
	r := reportOf(t, must(t, evaluate.Compare{Original: a.model(), Model: b.model()},
		a.windows, a.hidden(t), b.hidden(t), a.shard, b.shard))
	p, q := a.logProbabilities(t), b.logProbabilities(t)
	ids := a.ids(t)
	var nll, kl, top, n float64
	for i := range p {
		if i%8 == 7 {
			continue
		}
		n++
		nll -= q[i][ids[i+1]]
		for v, l := range p[i] {
			kl += math.Exp(l) * (l - q[i][v])
		}
		if slices.Index(p[i], slices.Max(p[i])) == slices.Index(q[i], slices.Max(q[i])) {
			top++
		}
	}
	for _, f := range []struct {
		what      string
		got, want float64
	}{
		{"nll", r.Model.NLL, nll / n},
		{"perplexity", r.Model.Perplexity, math.Exp(nll / n)},
		{"KL", r.KL, kl / n},
		{"top-1", r.Top1, top / n},
	} {
		if math.Abs(f.got-f.want) > 1e-5*f.want {
			t.Errorf("%s %v, want %v", f.what, f.got, f.want)
		}
	}
}

func (p *pair) ids(t *testing.T) []int32 {
	t.Helper()
	f, err := safetensors.Open(bytes.NewReader(p.windows), int64(len(p.windows)), "windows")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := f.Int32s("tokens")
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// logProbabilities returns those of all tokens at each position.
func (p *pair) logProbabilities(t *testing.T) [][]float64 {
	t.Helper()
	z, err := model.NewRunner(p.engine, p.config).Forward(p.weights, p.ids(t), 8)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]float64
	for row := range slices.Chunk(z, p.config.Vocab) {
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		var l []float64
		for _, v := range row {
			l = append(l, float64(v)-math.Log(sum))
		}
		all = append(all, l)
	}
	return all
}

func TestThreadsDoNotChangeAReport(t *testing.T) {
	a, b := newPair(t, 1), newPair(t, 2)
	in := [][]byte{a.windows, a.hidden(t), b.hidden(t), a.shard, b.shard}
	c := evaluate.Compare{Original: a.model(), Model: b.model()}
	if one, two := must(t, c.On(1), in...), must(t, c.On(3), in...); !bytes.Equal(one, two) {
		t.Errorf("1 thread:\n%s\n3 threads:\n%s", one, two)
	}
}

// TestAnyFormatCanBeCompared gives the model by a function, as a format of one file would.
func TestAnyFormatCanBeCompared(t *testing.T) {
	p := newPair(t, 1)
	file := evaluate.File("mine", func([]*io.SectionReader) (*model.Config, model.Source, error) {
		return p.config, p.weights, nil
	})
	h := must(t, evaluate.Hidden{Model: file}.On(p.engine, 0), p.windows, []byte("the file"))
	if !bytes.Equal(h, p.hidden(t)) {
		t.Error("hidden states differ between formats")
	}
	r := reportOf(t, must(t, evaluate.Compare{Original: p.model(), Model: file}, p.windows, h, h, p.shard, []byte("the file")))
	if r.KL != 0 {
		t.Errorf("KL %v between formats of one model", r.KL)
	}
	_, _, err := run(t.Context(), evaluate.Compare{Original: p.model(), Model: evaluate.Model{Format: "mine", Files: 1}}, p.windows, h, h, p.shard, nil)
	if err == nil || !strings.Contains(err.Error(), `"mine"`) {
		t.Errorf("a model that nothing opens: error %v", err)
	}
}

func TestRefusals(t *testing.T) {
	p := newPair(t, 1)
	h := p.hidden(t)
	small := *p.config
	small.Vocab = 50
	wide := *p.config
	wide.Hidden = 256
	shorter := windowsOf(t, [][]byte{{1, 2, 3, 4}})
	other := *p.config
	other.Vocab = 128
	compare := evaluate.Compare{Original: p.model(), Model: p.model()}
	for name, test := range map[string]struct {
		op   op
		in   [][]byte
		want string
	}{
		"too few inputs":            {compare, [][]byte{p.windows, h, h, p.shard}, "4 inputs"},
		"too few for hidden":        {evaluate.Hidden{Model: p.model()}, [][]byte{p.windows}, "1 inputs"},
		"no engine":                 {evaluate.Hidden{Model: p.model()}, [][]byte{p.windows, p.shard}, "no tensor engine"},
		"tokens beyond the model's": {evaluate.Hidden{Model: evaluate.Checkpoint(small, 1)}.On(p.engine, 0), [][]byte{p.windows, p.shard}, "vocabulary of 50"},
		"states of other windows":   {compare, [][]byte{shorter, h, h, p.shard, p.shard}, "want [4 128]"},
		"states of another width":   {evaluate.Compare{Original: p.model(), Model: evaluate.Checkpoint(wide, 1)}, [][]byte{p.windows, h, h, p.shard, p.shard}, "want [24 256]"},
		"another vocabulary":        {evaluate.Compare{Original: p.model(), Model: evaluate.Checkpoint(other, 1)}, [][]byte{p.windows, h, h, p.shard, p.shard}, "vocabularies of 96 and 128"},
		"a shard as tokens":         {compare, [][]byte{p.shard, h, h, p.shard, p.shard}, "tokens"},
		"states as a model":         {compare, [][]byte{p.windows, h, h, h, p.shard}, "lm_head"},
		"no safetensors":            {evaluate.Hidden{Model: p.model()}.On(p.engine, 0), [][]byte{p.windows, []byte("x")}, "safetensors model"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t.Context(), test.op, test.in...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOpsStopWhenCancelled(t *testing.T) {
	p := newPair(t, 1)
	h := p.hidden(t)
	compare := evaluate.Compare{Original: p.model(), Model: p.model()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := run(ctx, evaluate.Hidden{Model: p.model()}.On(p.engine, 0), p.windows, p.shard); !errors.Is(err, context.Canceled) {
		t.Errorf("Hidden: error %v", err)
	}
	if _, _, err := run(ctx, compare, p.windows, h, h, p.shard, p.shard); !errors.Is(err, context.Canceled) {
		t.Errorf("Compare: error %v", err)
	}
}

// TestPeaksAndCostsFollowShapes checks the closed forms where they are known by hand.
func TestPeaksAndCostsFollowShapes(t *testing.T) {
	c := modeltest.Tiny("llama")
	h, compare := evaluate.Hidden{}, evaluate.Compare{}
	layer := 128*(128+2*64+128) + 3*128*256 // weights of a layer
	if got, least := h.Cost(c, 10, 1), 10.*2*2*float64(layer); got < least || got > 1.1*least {
		t.Errorf("Cost of hidden states %v, want a little over %v", got, least)
	}
	if got, want := compare.Cost(c, c, 10), 10*2*2*128*96.; got != want {
		t.Errorf("Cost of a comparison %v, want %v", got, want)
	}
	if few, many := h.Peak(c, 100, 10, 1), h.Peak(c, 1<<20, 10, 1); many-few < 8*128*60000 || many > 1<<28 {
		t.Errorf("Peak of hidden states %d for few tokens, %d for many", few, many)
	}
	if got := compare.Peak(c, c, 1000); got < 2*4*96*128 || got > 1<<22 {
		t.Errorf("Peak of a comparison %d", got)
	}
}
