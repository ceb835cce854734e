package view_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/ops/evaluate"
	"bonsai/ops/gguf"
	"bonsai/ops/model"
)

// inForms compares a view in a pipe, in colour and as JSON.
func inForms(t *testing.T, name string, draw func(b *bytes.Buffer, s view.Style, json bool) error) {
	for form, style := range map[string]view.Style{
		"pipe.txt": {Width: view.Unlimited}, "color.txt": {Terminal: true, Color: true, Width: 80}, "form.json": {},
	} {
		t.Run(form, func(t *testing.T) {
			var b bytes.Buffer
			if err := draw(&b, style, form == "form.json"); err != nil {
				t.Fatal(err)
			}
			golden(t, name+"_"+form, b.String())
		})
	}
}

func TestInspectedFiles(t *testing.T) {
	tensors := []view.Tensor{
		{Name: "model.embed_tokens.weight", Type: "BF16", Shape: []int64{151936, 4096}, Bytes: 151936 * 4096 * 2},
		{Name: "model.layers.0.self_attn.q_proj.weight", Type: "PTQ1_0", Shape: []int64{4096, 4096}, Bytes: 4096 * 4096 / 4, Ternary: true},
	}
	inForms(t, "safetensors", func(b *bytes.Buffer, s view.Style, json bool) error {
		return view.WriteTensors(b, view.Tensors{
			File: "模型.safetensors", Size: 1 << 30, Metadata: map[string]string{"format": "pt"}, Tensors: tensors,
		}, view.InspectOptions{Style: s, JSON: json})
	})
	inForms(t, "checkpoint", func(b *bytes.Buffer, s view.Style, json bool) error {
		return view.WriteCheckpoint(b, &view.Checkpoint{
			Dir: "my-finetune", Config: model.Config{Type: "qwen3", Layers: 36, Hidden: 4096}, Files: []string{"model.safetensors"},
			Tokenizer: true, Tensors: tensors, Refused: "no block divides 100",
		}, view.InspectOptions{Style: s, JSON: json})
	})
	inForms(t, "gguf", func(b *bytes.Buffer, s view.Style, json bool) error {
		return view.WriteGGUF(b, &view.GGUF{
			File: "m.gguf", Size: 1 << 30, Container: 3, Architecture: "qwen3", Name: "m", BitsPerWeight: 1.75,
			Rotation: &view.Rotation{Version: 1, Block: 4096, Widths: []int{12288, 4096}, Tensors: []string{"a"}}, Tensors: tensors,
			Metadata: []gguf.KV{{Key: "general.name", Value: "m"}, {Key: "x.list", Value: []uint32{1, 2, 3, 4, 5, 6, 7, 8}}},
		}, view.InspectOptions{Style: s, JSON: json})
	})
}

func TestEvaluation(t *testing.T) {
	r := &evaluate.Report{
		Version: 1, Protocol: evaluate.Protocol{Text: "77ab77ab77ab77ab", BOS: "none", Window: 128, Windows: 64, Positions: 8128},
		Original: evaluate.Figures{NLL: 2, Perplexity: 7.389}, Model: evaluate.Figures{NLL: 2.1, Perplexity: 8.166}, KL: 0.0912, Top1: 0.871,
	}
	inForms(t, "evaluation", func(b *bytes.Buffer, s view.Style, json bool) error {
		return view.WriteEvaluation(b, "out/m.gguf", "my-finetune", r, view.BuildOptions{Style: s, JSON: json})
	})
}

func TestVersion(t *testing.T) {
	v := view.Version{
		Bonsai: "0.1.0", Revision: "0123456789abcdef0123", Modified: true, Go: "go1.26", System: "linux/amd64",
		Backend: "go", Kernels: "gemm=avx512", SIMD: true,
	}
	inForms(t, "version", func(b *bytes.Buffer, _ view.Style, json bool) error { return view.WriteVersion(b, v, json) })
}

// mistakes are two mistakes and a warning in one file.
func mistakes(t *testing.T) *view.MistakesError {
	t.Helper()
	text := "codes \"body\" {\n\tmethod = \"gptk\" # 数学 🧮\n  calibration = calibration.mxi\n}\n"
	file, diags := hclsyntax.ParseConfig([]byte(text), "recipe.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	at := func(line, from, to, byteAt int) *hcl.Range {
		return &hcl.Range{
			Filename: "recipe.hcl", Start: hcl.Pos{Line: line, Column: from, Byte: byteAt}, End: hcl.Pos{Line: line, Column: to, Byte: byteAt + to - from},
		}
	}
	return &view.MistakesError{Files: map[string]*hcl.File{"recipe.hcl": file}, Diagnostics: hcl.Diagnostics{
		{Severity: hcl.DiagError, Summary: "Unknown method", Detail: "There is no method \"gptk\". Did you mean \"gptq\"?", Subject: at(2, 11, 17, 25)},
		{Severity: hcl.DiagError, Summary: "Reference to an undeclared name", Detail: "There is no calibration \"mxi\"; there is one called \"mix\", and it is declared in another file of the recipe.", Subject: at(3, 17, 32, 61)},
		{Severity: hcl.DiagWarning, Summary: "Deprecated attribute", Detail: "It will go."},
	}}
}

func TestDiagnostics(t *testing.T) {
	m := mistakes(t)
	inLooks(t, "diagnostics", func(_ *testing.T, s view.Style) string {
		var b bytes.Buffer
		m.Write(&b, s)
		return b.String()
	})
	inForms(t, "validation", func(b *bytes.Buffer, _ view.Style, json bool) error { return view.WriteValidation(b, m, 3, json) })
	inForms(t, "validation_good", func(b *bytes.Buffer, _ view.Style, json bool) error {
		return view.WriteValidation(b, &view.MistakesError{}, 3, json)
	})
}

func TestErrorsInEveryLook(t *testing.T) {
	err := errors.Join(
		&engine.ActionError{Step: "codes.自分", Name: "layer 0 qkv codes", Err: fmt.Errorf("write the blob: %w", cache.ErrFull)},
		&engine.MemoryError{Step: "codes.body", Name: "layer 1", Peak: 9 << 30, Budget: 8 << 30},
		fmt.Errorf("interrupted: %w", context.Canceled),
	)
	inLooks(t, "errors", func(_ *testing.T, s view.Style) string {
		var b bytes.Buffer
		view.Error(&b, err, s)
		return b.String()
	})
}

// A build with explain=true says why each action runs, and the text that decides it.
func TestExplainedBuild(t *testing.T) {
	inLooks(t, "explain", func(t *testing.T, s view.Style) string {
		var b screen
		synctest.Test(t, func(*testing.T) {
			v := view.NewBuild(&b, view.BuildOptions{Style: s, Explain: true, Now: time.Now})
			v.Event(engine.Planned{Actions: 2})
			v.Event(engine.Finished{Step: "mix.a", Hit: true, Result: cache.Result{Manifest: "op mix v1\nset Text \"数学 🧮\"\n"}})
			v.Event(engine.Started{Step: "mix.b", Reasons: []engine.Reason{{Kind: engine.Setting, Name: "text", Old: `"a"`, New: `"b"`}}})
			v.Event(engine.Warned{Step: "mix.b", Err: errors.New("blob 77ab is gone; it is made again, which takes a while")})
			v.Event(engine.Finished{Step: "mix.b", Result: cache.Result{Duration: 1500 * time.Millisecond, Note: "loss 2.31", Manifest: "op mix v1\n"}})
			v.Close(nil)
		})
		return b.String()
	})
}
