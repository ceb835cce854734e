package engine

// sayNotRun reports, once a build has failed or was interrupted, each action that it would
// have run, or looked at, and did not, with the failure that it waited for.
func (b *build) sayNotRun() {
	because := b.failures()
	asked := make([]bool, len(b.artifacts)) // read by an action that did not run
	skipped := make([]bool, len(b.actions))
	for id := len(b.actions) - 1; id >= 0; id-- {
		if skipped[id] = b.isSkipped(id, asked); !skipped[id] {
			continue
		}
		for _, in := range b.graph.actions[id].In {
			asked[in.id] = true
		}
	}
	for id, is := range skipped {
		if is {
			step, name := b.who(id)
			b.opt.Emit(Skipped{Step: step, Name: name, Key: b.actions[id].key, Because: because[id], Time: b.now()})
		}
	}
}

// isSkipped reports whether something needed an action to go further than it did. asked
// are the artifacts that skipped actions after it read.
func (b *build) isSkipped(id int, asked []bool) bool {
	r := &b.actions[id]
	switch r.state {
	case idle, done, failed, running: // what runs when all ends was interrupted: it has failed
		return false
	case naming, asking, keyed:
	default:
		return true
	}
	if r.digests {
		return true
	}
	for a, end := b.graph.made(id); a < end; a++ {
		if asked[a] || b.artifacts[a].isNeeded() {
			return true
		}
	}
	return false
}

// failures returns for each action the failure that it depends on first, in the order of
// the graph: an action or a source, by name, or "".
func (b *build) failures() []string {
	of := make([]string, len(b.actions))
	hung := b.hung()
	for id := range b.actions {
		r := &b.actions[id]
		switch r.state {
		case idle, done:
			continue
		case failed:
			of[id] = b.graph.actions[id].String()
			continue
		case ready:
			of[id] = hung
		default: // it may follow a failure
		}
		for _, in := range b.graph.actions[id].In {
			switch {
			case in.maker >= 0 && of[in.maker] != "":
				of[id] = of[in.maker]
			case in.maker < 0 && b.unread[in.id]:
				of[id] = in.path
			default:
				continue
			}
			break
		}
	}
	return of
}

// hung returns the first action whose op was given up and still holds its slots.
func (b *build) hung() string {
	for id := range b.actions {
		if b.actions[id].deaf {
			return b.graph.actions[id].String()
		}
	}
	return ""
}
