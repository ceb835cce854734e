package engine

import (
	"context"
	"errors"
	"fmt"

	"bonsai/cache"
)

// start gives an action that is ready its slots and makes it run, unless another action
// of this build is at the same key: then it waits for that one's result.
func (b *build) start(id int) {
	r := &b.actions[id]
	if first, ok := b.busy[r.key]; ok && first != id {
		b.set(id, twinned)
		b.twins[r.key] = append(b.twins[r.key], id)
		return
	}
	b.busy[r.key] = id
	r.slot = true
	b.slots.take(&b.graph.actions[id])
	if b.opt.Locker != nil && r.unlock == nil {
		b.lock(id)
		return
	}
	b.run(id)
}

// release gives back all that an action holds because it was about to run: its slots,
// its lock, its key.
func (b *build) release(id int) {
	r := &b.actions[id]
	b.giveSlot(id)
	if r.unlock != nil {
		r.unlock()
		r.unlock = nil
	}
	if first, ok := b.busy[r.key]; !ok || first != id {
		return
	}
	delete(b.busy, r.key)
	twins := b.twins[r.key]
	delete(b.twins, r.key)
	for _, twin := range twins {
		if t := &b.actions[twin]; t.state == twinned && t.key == r.key {
			t.hit = unknown
			b.decide(twin)
		}
	}
}

func (b *build) giveSlot(id int) {
	if r := &b.actions[id]; r.slot {
		r.slot = false
		b.slots.give(&b.graph.actions[id])
	}
}

// lock asks for the key's lock, and then once more for the result, which whoever held
// the lock may have recorded.
func (b *build) lock(id int) {
	b.set(id, locking)
	r := &b.actions[id]
	first, end := b.graph.made(id)
	q := query{action: &b.graph.actions[id], opt: &b.opt, key: r.key, text: r.manifest, look: true}
	for a := first; a < end; a++ {
		if b.artifacts[a].isNeeded() {
			q.stat = append(q.stat, a-first)
		}
	}
	b.send(func() func() {
		purpose := cache.WithPurpose(b.short, q.action.String())
		unlock, err := b.opt.Locker.Lock(purpose, q.key, func(holder string) {
			b.replies <- reply{more: true, apply: func() { b.waits(id, holder) }}
		})
		if err != nil {
			return func() { b.unlocked(id, err) }
		}
		f := q.answer()
		return func() { b.locked(id, unlock, q, f) }
	})
}

// waits gives the slots of an action back while another process is at it.
func (b *build) waits(id int, holder string) {
	if b.actions[id].state != locking {
		return
	}
	b.giveSlot(id)
	step, name := b.who(id)
	b.opt.Emit(Waiting{Step: step, Name: name, Key: b.actions[id].key, Holder: holder, Time: b.now()})
}

// locked goes on with an action that has its lock: it is a hit by now, or it runs.
func (b *build) locked(id int, unlock func(), q query, f finding) {
	r := &b.actions[id]
	r.unlock = unlock
	complete := f.hit
	for _, there := range f.there {
		complete = complete && there
	}
	switch {
	case b.stopping:
		b.release(id)
	case r.stale || r.absent > 0:
		b.release(id)
		b.decide(id)
	case complete:
		b.adopt(id, f.result)
		b.found(id, q.stat, f.there)
		b.release(id)
		b.decide(id)
	case r.slot:
		b.run(id)
	default:
		b.enqueue(id)
	}
}

// unlocked goes on with an action whose lock cannot be had. Running it twice at once is
// wasteful and not wrong, so it runs.
func (b *build) unlocked(id int, err error) {
	if b.stopping {
		b.release(id)
		return
	}
	b.warn(id, fmt.Errorf("lock against other builds: %w", err))
	b.actions[id].shared = true
	b.locked(id, func() {}, query{}, finding{})
}

