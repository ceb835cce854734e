package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/engine/record"
	"bonsai/recipes"
)

// buildKeys are the keys of build alone.
var buildKeys = []string{"explain", "keep-going", "out", "plan", "retries", "timeout", "trace"}

// viewKeys are the keys that say how results are shown.
var viewKeys = []string{"color", "json"}

// buildArgs are the arguments of build.
type buildArgs struct {
	recipe    recipeArgs
	cache     cacheArgs
	selection selection
	out       string // "" for what the targets say
	cacheMax  int64  // bytes of the cache after the build; 0: no limit
	trace     string // file of the trace, or ""
	keepGoing bool
	timeout   time.Duration // of an action that has none of its own; 0: none
	retries   int           // of an action that has none of its own
	view      view.BuildOptions
}

func (p *program) readBuildArgs(w *words) (buildArgs, error) {
	a := buildArgs{
		recipe: readRecipeArgs(w), cache: readCacheArgs(w),
		selection: readSelection(w), out: w.text("out", ""), keepGoing: w.flag("keep-going"),
		trace: w.text("trace", ""), timeout: w.duration("timeout"), retries: w.count("retries", 0, 0),
	}
	a.view = p.buildView(w)
	a.view.Explain = w.flag("explain")
	a.cacheMax = p.cacheMax(w)
	return a, w.err
}

// amend gives actions the limits that the arguments say, if a recipe gave them none.
func (a *buildArgs) amend(g *engine.Graph) {
	if a.timeout == 0 && a.retries == 0 {
		return
	}
	g.Amend(0, func(action *engine.Action) {
		action.Timeout = cmp.Or(action.Timeout, a.timeout)
		action.Retries = cmp.Or(action.Retries, a.retries)
	})
}

// buildView reads how a build is shown.
func (p *program) buildView(w *words) view.BuildOptions {
	style := p.style(w.choice("color", "auto", "never", "always"), p.stdout.w)
	screen, _ := p.stdout.w.(*os.File)
	return view.BuildOptions{Style: style, JSON: w.flag("json"), Now: p.now, Screen: screen, Held: memoryHeld}
}

// show returns the view of a build with opt. On a terminal it says how much is to go.
func (p *program) show(ctx context.Context, g *engine.Graph, want []*engine.Artifact, opt engine.Options, how view.BuildOptions) *view.Build {
	how.Budget = opt.Memory
	if store, ok := opt.Store.(*cache.Dir); ok {
		how.Log = store.Log
	}
	v := view.NewBuild(p.stdout, how)
	if !how.Live || how.JSON {
		return v
	}
	say := func(text string) { v.Remark(text) }
	p.notice.Store(&say)
	opt.Emit = v.Event
	if plan, err := engine.MakePlan(ctx, g, want, opt); err == nil {
		v.Expect(plan)
	} // else the build says what is wrong
	return v
}

