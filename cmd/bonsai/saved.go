package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/recipes"
)

// besidePlan are the keys of build that may be given beside plan=: they change nothing of
// what is built.
var besidePlan = []string{"color", "explain", "json", "keep-going", "out", "plan", "trace"}

// ofPlanAlone are the keys of plan that a build does not take over.
var ofPlanAlone = []string{"all", "color", "detailed-exitcode", "json", "out"}

// requestOf returns what a plan of targets was asked with. cache is the folder of the cache.
func (p *program) requestOf(w *words, r *loaded, targets []*recipes.Target, cache string) (*view.Request, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return nil, err
	}
	req := &view.Request{Bonsai: version, Made: p.now(), Folder: folder, Cache: cache, Words: []string{}, Places: []view.StepPlace{}}
	for _, key := range slices.Sorted(maps.Keys(w.values)) {
		if !slices.Contains(ofPlanAlone, key) {
			req.Words = append(req.Words, key+"="+w.values[key])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		sum := sha256.Sum256(r.Files[name].Bytes)
		req.Files = append(req.Files, view.FileDigest{Name: name, Digest: hex.EncodeToString(sum[:])})
	}
	places, err := placesOf(targets, "")
	if err != nil {
		return nil, err
	}
	for _, pl := range places {
		req.Places = append(req.Places, view.StepPlace{Step: pl.step, Path: pl.path})
	}
	req.Inputs, err = inputsOf(r.Graph)
	return req, err
}

// inputsOf returns for each action the digest of the text of its op and the names of its
// inputs: what is known of it before anything runs.
func inputsOf(g *engine.Graph) (map[string]string, error) {
	inputs := map[string]string{}
	for a := range g.Actions() {
		text, err := a.Op.AppendText(nil)
		if err != nil {
			return nil, fmt.Errorf("%s: text of the op: %w", a, err)
		}
		for _, in := range a.In {
			text = fmt.Appendf(text, "\nin %s", in)
		}
		sum := sha256.Sum256(append(text, inputs[a.String()]...))
		inputs[a.String()] = hex.EncodeToString(sum[:])
	}
	return inputs, nil
}

// savePlan writes a plan to a file, whole or not at all.
func savePlan(path string, plan *view.Planning, req *view.Request) error {
	err := writeWhole(path, func(w io.Writer) error { return view.WriteSavedPlan(w, plan, req) })
	if err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	return nil
}

// openPlan reads the plan that plan= names, and returns it with the words that it was
// asked with. Without plan= it returns nil and w.
func openPlan(w *words) (*view.SavedPlan, *words, error) {
	path := w.text("plan", "")
	if path == "" {
		return nil, w, w.err
	}
	for _, key := range slices.Sorted(maps.Keys(w.values)) {
		if !slices.Contains(besidePlan, key) {
			return nil, nil, misused("%s= is in the plan already: beside plan= there may be %s", key, strings.Join(besidePlan, ", "))
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("plan: %w", err)
	}
	saved, err := view.ReadSavedPlan(path, text)
	if err != nil {
		return nil, nil, err
	}
	if folder, err := os.Getwd(); err != nil || folder != saved.Request.Folder {
		return nil, nil, &view.PlanFileError{Path: path, Why: "it was made in folder " + saved.Request.Folder + ", and paths in it start there"}
	}
	c, err := commandNamed("build")
	if err != nil {
		return nil, nil, err
	}
	both, err := parseWords(c, saved.Request.Words)
	if err != nil {
		return nil, nil, &view.PlanFileError{Path: path, Why: err.Error()}
	}
	both.values["cache"] = saved.Request.Cache
	maps.Copy(both.values, w.values)
	both.given = w.given
	return saved, both, nil
}

// holds returns a *view.StaleError if a saved plan is no longer what a build would do.
func (p *program) holds(
	ctx context.Context, saved *view.SavedPlan, w *words, r *loaded, targets []*recipes.Target, opt engine.Options,
) error {
	if saved == nil {
		return nil
	}
	plan, err := engine.MakePlan(ctx, r.Graph, artifacts(targets), opt)
	if err != nil {
		return err
	}
	now, err := p.requestOf(w, r, targets, saved.Request.Cache)
	if err != nil {
		return err
	}
	if moved := saved.Moved(&view.Planning{Plan: plan}, now); len(moved) > 0 {
		return &view.StaleError{Path: w.text("plan", ""), Moved: moved}
	}
	return nil
}
