package main

import (
	"context"
	"errors"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
)

// planKeys are the keys of plan alone.
var planKeys = []string{"all", "detailed-exitcode"}

// planArgs are the arguments of plan.
type planArgs struct {
	recipe    recipeArgs
	cache     cacheArgs
	selection selection
	detailed  bool // the exit status says whether there is work to do
	view      view.PlanOptions
}

func (p *program) readPlanArgs(w *words) (planArgs, error) {
	a := planArgs{
		recipe: readRecipeArgs(w), cache: readCacheArgs(w),
		selection: readSelection(w), detailed: w.flag("detailed-exitcode"),
	}
	style := p.style(w.choice("color", "auto", "never", "always"), p.stdout.w)
	a.view = view.PlanOptions{Style: style, JSON: w.flag("json"), All: w.flag("all")}
	return a, w.err
}

// runPlan says what build would do. It runs nothing and writes nothing to disk.
func runPlan(ctx context.Context, p *program, w *words) (int, error) {
	a, err := p.readPlanArgs(w)
	if err != nil {
		return 0, err
	}
	plan, budget, err := p.plan(ctx, a)
	status := exitBuilt
	if a.detailed && err == nil && plan.Total(engine.Run).Actions+plan.Total(engine.Maybe).Actions > 0 {
		status = exitMisused
	}
	if misuse, ok := errors.AsType[*usageError](err); ok && a.detailed {
		err = errors.New(misuse.text) // 2 says that there is work to do
	}
	if err != nil {
		return 0, err
	}
	return status, errors.Join(view.WritePlan(p.stdout, plan, a.view, budget), plan.Fits(budget.Memory))
}

// plan makes the plan, and finds what it may use.
func (p *program) plan(ctx context.Context, a planArgs) (*engine.Plan, view.Budget, error) {
	r, warnings, err := p.load(a.recipe, a.cache.backend)
	if err != nil {
		return nil, view.Budget{}, err
	}
	warnings.Write(p.stderr, p.style("auto", p.stderr))
	targets, err := r.selected(a.selection)
	if err != nil {
		return nil, view.Budget{}, err
	}
	store, opt, err := p.openCache(a.cache, r, cache.OpenReadOnly)
	if err != nil {
		return nil, view.Budget{}, err
	}
	plan, err := engine.MakePlan(ctx, r.Graph, artifacts(targets), opt)
	return plan, view.Budget{Memory: opt.Memory, Disk: freeDisk(store.Path())}, err
}
