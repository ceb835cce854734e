package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/engine/record"
	"bonsai/recipes"
)

// whyKeys are the keys of why alone.
var whyKeys = []string{"all", "manifest", "target"}

const (
	// mostBare is how many bare words a command joins to one name: "codes.body layer 0 qkv"
	// may be given without quotes.
	mostBare = 32

	// mostCauses is how many causes of an action are told.
	mostCauses = 3

	// mostLooked is how many records are looked through for the last run of a step.
	mostLooked = 100
)

// runWhy says why a step ran, or did not, in the last build, and what the next would do.
func runWhy(ctx context.Context, p *program, w *words) (int, error) {
	asked := strings.Join(w.bare, " ")
	at, stored, names := readRecipeArgs(w), readCacheArgs(w), w.list("target")
	opt := view.WhyOptions{
		Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w),
		JSON:  w.flag("json"), All: w.flag("all"), Manifest: w.flag("manifest"), Now: p.now(),
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case asked == "":
		return 0, misused("why what? As in bonsai why codes.body, or bonsai why \"codes.body layer 0 qkv codes\"")
	}
	r, warnings, err := p.load(at, stored.backend)
	if err != nil {
		return 0, err
	}
	warnings.Write(p.stderr, p.style("auto", p.stderr))
	actions, err := r.meant(asked)
	if err != nil {
		return 0, err
	}
	store, options, err := p.openCache(stored, r, cache.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	y := &inquiry{recipe: r, store: store, actions: actions, manifest: opt.Manifest}
	why := view.Why{Asked: asked}
	if why.Last, err = y.last(); err != nil {
		return 0, err
	}
	targets, err := r.around(names, actions)
	if err != nil {
		return 0, err
	}
	if why.Next, err = y.next(ctx, artifacts(targets), options); err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteWhy(p.stdout, why, opt)
}

// meant returns the actions that a word of the user's means: a step, all instances of
// one, the actions of a step whose name begins so, or a target.
func (r *loaded) meant(word string) (actions []engine.Action, err error) {
	steps := []string{word}
	if t := r.Targets[word]; t != nil && t.Declared {
		for _, s := range t.Steps {
			steps = append(steps, s.Address)
		}
	}
	for a := range r.Graph.Actions() {
		if slices.Contains(steps, a.Step) || names(word, a) {
			actions = append(actions, a)
		}
	}
	if len(actions) > 0 {
		return actions, nil
	}
	known := make([]string, 0, len(r.Steps))
	for _, s := range r.Steps {
		if s.Address == word {
			return nil, misused("%s has no actions: it stands for files that are read as they are", word)
		}
		known = append(known, s.Address)
	}
	return nil, misused("no step or action %q%s", word, didYouMean(word, known))
}

// names reports whether a word names an action: in full, or how its name begins.
func names(word string, a engine.Action) bool {
	rest, ok := strings.CutPrefix(a.String(), word)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '[')
}

// around returns the targets to plan for: those asked for, else the declared ones that
// have a step of the actions, else these steps.
func (r *loaded) around(names []string, actions []engine.Action) (targets []*recipes.Target, err error) {
	if len(names) > 0 {
		return r.targets(names)
	}
	makes := map[string]bool{}
	for _, a := range actions {
		makes[a.Step] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		if t := r.Targets[name]; t.Declared && slices.ContainsFunc(t.Steps, func(s *recipes.Step) bool { return r.reaches(s, makes) }) {
			targets = append(targets, t)
		}
	}
	if len(targets) > 0 {
		return targets, nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		if makes[name] {
			targets = append(targets, r.Targets[name])
		}
	}
	return targets, nil
}

// reaches reports whether what a step builds is made with an action of one of steps.
func (r *loaded) reaches(s *recipes.Step, steps map[string]bool) bool {
	seen := map[string]bool{}
	queue := s.Artifacts()
	for len(queue) > 0 {
		a, ok := queue[0].Action()
		queue = queue[1:]
		if !ok || seen[a.String()] {
			continue
		}
		if steps[a.Step] {
			return true
		}
		seen[a.String()] = true
		queue = append(queue, a.In...)
	}
	return false
}

// An inquiry finds out about some actions of a recipe.
type inquiry struct {
	recipe   *loaded
	store    *cache.Dir
	actions  []engine.Action
	manifest bool // manifests are asked for
}

