package engine

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"bonsai/cache"
)

// hash asks a worker for the digest of a source, and then names the source.
func (b *build) hash(a *Artifact) {
	b.hashes.queue = append(b.hashes.queue, func() func() {
		b.replies <- reply{more: true, apply: func() { b.opt.Emit(Hashing{Path: a.path}) }}
		out, err := b.opt.Sources.SourceDigest(b.short, a.path)
		return func() { b.hashed(a, out, err) }
	})
}

func (b *build) hashed(a *Artifact, out cache.Output, err error) {
	if err != nil {
		b.failSource(a, err)
		return
	}
	b.opt.Emit(Hashing{Path: a.path, Size: out.Size, Done: true})
	b.artifacts[a.id].bytes = out
	b.setName(a.id, name{sum: out.Digest})
}

func (b *build) failSource(a *Artifact, err error) {
	if b.stopping && errors.Is(err, context.Canceled) {
		return
	}
	e := &SourceError{Path: a.path, Err: err}
	if readers := b.readers(a.id); len(readers) > 0 {
		e.Step = b.graph.actions[readers[0]].Step
	}
	b.errs = append(b.errs, e)
	b.unread[a.id] = true
	if !b.opt.KeepGoing {
		b.stop()
	}
}

// rehash is the Sources of a build that has none: it remembers nothing.
type rehash struct{}