// runBuild brings targets up to date, and places their files.
func runBuild(ctx context.Context, p *program, w *words) (int, error) {
	saved, w, err := openPlan(w)
	if err != nil {
		return 0, err
	}
	a, err := p.readBuildArgs(w)
	if err != nil {
		return 0, err
	}
	q := p.quickly("build", w, a.cache, cache.OpenDir)
	if done, err := q.build(p, w, a); done {
		return exitBuilt, err
	}
	q.watch(&a.recipe)
	r, warnings, err := p.load(a.recipe, a.cache.backend)
	if err != nil {
		return 0, err
	}
	warnings.Write(p.stderr, p.style("auto", p.stderr))
	a.amend(r.Graph)
	targets, err := r.selected(a.selection)
	if err != nil {
		return 0, err
	}
	places, err := placesOf(targets, a.out)
	if err != nil {
		return 0, err
	}
	store, opt, err := p.openCache(a.cache, r, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	want := artifacts(targets)
	if err := p.holds(ctx, saved, w, r, targets, opt); err != nil {
		return 0, err
	}
	trace, err := createTrace(a.trace)
	if err != nil {
		return 0, err
	}
	opt.KeepGoing, opt.Current, opt.Known = a.keepGoing, q.came, q.known(store)
	v := p.show(ctx, r.Graph, want, opt, a.view)
	defer hold(store, "bonsai build", v.Remark)()
	rec := p.recorder("build", w, a.selection.targets, opt)
	tell := telling(v, rec)
	outputs, err := p.buildAndPlace(ctx, store, r.Graph, want, places, opt, v, tell)
	if errors.Is(err, cache.ErrCorrupt) { // seen when it was placed, and set aside
		v.Remark(err.Error() + "; it is made again")
		outputs, err = p.buildAndPlace(ctx, store, r.Graph, want, places, opt, v, news(tell))
	}
	if err == nil {
		q.learn(r, warnings, targets, want, outputs)
	}
	run := rec.Finish(r.Graph, err)
	p.keep(store, run, v)
	p.tidy(ctx, store, a.cacheMax, run, v)
	v.Close(err)
	return exitBuilt, errors.Join(err, finishTrace(trace, run))
}

// hold says in the cache that this process works with it, until release is called, so
// that no gc drops what it uses. What cannot be written is not collected either.
func hold(store *cache.Dir, purpose string, warn func(string)) (release func()) {
	release, err := store.Hold(purpose)
	if err == nil {
		return release
	}
	if !errors.Is(err, cache.ErrReadOnly) {
		warn("a gc beside this may drop what it uses: " + err.Error())
	}
	return func() {}
}

// buildAndPlace builds what is wanted and places files of it.
func (p *program) buildAndPlace(ctx context.Context, store *cache.Dir, g *engine.Graph, want []*engine.Artifact,
	places []placement, opt engine.Options, v *view.Build, tell func(engine.Event),
) ([]cache.Output, error) {
	outputs, err := p.build(ctx, g, want, opt, v, tell)
	if err != nil {
		return nil, err
	}
	return outputs, place(store, places, want, outputs, v)
}

// telling returns what draws and records events.
func telling(v *view.Build, rec *record.Recorder) func(engine.Event) {
	return func(e engine.Event) {
		rec.Event(e)
		v.Event(e)
	}
}

// news passes on what a second look at the same build has to tell: what runs, and not
// what was found up to date the first time.
func news(tell func(engine.Event)) func(engine.Event) {
	return func(e engine.Event) {
		switch e := e.(type) {
		case engine.Planned, engine.Hashing:
			return
		case engine.Finished:
			if e.Hit {
				return
			}
		}
		tell(e)
	}
}

// build is engine.Build, which tells its events. In a slow build of bonsai the first
// action that runs has a line that says so.
func (p *program) build(
	ctx context.Context, g *engine.Graph, want []*engine.Artifact, opt engine.Options, v *view.Build, tell func(engine.Event),
) ([]cache.Output, error) {
	restore, actions := p.ease(), 0
	defer func() { restore(actions) }()
	told := simd || runtime.GOARCH != "amd64"
	opt.Emit = func(e engine.Event) {
		switch e := e.(type) {
		case engine.Planned:
			actions = e.Actions
		case engine.Started:
			restore(actions)
			if !told {
				told = true
				v.Remark("this bonsai is built without its fast kernels and takes several times longer: " +
					"build it with GOEXPERIMENT=simd")
			}
		}
		tell(e)
	}
	return engine.Build(ctx, g, want, opt)
}

// A placement is a file of a target's folder to be.
type placement struct {
	path string
	file *engine.Artifact
	step string
}

// placesOf returns what targets place where. out replaces the folders that they name,
// unless it is empty. Two steps with one path are an error.
func placesOf(targets []*recipes.Target, out string) (places []placement, err error) {
	steps := map[string]string{}
	for _, t := range targets {
		folder := t.Out
		if out != "" {
			folder = out
		}
		for _, s := range t.Steps {
			if s.FileName() == "" || folder == "" {
				continue
			}
			path := filepath.Join(folder, s.FileName())
			other, taken := steps[path]
			if taken && other != s.Address {
				return nil, fmt.Errorf("%s and %s both place %s", other, s.Address, path)
			}
			if steps[path] = s.Address; !taken {
				places = append(places, placement{path, s.Artifacts()[0], s.Address})
			}
		}
	}
	return places, nil
}

// place puts the files of targets in their folders. A build that failed places nothing:
// what is there is a whole earlier one.
func place(store *cache.Dir, places []placement, want []*engine.Artifact, outputs []cache.Output, v *view.Build) error {
	for _, pl := range places {
		output := outputs[slices.Index(want, pl.file)]
		how, err := store.Export(output.Digest, pl.path)
		if err != nil {
			return fmt.Errorf("place %s of %s: %w", pl.path, pl.step, err)
		}
		v.Placed(pl.path, output, how)
	}
	return nil
}
