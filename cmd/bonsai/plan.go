package main

import (
	"context"
	"errors"
	"fmt"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/engine/record"
)

// planKeys are the keys of plan alone.
var planKeys = []string{"all", "detailed-exitcode", "out"}

// planArgs are the arguments of plan.
type planArgs struct {
	quick     *quick
	recipe    recipeArgs
	cache     cacheArgs
	selection selection
	detailed  bool   // the exit status says whether there is work to do
	out       string // file that the plan is saved to, or ""
	view      view.PlanOptions
}

func (p *program) readPlanArgs(w *words) (planArgs, error) {
	a := planArgs{
		recipe: readRecipeArgs(w), cache: readCacheArgs(w),
		selection: readSelection(w), detailed: w.flag("detailed-exitcode"), out: w.text("out", ""),
	}
	style := p.style(w.choice("color", "auto", "never", "always"), p.stdout.w)
	a.view = view.PlanOptions{Style: style, JSON: w.flag("json"), All: w.flag("all")}
	return a, w.err
}

// runPlan says what build would do. It runs nothing and writes nothing to disk, but for
// the plan itself if that is asked for.
func runPlan(ctx context.Context, p *program, w *words) (int, error) {
	a, err := p.readPlanArgs(w)
	if err != nil {
		return 0, err
	}
	a.quick = p.quickly("plan", w, a.cache, cache.OpenReadOnly)
	if known, _ := a.quick.find(p); known != nil {
		return exitBuilt, view.WriteCurrent(p.stdout, len(known.Results), a.view)
	}
	plan, err := p.plan(ctx, a, w)
	status := exitBuilt
	if a.detailed && err == nil && plan.Total(engine.Run).Actions+plan.Total(engine.Maybe).Actions > 0 {
		status = exitMisused
	}
	if err != nil {
		return 0, err
	}
	return status, errors.Join(view.WritePlan(p.stdout, plan, a.view), plan.Fits(plan.Budget.Memory))
}

// plan makes the plan, and finds what it may use.
func (p *program) plan(ctx context.Context, a planArgs, w *words) (*view.Planning, error) {
	r, warnings, err := p.load(a.recipe, a.cache.backend)
	if err != nil {
		return nil, err
	}
	warnings.Write(p.stderr, p.style("auto", p.stderr))
	targets, err := r.selected(a.selection)
	if err != nil {
		return nil, err
	}
	store, opt, err := p.openCache(a.cache, r, cache.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	opt.Known = a.quick.known(store)
	stop := p.during("planning")
	defer p.ease()(0)
	plan, err := engine.MakePlan(ctx, r.Graph, artifacts(targets), opt)
	stop()
	if err != nil {
		return nil, err
	}
	free, _ := p.room(store.Path())
	made := &view.Planning{
		Plan: plan, Budget: view.Budget{Memory: opt.Memory, Disk: free},
		Compared: p.lastBuild(store, r.id),
	}
	if a.out == "" || plan.Fits(opt.Memory) != nil {
		return made, nil
	}
	request, err := p.requestOf(w, r, targets, store.Path())
	if err != nil {
		return nil, err
	}
	made.Saved = a.out
	return made, savePlan(a.out, made, request)
}

// lastBuild says when the last build of a recipe began, which reasons compare with; "" if
// no record of one is kept.
func (p *program) lastBuild(store record.Shelf, recipe string) string {
	ids, err := record.List(store)
	if err != nil {
		return ""
	}
	for _, id := range ids {
		head, err := record.LoadHead(store, id)
		if err == nil && head.Recipe == recipe && head.Command == "build" {
			return fmt.Sprintf("%s of %s", record.Short(id), head.Began.In(p.now().Location()).Format("2006-01-02 15:04"))
		}
	}
	return ""
}
