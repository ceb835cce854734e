// Package compiled remembers what a build came to when nothing was left to run, so that
// the next one can say so again without the recipe and without the graph.
//
// It knows files, results and blobs, and whether they are what they were. It does not
// know what a recipe says. Start at Plan; why it can be believed is in engine/adr/0007.
package compiled

import (
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// A Plan is a list of everything that a build with nothing to run depends on: if all of
// it is what it was, the build has nothing to run again.
type Plan struct {
	Recipe  string         // what the cache's history knows the recipe by
	Reads   []Read         // files of the user's, folders and variables, recipe and sources alike
	Results []Result       // results that must be found
	Wanted  []cache.Output // blobs that must be there
	Places  []Place        // files that a build puts into folders

	Saved   float64    // seconds that the results took when they were made
	History cache.Mark // of what the cache knew of last builds when it knew this one
	Touched time.Time  // when the results were marked as used
}

// A Result is a result of an action and the mark of its file. With the zero Mark it is
// looked up each time, since it was written too recently for its mark to tell.
type Result struct {
	Step, Name string
	Key        cache.Key
	Outputs    []cache.Output
	Duration   time.Duration // of its run
	Evicted    time.Time     // when gc dropped its blobs, zero if it did not
	Mark       cache.Mark
}

// A Place is a file that a build puts into a folder.
type Place struct {
	Folder string // as the recipe says; "" for nowhere
	Name   string
	Step   string
	Blob   cache.Output
}

// Compile returns the plan of a build of recipe that came to c and looked at reads and no
// other things, beside the sources. began is when the first of them was looked at.
//
// It answers false if something was touched so recently that the build may have seen
// what it was before: less than two seconds before the build began, or later.
func Compile(store *cache.Dir, recipe string, c engine.Current, reads []Read, places []Place, began time.Time) (*Plan, bool) {
	p := &Plan{Recipe: recipe, Wanted: c.Wanted, Places: places, History: store.MarkOfHistory(), Touched: began}
	now := store.Now()
	jump := now.Sub(began) - now.Round(0).Sub(began.Round(0)) // of the clock, against the monotonic one
	for _, path := range c.Sources {
		reads = append(reads, See(store, File, path))
	}
	var ok bool
	if p.Reads, ok = observe(store, reads, began); !ok || jump.Abs() > time.Second || now.Before(began) {
		return nil, false
	}
	p.Results = make([]Result, len(c.Actions))
	for i, a := range c.Actions {
		p.Results[i] = Result{Step: a.Step, Name: a.Name, Key: a.Key, Outputs: a.Outputs, Duration: a.Duration, Evicted: a.Evicted}
		p.Saved += a.Duration.Seconds()
	}
	ok = each(len(p.Results), func(i int) bool {
		r := &p.Results[i]
		if m, err := store.MarkOfResult(r.Key); err == nil && m.IsOld(began) {
			r.Mark = m // what the build looked up
			return true
		}
		return r.renew(store)
	})
	return p, ok
}

// renew looks a result up, and gives it the mark of its file if that can be trusted. It
// answers false if the result is not what it was.
func (r *Result) renew(store *cache.Dir) bool {
	now := store.Now()
	m, err := store.MarkOfResult(r.Key)
	if err != nil || !store.Gives(r.Key, r.Outputs) {
		return false
	}
	if r.Mark = (cache.Mark{}); m.IsOld(now) {
		r.Mark = m
	}
	return true
}

// Holds reports whether everything is what it was. Then the next full build has nothing
// to run either. renewed says that some marks were out of date although what they mark
// is not: p has the new ones.
func (p *Plan) Holds(store *cache.Dir, lookupEnv func(string) (string, bool)) (renewed, ok bool) {
	var news flag
	ok = each(len(p.Reads), func(i int) bool {
		r := &p.Reads[i]
		return r.look(store, lookupEnv) == r.Saw
	}) && each(len(p.Results), func(i int) bool {
		r := &p.Results[i]
		if r.Mark != (cache.Mark{}) && store.Unmoved(r.Key, r.Mark, r.Outputs) {
			return true
		}
		was := r.Mark
		same := r.renew(store)
		if r.Mark != was {
			news.raise()
		}
		return same
	}) && each(len(p.Wanted), func(i int) bool {
		size, err := store.Stat(p.Wanted[i].Digest)
		return err == nil && size == p.Wanted[i].Size
	})
	return news.isUp(), ok
}

// Known returns what tells the results that are what they were, by their keys, whatever
// else has changed. It marks them as used, as a look at them does.
func (p *Plan) Known(store *cache.Dir) func(cache.Key) (cache.Result, bool) {
	results := make(map[cache.Key]*Result, len(p.Results))
	for i := range p.Results {
		results[p.Results[i].Key] = &p.Results[i]
	}
	return func(k cache.Key) (cache.Result, bool) {
		r, ok := results[k]
		if !ok || r.Mark == (cache.Mark{}) || !store.Unmoved(k, r.Mark, r.Outputs) {
			return cache.Result{}, false
		}
		store.UsedAt(k, r.Mark)
		return cache.Result{Outputs: r.Outputs, Duration: r.Duration, Evicted: r.Evicted}, true
	}
}

// touchEvery is how often the results of a plan are marked as used: gc goes by days.
const touchEvery = 24 * time.Hour

// Touch marks the results as used, unless that was done today. It reports whether it
// did.
func (p *Plan) Touch(store *cache.Dir) (did bool, err error) {
	now := store.Now()
	if now.Sub(p.Touched).Abs() < touchEvery {
		return false, nil
	}
	p.Touched = now
	return true, store.Touch(func(yield func(cache.Key) bool) {
		for i := range p.Results {
			if !yield(p.Results[i].Key) {
				return
			}
		}
	})
}

// Remember makes the results the last ones of their actions, as a full build does. It
// reports whether it had to look.
func (p *Plan) Remember(store *cache.Dir) (did bool, err error) {
	if store.MarkOfHistory() == p.History {
		return false, nil
	}
	for i := range p.Results {
		r := &p.Results[i]
		if err := store.SetLast(engine.HistoryID(p.Recipe, r.Step, r.Name), r.Key); err != nil {
			return false, err
		}
	}
	p.History = store.MarkOfHistory()
	return true, nil
}