// run lets a worker run an action that has its slots.
func (b *build) run(id int) {
	b.set(id, running)
	r, action := &b.actions[id], &b.graph.actions[id]
	t := &attempt{
		action: action, opt: &b.opt, key: r.key, text: r.manifest,
		in: make([]cache.Output, len(action.In)), report: &reporter{id: id, to: b.reports},
		starts: &b.starts, alone: b.active == 0, shared: r.shared,
		given: func() { b.given(id) },
	}
	if b.opt.Logs != nil && r.log == nil {
		r.log = &transcript{now: t.now}
	}
	t.log, t.report.log = r.log, r.log
	for i, in := range action.In {
		t.in[i] = b.artifacts[in.id].bytes
	}
	began := Started{
		Step: action.Step, Name: action.Name, Key: r.key, Reasons: r.reasons, Estimate: b.seconds(id),
		Pool: action.Pool, Try: r.tries + 1,
	}
	t.begin = func() {
		began.Time = t.now()
		t.log.begins(t, began)
		b.replies <- reply{more: true, apply: func() { b.opt.Emit(began) }}
	}
	b.active++
	unlock := r.unlock
	r.unlock = nil
	t.number = b.starts.Add(1)
	b.send(func() func() {
		t.run(b.ctx)
		if unlock != nil {
			unlock()
		}
		return func() { b.ran(id, t) }
	})
}

// ran takes over what came of a run.
func (b *build) ran(id int, t *attempt) {
	if !t.deaf {
		b.active--
	}
	r := &b.actions[id]
	r.deaf, r.logged = t.deaf, t.logged
	step, name := b.who(id)
	failed := func(err error) {
		b.opt.Emit(Failed{Step: step, Name: name, Key: t.key, Err: err, Time: b.now()})
	}
	switch {
	case t.err == nil:
		b.succeeded(id, t)
	case t.deaf:
		r.slot = false // not given back: it is in use
		b.fail(id, t.err)
	case len(t.gone) > 0 && r.losses < maxLosses:
		b.release(id)
		b.lost(id, t.gone)
	case b.ctx.Err() != nil && errors.Is(t.err, b.ctx.Err()), errors.Is(t.err, context.Canceled) && b.stopping:
		failed(t.err)
		b.release(id)
	case b.mayRetry(id, t.err):
		b.retry(id, t.err)
	default:
		b.fail(id, t.err)
	}
}

// given takes back the slots of an action whose op was given up, once it ends. It is
// called by whoever waited for that, and the build may be over.
func (b *build) given(id int) {
	back := reply{more: true, apply: func() {
		b.active--
		b.actions[id].deaf = false
		b.slots.give(&b.graph.actions[id])
	}}
	select {
	case b.replies <- back:
	case <-b.over:
	}
}

// succeeded takes over the outputs of an action that ran.
func (b *build) succeeded(id int, t *attempt) {
	r := &b.actions[id]
	r.runs++
	r.reported, r.log = true, nil
	b.opt.Emit(Finished{Step: t.action.Step, Name: t.action.Name, Key: t.key, Result: t.result, Time: b.now()})
	b.warn(id, t.warning)
	b.adopt(id, t.result)
	for a, end := b.graph.made(id); a < end; a++ {
		there := yes
		if h := &b.artifacts[a]; h.open > 0 && b.doubted[h.bytes.Digest] {
			there = unknown // what went may have been the new blob: who may read it asks for it
		}
		b.setThere(a, there)
	}
	b.release(id)
	b.decide(id)
}

// lost makes an action whose inputs were gone when it wanted to read them wait until
// it is known that they are there, and, if not, until they are made again. Other
// artifacts with the same bytes are in doubt as well.
func (b *build) lost(id int, gone []int) {
	b.actions[id].losses++
	for _, i := range gone {
		digest := b.artifacts[b.graph.actions[id].In[i].id].bytes.Digest
		b.doubted[digest] = true
		for _, a := range b.graph.artifacts {
			if h := &b.artifacts[a.id]; a.maker >= 0 && h.there == yes && h.bytes.Digest == digest {
				b.setThere(a.id, unknown)
				b.reconsider(a.maker)
			}
		}
	}
	b.decide(id)
}

// reconsider decides on an action again that may have been done.
func (b *build) reconsider(id int) {
	if b.actions[id].state == done {
		b.decide(id)
	}
}
