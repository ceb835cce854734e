package view_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"bonsai/cmd/bonsai/view"
)

// A saved plan fits the schema of plans, reads as it was written, and whatever byte of it
// changes, it is refused.
func TestSavedPlan(t *testing.T) {
	const digest = "77ab77ab77ab77ab77ab77ab77ab77ab77ab77ab77ab77ab77ab77ab77ab77ab"
	request := &view.Request{
		Bonsai: "0.1.0", Made: time.Unix(1_800_000_000, 0).UTC(), Folder: "/home/me", Cache: "/cache",
		Words: []string{"target=gguf"}, Places: []view.StepPlace{{Step: "gguf.model", Path: "out/model.gguf"}}, Files: []view.FileDigest{{Name: "recipe.hcl", Digest: digest}},
		Inputs: map[string]string{},
	}
	for _, e := range aPlan().Entries {
		request.Inputs[e.Step+map[bool]string{true: " "}[e.Name != ""]+e.Name] = digest
	}
	var b bytes.Buffer
	if err := view.WriteSavedPlan(&b, aPlan(), request); err != nil {
		t.Fatal(err)
	}
	text := b.Bytes()
	fits(t, form(t, "plan"), string(text))
	saved, err := view.ReadSavedPlan("plan.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if moved := saved.Moved(aPlan(), request); len(moved) > 0 {
		t.Errorf("a plan differs from itself: %q", moved)
	}
	for i := range text {
		for _, changed := range [][]byte{text[:i], flipped(text, i)} {
			_, err := view.ReadSavedPlan("plan.json", changed)
			if !errors.As(err, new(*view.PlanFileError)) {
				t.Fatalf("with byte %d of %d changed or cut ReadSavedPlan returns %v", i, len(text), err)
			}
		}
	}
}

func flipped(text []byte, i int) []byte {
	changed := bytes.Clone(text)
	changed[i] ^= 1
	return changed
}
