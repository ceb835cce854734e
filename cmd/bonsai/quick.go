package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/engine/compiled"
	"bonsai/ops/mlx"
	"bonsai/recipes"
	"bonsai/rules"
)

// A quick is the attempt to say that a target is up to date without reading the recipe,
// by what an earlier build with the same words came to: see package compiled.
type quick struct {
	store *cache.Dir
	name  string // of the plan in the cache; "" if these words ask for more than that
	began time.Time

	mu    sync.Mutex
	seen  map[rules.Read]bool
	reads []compiled.Read
	old   *compiled.Plan // one that does not hold
	made  *engine.Current
}

// quickly returns the attempt for the words of build or plan. The cache is opened with
// open. An attempt that cannot be made is one that finds nothing.
func (p *program) quickly(command string, w *words, a cacheArgs, open func(string, func() time.Time) (*cache.Dir, error)) *quick {
	q := &quick{began: p.now(), seen: map[rules.Read]bool{}}
	store, err := p.openStore(a.dir, open)
	if err != nil {
		return q // the full build says so
	}
	q.store, q.name = store, planName(command, w)
	return q
}

// decisive are the words that decide what is built, beside those of variables, and
// indifferent those that do not, and ask for no more than an answer.
var (
	decisive    = []string{"backend", "except", "from", "recipe", "target", "until", "vars"}
	indifferent = []string{"cache", "color", "detailed-exitcode", "keep-going", "memory", "workers"}
)

// planName returns the name of the plan for what words ask, or "" if they ask for more
// than whether something is to do.
func planName(command string, w *words) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(w.values)) {
		switch value := w.values[key]; {
		case slices.Contains(decisive, key), strings.HasPrefix(key, "var."):
			fmt.Fprintf(h, "%q=%q\n", key, value)
		case slices.Contains(indifferent, key):
		case key == "out" && command == "build", value == "false":
		default:
			return ""
		}
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	fi, err := os.Stat(self)
	if err != nil {
		return ""
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	// What this bonsai makes of a recipe, as what it was called, and where.
	fmt.Fprintf(h, "%q %d %d %q %q %q", self, fi.Size(), fi.ModTime().UnixNano(), version, filepath.Base(os.Args[0]), dir)
	return hex.EncodeToString(h.Sum(nil))
}

// find returns the plan of an earlier build if all of it is as it was.
func (q *quick) find(p *program) (plan *compiled.Plan, renewed bool) {
	if q.name == "" {
		return nil, false
	}
	plan, err := compiled.Load(q.store, q.name)
	if err != nil {
		return nil, false // none, or damaged: the full build makes another
	}
	renewed, ok := plan.Holds(q.store, p.lookupEnv)
	if !ok {
		q.old = plan
		return nil, false
	}
	return plan, renewed
}

// build says that a target is up to date and places its files, if all is as it was.
func (q *quick) build(p *program, w *words, a buildArgs) (done bool, err error) {
	plan, renewed := q.find(p)
	if plan == nil {
		return false, nil
	}
	places, ok := placesIn(plan, a.out)
	if !ok {
		return false, nil
	}
	hows := make([]string, len(places))
	for i, at := range places {
		hows[i], err = q.store.Export(at.Blob.Digest, at.path)
		if errors.Is(err, cache.ErrMiss) {
			return false, nil // gone in this moment
		}
		if err != nil {
			return true, fmt.Errorf("place %s of %s: %w", at.path, at.Step, err)
		}
	}
	v := view.NewBuild(p.stdout, a.view)
	v.Current(len(plan.Results))
	for i, at := range places {
		v.Placed(at.path, at.Blob, hows[i])
	}
	q.renew(plan, renewed)
	p.keepQuick(q, plan, w, a, v)
	v.Close(nil)
	return true, nil
}

// A knownPlace is a file that is placed, and where.
type knownPlace struct {
	compiled.Place
	path string
}

// placesIn returns the files that plan places, each once. It answers false if two steps
// have one path: the full build says which.
func placesIn(plan *compiled.Plan, out string) (places []knownPlace, ok bool) {
	steps := map[string]string{}
	for _, at := range plan.Places {
		folder := at.Folder
		if out != "" {
			folder = out
		}
		if folder == "" {
			continue
		}
		path := filepath.Join(folder, at.Name)
		step, taken := steps[path]
		if taken && step != at.Step {
			return nil, false
		}
		if steps[path] = at.Step; !taken {
			places = append(places, knownPlace{at, path})
		}
	}
	return places, true
}

// renew keeps what has changed of a plan that holds. What cannot be kept costs the next
// build some time.
func (q *quick) renew(plan *compiled.Plan, renewed bool) {
	touched, _ := plan.Touch(q.store)
	remembered, _ := plan.Remember(q.store)
	if renewed || touched || remembered {
		_ = plan.Save(q.store, q.name)
	}
}

// keepQuick records a build that found at once that nothing was to do.
func (p *program) keepQuick(q *quick, plan *compiled.Plan, w *words, a buildArgs, v *view.Build) {
	rec := p.recorder("build", w, a.selection.targets, engine.Options{
		Recipe: plan.Recipe, Version: version, Backend: mlx.New(a.cache.backend).Name(),
	})
	run := rec.Finish(nil, nil)
	run.Quick, run.Head.Hits, run.Saved = true, len(plan.Results), plan.Saved
	p.keep(q.store, run, v)
}

// reading is told what is about to be looked at while a recipe is read.
func (q *quick) reading(r rules.Read) {
	if q.name == "" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen[r] {
		return
	}
	q.seen[r] = true
	if r.Kind == rules.EnvRead {
		q.reads = append(q.reads, compiled.Read{Kind: compiled.Env, Name: r.Name, Saw: compiled.Variable(r.Value, r.Set)})
		return
	}
	kind := map[rules.ReadKind]compiled.Kind{
		rules.FileRead: compiled.File, rules.FileStat: compiled.Presence, rules.FolderList: compiled.Folder,
	}[r.Kind]
	q.reads = append(q.reads, compiled.See(q.store, kind, r.Name))
}

// watch makes the attempt learn what the recipe is read from.
func (q *quick) watch(a *recipeArgs) {
	a.saw = q.reading
	if q.name != "" {
		q.reads = append(q.reads, compiled.See(q.store, compiled.Presence, a.path), compiled.See(q.store, compiled.Recipes, a.path))
	}
}

// known returns what tells results that the earlier build found, or nil.
func (q *quick) known(store *cache.Dir) func(cache.Key) (cache.Result, bool) {
	if q.old == nil {
		return nil
	}
	return q.old.Known(store)
}

// came takes over what the full build came to.
func (q *quick) came(c engine.Current) { q.made = &c }

// learn keeps what a build came to that has left nothing to do, for the next one.
func (q *quick) learn(r *loaded, mistakes *view.MistakesError, targets []*recipes.Target, want []*engine.Artifact, outputs []cache.Output) {
	if q.name == "" || q.made == nil || len(mistakes.Diagnostics) > 0 {
		return // a warning is said every time
	}
	var places []compiled.Place
	for _, t := range targets {
		for _, s := range t.Steps {
			if s.FileName() != "" {
				blob := outputs[slices.Index(want, s.Artifacts()[0])]
				places = append(places, compiled.Place{Folder: t.Out, Name: s.FileName(), Step: s.Address, Blob: blob})
			}
		}
	}
	if plan, ok := compiled.Compile(q.store, r.id, *q.made, q.reads, places, q.began); ok {
		_ = plan.Save(q.store, q.name) // without it the next build takes the long way
	}
}
