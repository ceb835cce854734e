package view_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"bonsai/cmd/bonsai/view"
	"bonsai/engine/record"
	"bonsai/ops/compare"
)

func writeDiff(t *testing.T, d view.Diff, opt view.DiffOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := view.WriteDiff(&b, d, opt); err != nil {
		t.Fatal(err)
	}
	checkWidth(t, b.String(), opt.Width)
	return b.String()
}

func TestWriteDiffOfFiles(t *testing.T) {
	layout := &compare.Layout{Type: "PTQ1_0", Shape: []int64{64, 128}}
	f32 := &compare.Layout{Type: "F32", Shape: []int64{3}}
	d := view.Diff{Kind: "artifact", Files: &compare.Report{
		Format: compare.GGUF, First: -1,
		Metadata: []compare.Value{
			{Name: "general.name", Status: compare.Differs, Old: `"x"`, New: `"y\x1b"`},
			{Name: "n", Status: compare.Differs, Old: "4", New: "5"},
		},
		Tensors: []compare.Tensor{
			{Name: "blk.0.attn_q.weight", Status: compare.Differs, Old: layout, New: layout, Ternary: &compare.Ternary{
				Elements: 8192, Codes: 0.03125, Scales: 0.0215, Zeros: [2]float64{0.312, 0.3141},
			}},
			{Name: "norm", Status: compare.Differs, Old: f32, New: f32, Float: &compare.Float{Max: 0.5, Relative: math.MaxFloat64}},
			{Name: "same", Status: compare.Equal, Old: f32, New: f32},
			{Name: "gone", Status: compare.Removed, Old: f32},
			{Name: "new", Status: compare.Added, New: layout},
			{Name: "other", Status: compare.Differs, Old: f32, New: layout, Note: "element 2 is NaN"},
		},
	}}
	want := `~ general.name: "x" → "y\x1b"
~ n: 4 → 5 (+25 %)
~ blk.0.attn_q.weight  codes 3.12 %, scales 0.0215, zeros 31.2 → 31.4 %  PTQ1_0…
~ norm                 max 0.5, relative new  F32 [3]
- gone                 F32 [3]
+ new                  PTQ1_0 [64×128]
~ other                element 2 is NaN  F32 [3] → PTQ1_0 [64×128]
1 tensor equal
3.12 % of the 8192 codes in ternary tensors that differ are others
`
	if got := writeDiff(t, d, view.DiffOptions{Style: view.Style{Width: 80}}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWriteDiffOfActions(t *testing.T) {
	r := someRun()
	other := r.Head
	other.ID, other.Outcome, other.Ended, other.Words = "20261201-020305.000-zzzzzz", record.Built, r.Ended.Add(5e9), []string{"target=x"}
	damping := []record.Reason{{Kind: "setting", Name: "damping", Old: "0.01", New: "0.02", Text: "damping: 0.01 → 0.02"}}
	input := []record.Reason{{Kind: "input", Name: "0", Old: "key aaaaaaaaaaaaaaaaaa.0", New: "key bbbbbbbbbbbbbbbbbb.0", Text: "input 0 changed"}}
	d := view.Diff{Kind: "run", Runs: []record.Head{r.Head, other}, Equal: 1, Actions: []view.ActionDiff{
		{Step: "a", Status: compare.Added, New: 3}, {Step: "b", Status: compare.Removed},
	}}
	for layer := range 3 {
		name := fmt.Sprintf("layer %d qkv", layer)
		d.Actions = append(d.Actions,
			view.ActionDiff{Step: "codes.body", Name: name + " codes", Status: compare.Differs, Reasons: damping, Old: 2, New: 1},
			view.ActionDiff{Step: "codes.body", Name: name + " inputs", Status: compare.Differs, Reasons: input})
	}
	want := `run k3f9ab → zzzzzz
  words    build target=gguf → build target=x
  outcome  failed → built
  took     10.0 s → 15.0 s
+ a
- b
~ codes.body layers 0-2: 3 actions, 6.0 s → 3.0 s
    damping: 0.01 → 0.02
3 actions more with other inputs alone
1 action is the same
`
	if got := writeDiff(t, d, view.DiffOptions{Style: view.Style{Width: 80}}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.Runs, d.Actions = nil, d.Actions[3:4]
	want = "~ codes.body layer 0 qkv inputs\n    input 0 changed: aaaaaaaaaaaa → bbbbbbbbbbbb\n1 action is the same\n"
	if got := writeDiff(t, d, view.DiffOptions{Style: view.Style{Width: 80}}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
