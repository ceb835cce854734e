package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/recipes"
)

// cacheVerbs returns what bonsai cache can do, in the order of help. Each is a command
// with a name of two words.
func cacheVerbs() []command {
	at := []string{"cache"}
	return []command{
		{"cache gc", "drop what is cheapest to make again", keysOf(gcKeys, at, viewKeys), 0, runGC},
		{"cache pin", "keep what a target made", keysOf(pinKeys, at, recipeKeys, viewKeys), 0, runPin},
		{"cache unpin", "let go of a pin", keysOf(at, viewKeys, []string{"name"}), 1, runUnpin},
		{"cache ls", "list what is stored", keysOf(lsKeys, at, viewKeys), 0, runLs},
		{"cache du", "say what takes how much room", keysOf(at, viewKeys, []string{"by"}), 0, runDu},
		{"cache stats", "say how often the cache had what builds needed, and what that saved", keysOf(at, viewKeys, []string{"limit"}), 0, runStats},
		{"cache inspect", "show one result or blob", keysOf(at, viewKeys), 1, runCacheInspect},
		{"cache rm", "delete one result or blob", keysOf(at, viewKeys), 1, runRm},
		{"cache verify", "hash everything, and set aside what is damaged", keysOf(at, viewKeys), 0, runVerify},
		{"cache export", "write what a target needs as one file", keysOf(exportKeys, at, recipeKeys, viewKeys), 0, runExport},
		{"cache import", "read a file that export wrote", keysOf(importKeys, at, viewKeys), 0, runImport},
	}
}

// cacheVerbKeys returns the keys of all verbs.
func cacheVerbKeys() (keys []string) {
	for _, v := range cacheVerbs() {
		keys = append(keys, v.keys...)
	}
	return keysOf(keys)
}

// runCache explains bonsai cache: what it does is done by its verbs.
func runCache(_ context.Context, p *program, _ *words) (int, error) {
	return exitBuilt, p.page("cache")
}

// Keys of verbs.
var (
	gcKeys     = []string{"age", "dry-run", "free", "max"}
	pinKeys    = []string{"closure", "digest", "key", "name", "target"}
	exportKeys = []string{"all", "target", "to"}
	importKeys = []string{"from"}
	lsKeys     = []string{"limit", "sort", "step"}
)

// readCacheView reads how a verb's results are shown, and where the cache is.
func (p *program) readCacheView(w *words) (dir string, opt view.CacheOptions) {
	return w.text("cache", ""), view.CacheOptions{
		Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w),
		JSON:  w.flag("json"), Now: p.now(),
	}
}

// runGC drops artifacts until the cache is within limits.
func runGC(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	limits := cache.Limits{Max: w.bytes("max"), Age: w.duration("age"), DryRun: w.flag("dry-run")}
	free := w.bytes("free")
	if w.err != nil {
		return 0, w.err
	}
	open := cache.OpenDir
	if limits.DryRun {
		open = cache.OpenReadOnly
	}
	store, err := p.openStore(dir, open)
	if err != nil {
		return 0, err
	}
	if free > 0 {
		has, total := p.room(store.Path())
		if total == 0 {
			return 0, errors.New("free=: it is not known how much room this disk has")
		}
		limits.Free = max(0, free-has)
	}
	limits.Waiting = func(holder string) { fmt.Fprintf(p.stderr, "waiting for %s\n", holder) }
	c, err := store.GC(ctx, limits)
	if err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteCollection(p.stdout, c, limits, opt)
}

// runPin keeps what a target's last build made, or a result or blob by its name.
func runPin(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	target, name, key, digest := w.text("target", ""), w.text("name", ""), w.text("key", ""), w.text("digest", "")
	closure, recipe := w.flag("closure"), readRecipeArgs(w)
	given := 0
	for _, v := range []string{target, key, digest} {
		if v != "" {
			given++
		}
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case given > 1:
		return 0, misused("target=, key= and digest= each say what to pin: give one")
	case given == 0:
		return p.listPins(ctx, dir, opt)
	}
	store, err := p.openStore(dir, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	pin := cache.Pin{Name: name, At: p.now().UTC()}
	switch {
	case key != "":
		err = pinKey(store, &pin, key)
	case digest != "":
		err = pinDigest(store, &pin, digest)
	default:
		err = p.pinTarget(store, &pin, target, recipe, closure)
	}
	if err == nil {
		err = store.Pin(pin)
	}
	if err != nil {
		return 0, err
	}
	return p.listPins(ctx, dir, opt)
}

func pinKey(store *cache.Dir, pin *cache.Pin, prefix string) error {
	k, err := oneKey(store, prefix)
	if err != nil {
		return err
	}
	pin.Name, pin.Note, pin.Keys = orElse(pin.Name, k.Short()), "a result", []cache.Key{k}
	return nil
}

func pinDigest(store *cache.Dir, pin *cache.Pin, prefix string) error {
	d, err := oneDigest(store, prefix)
	if err != nil {
		return err
	}
	pin.Name, pin.Note, pin.Digests = orElse(pin.Name, d.Short()), "a blob", []cache.Digest{d}
	return nil
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// pinTarget makes a pin of what the last build of a target made, with all that it was
// made of if closure is set.
func (p *program) pinTarget(store *cache.Dir, pin *cache.Pin, name string, a recipeArgs, closure bool) error {
	r, _, err := p.load(a, "auto")
	if err != nil {
		return err
	}
	targets, err := r.targets([]string{name})
	if err != nil {
		return err
	}
	pin.Note = "target " + name + " of " + r.id
	pin.Name = orElse(pin.Name, pinName(name))
	for _, action := range makers(targets, closure) {
		k, ok := store.Last(engine.HistoryID(r.id, action.Step, action.Name))
		if !ok {
			return fmt.Errorf("pin target %s: %s was not built here yet", name, action)
		}
		pin.Keys = append(pin.Keys, k)
	}
	return nil
}

// pinName returns a name of a target as one of a pin.
func pinName(target string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:"[] `, r) {
			return '-'
		}
		return r
	}, target), "-.")
}

