package model_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/tokenizer"
)

const stories = "../../testdata/models/stories260K"

// readStories returns the sample's stories as tokens, each after a token that begins a text.
func readStories(t *testing.T) (ids []int32) {
	t.Helper()
	text := must[[]byte](t)(os.ReadFile(filepath.Join(stories, "tokenizer.json")))
	tok, err := tokenizer.Parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	sample := must[[]byte](t)(os.ReadFile("../../testdata/texts/v2-gpt4-sample.txt"))
	const bos = 1
	for story := range strings.SplitSeq(string(sample), "<|endoftext|>") {
		if story = strings.TrimSpace(story); story != "" {
			ids = append(append(ids, bos), tok.Encode(story)...)
		}
	}
	return ids
}

// score returns the mean negative log likelihood, in nats, of each token after the first, given those before it in
// its window: windows of inputs side by side, each also predicting the first token of the next.
func score(t *testing.T, r *model.Runner, src model.Source, ids []int32, window int) float64 {
	t.Helper()
	sum := 0.0
	for from := 0; from < len(ids)-1; from += window {
		in := ids[from:min(from+window, len(ids)-1)]
		logits := must[[]float32](t)(r.Forward(src, in, len(in)))
		for i, next := range ids[from+1:][:len(in)] {
			row := logits[i*r.Config().Vocab:][:r.Config().Vocab]
			total := 0.0
			for _, v := range row {
				total += math.Exp(float64(v))
			}
			sum += math.Log(total) - float64(row[next])
		}
	}
	return sum / float64(len(ids)-1)
}

// TestStories checks a trained model's score on real text against that of an independent program; its author published
// a validation loss of 1.2968. Then it checks that the model widened to widths that can be ternary computes the same.
func TestStories(t *testing.T) {
	c, src := modeltest.Open(t, stories)
	ids := readStories(t)
	r := model.NewRunner(mlx.New("go"), c)
	got := score(t, r, src, ids, c.Context)
	if math.Abs(got-1.3000) > 5e-5 {
		t.Errorf("%d tokens cost %.5f nats each, want 1.3000", len(ids), got)
	}

	wide, w := modeltest.Widen(t, c, src, 128, 256, 16)
	if err := wide.CheckTernary(); err != nil {
		t.Fatal(err)
	}
	part := ids[:200]
	want := must[[]float32](t)(r.Forward(src, part, len(part)))
	same := must[[]float32](t)(model.NewRunner(mlx.New("go"), wide).Forward(w, part, len(part)))
	if d := maxDiff(same, want); d > 2e-4 {
		t.Errorf("logits of the widened model differ by %g", d)
	}
}
