package engine

// settle notices that an action will never again need its inputs in this build: it
// ran, or it is a hit whose bytes are there or which nobody can ask for any more.
// Then its inputs have one reader less, and so may settle the actions before it.
//
// An action that failed does not settle, so that what it would need to run once more
// is kept.
func (b *build) settle(id int) {
	r := &b.actions[id]
	if b.dry || r.settled || r.state != done && r.state != keyed {
		return
	}
	for a, end := b.graph.made(id); a < end; a++ {
		if h := &b.artifacts[a]; h.open > 0 && h.there != yes {
			return
		}
	}
	r.settled = true
	for a, end := b.graph.made(id); a < end; a++ {
		b.drop(b.graph.artifacts[a]) // if nothing ever read it
	}
	for _, in := range b.graph.actions[id].In {
		h := &b.artifacts[in.id]
		if h.open--; h.open == 0 && in.maker >= 0 {
			b.drop(in)
			b.settle(in.maker)
		}
	}
}

// drop removes the bytes of a transient artifact that nothing needs any more from the
// store, unless another artifact of this build has the same bytes. The loop does it
// itself, so that nothing asks for the same bytes, or stores them, at the same time.
func (b *build) drop(a *Artifact) {
	h := &b.artifacts[a.id]
	if b.dry || !a.Output().Transient || h.open > 0 || h.readers > 0 || h.there != yes {
		return
	}
	store, ok := b.opt.Store.(remover)
	if !ok {
		return
	}
	b.setThere(a.id, unknown)
	b.letGo(a.id)
	digest := h.bytes.Digest
	if b.holders[digest] > 0 {
		return
	}
	b.doubted[digest] = true
	b.warn(a.maker, store.Remove(digest))
}

// hold counts an artifact as one that keeps its blob in the store.
func (b *build) hold(a int) {
	h := &b.artifacts[a]
	if h.held || b.graph.artifacts[a].maker < 0 {
		return
	}
	h.held = true
	b.holders[h.bytes.Digest]++
}

// letGo undoes hold.
func (b *build) letGo(a int) {
	h := &b.artifacts[a]
	if !h.held {
		return
	}
	h.held = false
	if b.holders[h.bytes.Digest]--; b.holders[h.bytes.Digest] == 0 {
		delete(b.holders, h.bytes.Digest)
	}
}