// last returns what the latest run of the recipe did that had to do with the actions; nil
// if there is none.
func (y *inquiry) last() (*view.WhyRun, error) {
	ids, err := record.List(y.store)
	if err != nil {
		return nil, err
	}
	unchanged := 0
	for _, id := range ids[:min(len(ids), mostLooked)] {
		head, err := record.LoadHead(y.store, id)
		if err != nil || head.Recipe != y.recipe.id {
			continue
		}
		if head.Quick {
			unchanged++
			continue
		}
		run, err := record.Load(y.store, id)
		if err != nil {
			return nil, err
		}
		if actions := y.inRun(run); len(actions) > 0 {
			return &view.WhyRun{Run: run.Head, Since: unchanged, Actions: actions}, nil
		}
	}
	return nil, nil
}

// inRun returns what a run did of the actions.
func (y *inquiry) inRun(run *record.Run) (list []view.WhyAction) {
	ran, hit := map[string]int{}, map[string]int{}
	for i := range run.Actions {
		ran[run.Actions[i].String()] = i
	}
	for i, h := range run.Hits {
		hit[engine.Action{Step: h.Step, Name: h.Name}.String()] = i
	}
	story := record.OfRun(run)
	for _, a := range y.actions {
		w := view.WhyAction{Step: a.Step, Name: a.Name}
		if i, ok := ran[a.String()]; ok {
			did := &run.Actions[i]
			w.Status, w.Seconds, w.Key, w.Reasons = string(did.Outcome), did.Took().Seconds(), &did.Key, did.Reasons
			w.Causes, w.Error = y.causes(story, a.String()), did.Error
		} else if i, ok := hit[a.String()]; ok {
			w.Status, w.Key = engine.Hit.String(), &run.Hits[i].Key
		} else {
			continue
		}
		if res, err := y.store.Lookup(*w.Key); err == nil && y.manifest {
			w.Manifest = res.Manifest
		}
		list = append(list, w)
	}
	return list
}

// next returns what a build of some artifacts would do with the actions.
func (y *inquiry) next(ctx context.Context, want []*engine.Artifact, opt engine.Options) (list []view.WhyAction, err error) {
	plan, err := engine.MakePlan(ctx, y.recipe.Graph, want, opt)
	if err != nil {
		return nil, err
	}
	entries := map[string]*engine.Entry{}
	for i := range plan.Entries {
		e := &plan.Entries[i]
		entries[engine.Action{Step: e.Step, Name: e.Name}.String()] = e
	}
	story := record.OfPlan(plan, y.recipe.Graph)
	for _, a := range y.actions {
		w := view.WhyAction{Step: a.Step, Name: a.Name, Status: view.Unneeded}
		if e := entries[a.String()]; e != nil {
			w.Status, w.Seconds = e.Status.String(), e.Seconds
			if act := story[a.String()]; act != nil {
				w.Reasons = act.Reasons
			}
			if e.Key != (cache.Key{}) {
				w.Key = &e.Key
			}
			if y.manifest {
				w.Manifest = e.Manifest
			}
			w.Causes = y.causes(story, a.String())
		}
		list = append(list, w)
	}
	return list, nil
}

// causes returns why an action of a story is not a hit, with where in the recipe what
// changed stands.
func (y *inquiry) causes(story record.Story, label string) (list []view.WhyCause) {
	for _, chain := range story.Chains(label, mostCauses) {
		root := story[chain[len(chain)-1]]
		c := view.WhyCause{Step: root.Step, Name: root.Name, Reasons: root.Reasons}
		if len(chain) > 1 {
			c.Through = slices.Clone(chain[1 : len(chain)-1])
			slices.Reverse(c.Through)
			c.Follows = true
		}
		for _, r := range root.Reasons {
			c.Places = append(c.Places, y.place(root.Step, r))
		}
		list = append(list, c)
	}
	return list
}

// place returns where in the recipe a setting stands that changed, such as
// recipe.hcl:12; "" for other reasons.
func (y *inquiry) place(step string, r record.Reason) string {
	if r.Kind != record.ReasonKinds()[engine.Setting] {
		return ""
	}
	at, ok := y.recipe.Find(step, r.Name)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", at.Filename, at.Start.Line)
}