func (rehash) SourceDigest(_ context.Context, path string) (cache.Output, error) {
	f, err := os.Open(path)
	if err != nil {
		return cache.Output{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return cache.Output{}, err
	}
	return cache.Output{Digest: cache.Digest(h.Sum(nil)), Size: n}, nil
}

// A query is what a worker finds out about one action, with all it needs to know.
type query struct {
	action *Action
	opt    *Options
	dry    bool

	fresh bool   // find the key, from names
	names []name // of the inputs
	key   cache.Key
	text  string // the manifest

	look  bool           // find the result
	known []cache.Output // of the result, if it is known
	stat  []int          // outputs whose bytes to look for
}

// A finding is what came of a query.
type finding struct {
	key     cache.Key
	text    string
	hit     bool
	result  cache.Result
	there   []bool // for each output of query.stat
	reasons []Reason
	earlier estimate
	warning error
	err     error // the op has no text
}

// An estimate is what the last run of an action took.
type estimate struct {
	seconds float64
	sizes   []int64   // of the outputs, in bytes
	evicted time.Time // when its bytes were dropped by a gc
}

// ask sends a worker to find what decide needs to know next.
func (b *build) ask(id int) {
	r := &b.actions[id]
	q := query{action: &b.graph.actions[id], opt: &b.opt, dry: b.dry, key: r.key, text: r.manifest}
	needed, _, _ := b.needs(id)
	if r.hit == yes {
		q.known = r.result.Outputs
	} else {
		q.look = r.digests || needed
	}
	if q.known == nil && (!r.keyed || r.stale) {
		q.fresh, q.names = true, b.names(id)
		r.stale, r.hit = false, unknown
	}
	first, end := b.graph.made(id)
	for a := first; a < end; a++ {
		if h := &b.artifacts[a]; h.isNeeded() && h.there != yes {
			q.stat = append(q.stat, a-first)
		}
	}
	b.set(id, asking)
	heap.Push(&b.slots.asked, id)
	b.asks.queue = append(b.asks.queue, func() func() {
		f := q.answer()
		return func() { b.answered(id, q, f) }
	})
}

// names returns the names of an action's inputs.
func (b *build) names(id int) []name {
	in := b.graph.actions[id].In
	names := make([]name, len(in))
	for i, a := range in {
		names[i] = b.artifacts[a.id].name
	}
	return names
}

// answered takes over what a worker found, unless an input got another name meanwhile.
func (b *build) answered(id int, q query, f finding) {
	r := &b.actions[id]
	if r.stale && (q.fresh || q.look || r.runs == 0) {
		r.hit = unknown
		b.decide(id)
		return
	}
	if f.err != nil {
		b.fail(id, f.err)
		return
	}
	if q.fresh {
		b.setKey(id, f.key, f.text)
	}
	if q.look {
		r.hit, r.reasons, r.earlier = no, f.reasons, f.earlier
		b.learn(id, seconds(f.earlier.seconds))
	}
	b.warn(id, f.warning)
	if q.look && f.hit {
		b.adopt(id, f.result)
	}
	if r.hit == yes {
		b.found(id, q.stat, f.there)
	}
	b.decide(id)
}

// found takes over which of an action's outputs are in the store.
func (b *build) found(id int, outputs []int, there []bool) {
	first, _ := b.graph.made(id)
	for i, o := range outputs {
		if there[i] {
			b.setThere(first+o, yes)
		} else {
			b.setThere(first+o, no)
		}
	}
}

// setKey gives an action its key, and its transient outputs their names.
func (b *build) setKey(id int, key cache.Key, text string) {
	r := &b.actions[id]
	r.keyed, r.key, r.manifest = true, key, text
	first, _ := b.graph.made(id)
	for i, out := range b.graph.actions[id].Outputs {
		if out.Transient {
			b.setName(first+i, name{sum: key, transient: true, output: i})
		}
	}
}

// answer finds out all that q asks. It runs on a worker.
func (q *query) answer() (f finding) {
	f.key, f.text = q.key, q.text
	if q.fresh {
		if f.key, f.text, f.err = safeKey(q.action.Op, q.opt.platform(), q.names); f.err != nil {
			return f
		}
	}
	outs := q.known
	if q.look {
		q.lookup(&f)
		outs = f.result.Outputs
	}
	if len(outs) > 0 {
		f.there = make([]bool, len(q.stat))
		for i, o := range q.stat {
			f.there[i] = q.present(outs[o])
		}
	}
	return f
}

// safeKey is keyOf with a panic of the op as an error.
func safeKey(op Op, platform string, in []name) (key cache.Key, text string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return keyOf(op, platform, in)
}

// lookup finds the result, or why there is none.
func (q *query) lookup(f *finding) {
	res, err := q.result(f.key)
	if err == nil && len(res.Outputs) != len(q.action.Outputs) {
		err = fmt.Errorf("result %s has %d outputs, not %d", f.key.Short(), len(res.Outputs), len(q.action.Outputs))
	}
	if err == nil {
		if res.Manifest == f.text {
			res.Manifest = f.text // kept once: it is most of what is kept of an action
		}
		f.hit, f.result = true, res
		f.warning = q.remember(f.key)
		return
	}
	if !isPlainMiss(err) {
		f.warning = err
	}
	f.reasons, f.earlier = q.explain(f.key, f.text)
}

// result returns what is stored under a key.
func (q *query) result(key cache.Key) (cache.Result, error) {
	if q.opt.Known != nil {
		if res, ok := q.opt.Known(key); ok {
			return res, nil
		}
	}
	return q.opt.Store.Lookup(key)
}

// isPlainMiss reports whether err says that there is nothing, not that it is damaged
// or out of reach.
func isPlainMiss(err error) bool {
	return errors.Is(err, cache.ErrMiss) && !errors.Is(err, cache.ErrCorrupt)
}

// present reports whether a blob is in the store with the right size.
func (q *query) present(out cache.Output) bool {
	size, err := q.opt.Store.Stat(out.Digest)
	return err == nil && size == out.Size
}

// remember makes key the last one of the action, for later reasons.
func (q *query) remember(key cache.Key) error {
	if q.dry || q.opt.History == nil {
		return nil
	}
	id := q.opt.lastID(q.action)
	if last, ok := q.opt.History.Last(id); ok && last == key {
		return nil
	}
	if err := q.opt.History.SetLast(id, key); err != nil {
		return fmt.Errorf("remember the last build: %w", err)
	}
	return nil
}

// explain says why an action with this manifest is not a hit, and what its last run
// took.
func (q *query) explain(key cache.Key, text string) ([]Reason, estimate) {
	last, ok := q.last()
	if ok && last == key {
		return []Reason{{Kind: Evicted}}, estimate{}
	}
	res, err := q.opt.peek(last)
	if !ok || err != nil {
		return []Reason{{Kind: NoResult}}, estimate{}
	}
	inputs := make([]string, len(q.action.In))
	for i, in := range q.action.In {
		inputs[i] = in.String()
	}
	return differences(res.Manifest, text, inputs), estimateOf(res)
}

// settings says which settings an action that has no key yet has changed since the last
// build, and what its last run took.
func (q *query) settings() ([]Reason, estimate) {
	last, ok := q.last()
	if !ok {
		return nil, estimate{}
	}
	res, err := q.opt.peek(last)
	if err != nil {
		return nil, estimate{}
	}
	_, text, err := safeKey(q.action.Op, q.opt.platform(), nil)
	if err != nil {
		return nil, estimateOf(res) // Build will say so
	}
	was, _ := splitManifest(res.Manifest)
	now, _ := splitManifest(text)
	return settingsChanged(was, now), estimateOf(res)
}

// last returns the key of the action at the last build.
func (q *query) last() (key cache.Key, ok bool) {
	if q.opt.History == nil {
		return key, false
	}
	return q.opt.History.Last(q.opt.lastID(q.action))
}

func estimateOf(res cache.Result) estimate {
	e := estimate{seconds: res.Duration.Seconds(), evicted: res.Evicted}
	for _, out := range res.Outputs {
		e.sizes = append(e.sizes, out.Size)
	}
	return e
}

func (o *Options) lastID(a *Action) string { return HistoryID(o.Recipe, a.Step, a.Name) }

// HistoryID is what History knows an action by: renaming a recipe or a step loses the
// reasons and nothing else.
func HistoryID(recipe, step, name string) string { return recipe + "\x00" + step + "\x00" + name }

// SplitHistoryID undoes HistoryID.
func SplitHistoryID(id string) (recipe, step, name string) {
	recipe, rest, _ := strings.Cut(id, "\x00")
	step, name, _ = strings.Cut(rest, "\x00")
	return recipe, step, name
}
