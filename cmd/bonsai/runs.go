package main

import (
	"context"
	"fmt"
	"os"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine/record"
)

// runsKeys are the keys of runs alone.
var runsKeys = []string{"all", "cache", "limit", "trace"}

// runRuns lists the runs that are recorded, or shows one.
func runRuns(_ context.Context, p *program, w *words) (int, error) {
	dir, limit, trace := w.text("cache", ""), w.count("limit", 20, 1), w.text("trace", "")
	opt := view.RunsOptions{
		Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w),
		JSON:  w.flag("json"), All: w.flag("all"), Now: p.now(),
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case w.word(0) == "" && trace != "":
		return 0, misused("trace= of which run? As in bonsai runs last trace=%s", trace)
	}
	store, err := p.openStore(dir, cache.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	if w.word(0) == "" {
		return exitBuilt, listRuns(p, store, limit, opt)
	}
	run, err := findRun(store, w.word(0))
	if err != nil {
		return 0, err
	}
	f, err := createTrace(trace)
	if err != nil {
		return 0, err
	}
	if err := finishTrace(f, run); err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteRun(p.stdout, run, opt)
}

// listRuns shows the latest runs. Records that cannot be read are told of and left out.
func listRuns(p *program, store *cache.Dir, limit int, opt view.RunsOptions) error {
	ids, err := record.List(store)
	if err != nil {
		return err
	}
	var heads []record.Head
	for _, id := range ids[:min(limit, len(ids))] {
		head, err := record.LoadHead(store, id)
		if err != nil {
			fmt.Fprintf(p.stderr, "warning: %v\n", err)
			continue
		}
		heads = append(heads, head)
	}
	return view.WriteRuns(p.stdout, heads, len(ids), opt)
}

// findRun returns the run that a word means.
func findRun(store *cache.Dir, word string) (*record.Run, error) {
	id, err := record.Find(store, word)
	if err != nil {
		return nil, err
	}
	return record.Load(store, id)
}

// createTrace makes the file of a trace, so that it is known at once that it can be
// written. It returns nil if path is empty.
func createTrace(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("write the trace: %w", err)
	}
	return f, nil
}

// finishTrace writes the trace of a run to a file that createTrace made, and closes it.
func finishTrace(f *os.File, run *record.Run) error {
	if f == nil {
		return nil
	}
	err := view.WriteTrace(f, run)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}
