package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/ops/evaluate"
	"bonsai/recipes"
)

// evalKeys are the keys of eval alone.
var evalKeys = []string{"against", "bos", "kind", "model", "text", "tokens", "window"}

// evalArgs are the arguments of eval.
type evalArgs struct {
	cache                      cacheArgs
	model, against, text, kind string
	bos                        string
	window, tokens             int
	cacheMax                   int64 // bytes of the cache afterwards; 0: no limit
	view                       view.BuildOptions
}

func (p *program) readEvalArgs(w *words) (evalArgs, error) {
	a := evalArgs{
		cache: readCacheArgs(w), model: w.text("model", ""), against: w.text("against", ""), text: w.text("text", ""),
		kind:   w.choice("kind", "text", "json", "jsonl", "parquet", "wikitext"),
		bos:    w.choice("bos", evaluate.NoBOS, evaluate.TextBOS, evaluate.WindowBOS),
		window: w.count("window", 128, 2), tokens: w.count("tokens", 8192, 2), view: p.buildView(w),
		cacheMax: p.cacheMax(w),
	}
	switch {
	case w.err != nil:
		return a, w.err
	case a.model == "":
		return a, misused("eval needs model=: a GGUF file or a checkpoint's folder")
	case a.against == "":
		return a, misused("eval needs against=: the folder of the original model. Its tokenizer reads the text, " +
			"and a score says little without the original's beside it")
	case a.text == "":
		return a, misused("eval needs text=: the file to measure on")
	}
	return a, nil
}

// recipe returns the recipe that an evaluation is.
func (a evalArgs) recipe() (recipes.File, error) {
	paths := []string{a.model, a.against, a.text}
	for i, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return recipes.File{}, err
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return recipes.File{}, err
		}
		paths[i] = quoteHCL(full)
	}
	text := fmt.Sprintf(`checkpoint "model" { from = %s }
checkpoint "original" { from = %s }
dataset "text" {
  kind = %q
  path = %s
}
evaluation "scores" {
  model   = checkpoint.model
  against = checkpoint.original
  window  = %d
  bos     = %q
  text "text" {
    from   = dataset.text
    tokens = %d
  }
}
`, paths[0], paths[1], a.kind, paths[2], a.window, a.bos, a.tokens)
	return recipes.File{Name: "bonsai eval", Bytes: []byte(text)}, nil
}

// quoteHCL returns s as a string of HCL, in which nothing is interpolated.
func quoteHCL(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}

// runEval measures a model beside the original, through the cache: what was measured
// before is not measured again.
func runEval(ctx context.Context, p *program, w *words) (int, error) {
	a, err := p.readEvalArgs(w)
	if err != nil {
		return 0, err
	}
	file, err := a.recipe()
	if err != nil {
		return 0, err
	}
	r, _, err := p.loadFiles([]recipes.File{file}, "", "eval", recipeArgs{}, a.cache.backend)
	if err != nil {
		return 0, err
	}
	store, opt, err := p.openCache(a.cache, r, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	want := r.Targets["evaluation.scores"].Artifacts()
	v := p.show(ctx, r.Graph, want, opt, a.view)
	defer hold(store, "bonsai eval", v.Remark)()
	rec := p.recorder("eval", w, nil, opt)
	outputs, err := p.build(ctx, r.Graph, want, opt, v, telling(v, rec))
	run := rec.Finish(r.Graph, err)
	p.keep(store, run, v)
	p.tidy(ctx, store, a.cacheMax, run, v)
	v.Close(err)
	if err != nil {
		return 0, err
	}
	report, err := readReport(store, outputs[0])
	if err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteEvaluation(p.stdout, a.model, a.against, report, a.view)
}

func readReport(store *cache.Dir, o cache.Output) (*evaluate.Report, error) {
	blob, err := store.Open(o.Digest)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	var r evaluate.Report
	if err := json.NewDecoder(io.NewSectionReader(blob, 0, blob.Size())).Decode(&r); err != nil {
		return nil, fmt.Errorf("report of the evaluation: %w", err)
	}
	return &r, nil
}
