package engine

import (
	"errors"
	"fmt"
	"time"

	"bonsai/cache"
)

// decide moves an action on as far as what is known allows. It is the only place that
// says what an action needs next: a key, a result, bytes, or a run.
func (b *build) decide(id int) {
	r := &b.actions[id]
	if r.unnamed > 0 {
		return
	}
	needed, unsure, gone := b.needs(id)
	switch {
	case r.hit == yes && gone:
		b.again(id)
	case r.hit == yes && unsure:
		b.ask(id)
	case r.hit == yes:
		b.finish(id)
	case !r.keyed || r.stale:
		b.ask(id)
	case !r.digests && !needed:
		b.set(id, keyed)
	case r.hit == unknown:
		b.ask(id)
	default:
		b.await(id)
	}
}

// needs reports whether the bytes of any output of an action are needed, and if so,
// whether it is not known that they are there, or known that they are not.
func (b *build) needs(id int) (needed, unsure, gone bool) {
	for a, end := b.graph.made(id); a < end; a++ {
		h := &b.artifacts[a]
		if !h.isNeeded() {
			continue
		}
		needed = true
		unsure = unsure || h.there == unknown
		gone = gone || h.there == no
	}
	return needed, unsure, gone
}

// isNeeded reports whether someone must read the bytes.
func (h *holding) isNeeded() bool { return h.wanted || h.readers > 0 }

// finish ends an action whose result is known.
func (b *build) finish(id int) {
	r := &b.actions[id]
	b.set(id, done)
	if r.reported {
		return
	}
	r.reported = true
	if !b.dry {
		step, name := b.who(id)
		b.opt.Emit(Finished{Step: step, Name: name, Key: r.key, Hit: true, Result: r.result, Time: b.now()})
	}
}

// again makes an action run whose result is known and whose bytes are gone. If its key
// is outdated, it is asked for under the new one first.
func (b *build) again(id int) {
	r := &b.actions[id]
	r.reasons, r.earlier = nil, estimateOf(r.result)
	for a, end := b.graph.made(id); a < end; a++ {
		if h := &b.artifacts[a]; h.isNeeded() && h.there == no {
			r.reasons = append(r.reasons, b.whyAgain(a))
		}
	}
	if r.stale {
		r.hit = unknown
		b.ask(id)
		return
	}
	r.hit = no
	b.await(id)
}

// whyAgain says why bytes that are gone must be made again. That a transient artifact
// is gone is normal, and so is one that a gc dropped; anything else is worth a warning.
func (b *build) whyAgain(a int) Reason {
	artifact := b.graph.artifacts[a]
	if artifact.Output().Transient {
		for _, reader := range b.readers(a) {
			if b.actions[reader].state.mustRun() {
				return Reason{Kind: Needed, Name: b.graph.actions[reader].String()}
			}
		}
	}
	if at := b.actions[artifact.maker].result.Evicted; !at.IsZero() {
		return b.dropped(at, artifact)
	}
	h := &b.artifacts[a]
	what := artifact.Output().Name // the step and the action are said anyway
	if what != "" {
		what += ": "
	}
	b.warn(artifact.maker, fmt.Errorf("%s%w: blob %s; it is made again", what, cache.ErrMiss, h.bytes.Digest.Short()))
	return Reason{Kind: Missing, Name: artifact.String()}
}

// dropped is the reason to make an artifact again that a gc dropped.
func (b *build) dropped(at time.Time, a *Artifact) Reason {
	r := Reason{Kind: Evicted, Name: a.String()}
	if b.opt.Now != nil {
		r.Old = ago(b.opt.Now().Sub(at))
	}
	return r
}

// await makes an action run as soon as the bytes of its inputs are there, and makes
// those who make them know that they are needed.
func (b *build) await(id int) {
	r, action := &b.actions[id], &b.graph.actions[id]
	if !b.dry && b.opt.Memory > 0 && action.Peak > b.opt.Memory {
		b.fail(id, &MemoryError{Step: action.Step, Name: action.Name, Peak: action.Peak, Budget: b.opt.Memory})
		return
	}
	b.set(id, missed)
	for _, in := range action.In {
		if b.artifacts[in.id].there != yes {
			b.fetch(in)
		}
		if r.state != missed {
			return // deciding on the input decided on this one
		}
	}
	if r.absent == 0 {
		b.enqueue(id)
	}
}

// fetch sees to it that the bytes of an artifact that is read will be there.
func (b *build) fetch(a *Artifact) {
	if s := b.actions[a.maker].state; s == keyed || s == done {
		b.decide(a.maker)
	} // else what happens to it next will see that it is needed
}

// enqueue makes an action wait for its turn.
func (b *build) enqueue(id int) {
	b.set(id, ready)
	b.slots.push(b.graph.actions[id].Pool, id)
}

// adopt takes over the result of an action: the digests of its outputs.
func (b *build) adopt(id int, res cache.Result) {
	r := &b.actions[id]
	r.hit, r.result = yes, res
	b.learn(id, res.Duration)
	first, _ := b.graph.made(id)
	for i, out := range res.Outputs {
		h := &b.artifacts[first+i]
		if h.bytes != out {
			b.letGo(first + i)
			h.bytes = out
			b.setThere(first+i, unknown)
		}
		b.hold(first + i)
		if !b.graph.actions[id].Outputs[i].Transient {
			b.setName(first+i, name{sum: out.Digest})
		}
	}
}

// fail ends an action with an error. What depends on it never gets all it waits for.
func (b *build) fail(id int, err error) {
	r := &b.actions[id]
	var twins []int
	if first, ok := b.busy[r.key]; ok && first == id {
		twins = b.twins[r.key]
	}
	step, name := b.who(id)
	e, ok := errors.AsType[*MemoryError](err)
	if ok {
		b.errs = append(b.errs, e)
	} else {
		b.errs = append(b.errs, &ActionError{Step: step, Name: name, Key: r.key, Logged: r.logged, Err: err})
	}
	b.set(id, failed)
	if !b.dry {
		b.opt.Emit(Failed{Step: step, Name: name, Key: r.key, Err: err, Time: b.now()})
	}
	if !b.opt.KeepGoing {
		b.stop()
	}
	for _, twin := range twins {
		if t := &b.actions[twin]; t.state == twinned && t.key == r.key {
			b.fail(twin, err)
		}
	}
	b.release(id)
}

// warn reports something that does not fail the build, once for each text.
func (b *build) warn(id int, err error) {
	if b.dry || err == nil || b.warned[err.Error()] {
		return
	}
	b.warned[err.Error()] = true
	step, name := b.who(id)
	b.opt.Emit(Warned{Step: step, Name: name, Key: b.actions[id].key, Err: err})
}

func (b *build) who(id int) (step, name string) {
	return b.graph.actions[id].Step, b.graph.actions[id].Name
}