// makers returns the actions that make the files of targets, and with all set those that
// these depend on, each once, in the order in which they are found.
func makers(targets []*recipes.Target, all bool) (actions []engine.Action) {
	seen := map[string]bool{}
	queue := artifacts(targets)
	for len(queue) > 0 {
		action, ok := queue[0].Action()
		queue = queue[1:]
		if id := action.Step + "\x00" + action.Name; !ok || seen[id] {
			continue
		} else {
			seen[id] = true
		}
		actions = append(actions, action)
		if all {
			queue = append(queue, action.In...)
		}
	}
	return actions
}

// listPins shows the pins and what each keeps.
func (p *program) listPins(ctx context.Context, dir string, opt view.CacheOptions) (int, error) {
	store, err := p.openStore(dir, cache.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	s, err := store.Survey(ctx)
	if err != nil {
		return 0, err
	}
	return exitBuilt, view.WritePins(p.stdout, s, opt)
}

// runUnpin removes a pin.
func runUnpin(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	name := orElse(w.word(0), w.text("name", ""))
	switch {
	case w.err != nil:
		return 0, w.err
	case name == "":
		return 0, misused("unpin what? As in bonsai cache unpin NAME; bonsai cache pin lists them")
	}
	store, err := p.openStore(dir, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	if err := store.Unpin(name); err != nil {
		if pins, listErr := store.KeptNames("pins"); listErr == nil && errors.Is(err, cache.ErrMiss) {
			return 0, misused("no pin is called %q%s", name, didYouMean(name, pins))
		}
		return 0, err
	}
	return p.listPins(ctx, dir, opt)
}

// runVerify hashes everything.
func runVerify(ctx context.Context, p *program, w *words) (int, error) {
	dir, opt := p.readCacheView(w)
	if w.err != nil {
		return 0, w.err
	}
	store, err := p.openStore(dir, cache.OpenDir)
	if err != nil {
		return 0, err
	}
	bar := view.NewProgress(p.stderr, p.style("auto", p.stderr), "verifying", p.now)
	v, err := store.VerifyAll(ctx, bar.Report)
	bar.Close()
	if err != nil {
		return 0, err
	}
	status := exitBuilt
	if len(v.Damaged) > 0 {
		status = exitFailed
	}
	return status, view.WriteVerification(p.stdout, v, opt)
}

// oneKey returns the key in the store that begins with prefix.
func oneKey(store *cache.Dir, prefix string) (cache.Key, error) {
	keys, _, err := store.Find(prefix)
	switch {
	case err != nil:
		return cache.Key{}, &usageError{err.Error()}
	case len(keys) == 0:
		return cache.Key{}, fmt.Errorf("no result has a key that begins with %s", prefix)
	case len(keys) > 1:
		return cache.Key{}, fmt.Errorf("%d results have a key that begins with %s", len(keys), prefix)
	}
	return keys[0], nil
}

// oneDigest returns the digest in the store that begins with prefix.
func oneDigest(store *cache.Dir, prefix string) (cache.Digest, error) {
	_, digests, err := store.Find(prefix)
	switch {
	case err != nil:
		return cache.Digest{}, &usageError{err.Error()}
	case len(digests) == 0:
		return cache.Digest{}, fmt.Errorf("no blob has a digest that begins with %s", prefix)
	case len(digests) > 1:
		return cache.Digest{}, fmt.Errorf("%d blobs have a digest that begins with %s", len(digests), prefix)
	}
	return digests[0], nil
}

// parseAge reads a duration such as 12h or 30d.
func parseAge(text string) (time.Duration, bool) {
	days := map[string]float64{"d": 1, "w": 7}
	if len(text) > 1 {
		if n, unit := text[:len(text)-1], days[text[len(text)-1:]]; unit > 0 {
			d, err := time.ParseDuration(n + "h")
			return time.Duration(float64(d) * 24 * unit), err == nil && d > 0 && float64(d)*24*unit < 1<<62
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}
