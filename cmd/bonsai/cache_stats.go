package main

import (
	"context"
	"fmt"
	"slices"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine/record"
)

// runStats says what the cache saved, from the records of runs.
func runStats(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	limit := w.count("limit", 30, 1)
	if w.err != nil {
		return 0, w.err
	}
	store, s, err := p.survey(ctx, dir)
	if err != nil {
		return 0, err
	}
	ids, err := record.List(store)
	if err != nil {
		return 0, err
	}
	sizes := map[cache.Key]int64{}
	for i := range s.Results {
		for _, o := range s.Results[i].Outputs {
			sizes[s.Results[i].Key] += o.Size
		}
	}
	var runs []view.StatRun
	for _, id := range ids {
		run, err := record.Load(store, id)
		if err != nil {
			fmt.Fprintf(p.stderr, "warning: %v\n", err)
			continue
		}
		stat := view.StatRun{Head: run.Head}
		for _, h := range run.Hits {
			stat.Kept += sizes[h.Key]
		}
		runs = append(runs, stat)
	}
	slices.Reverse(runs) // the first one first
	return exitBuilt, view.WriteStats(p.stdout, runs, s, limit, opt)
}
