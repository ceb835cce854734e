package engine

// Critical returns the longest chain of the plan: actions that must follow each other, and
// the seconds that they take together. No number of workers builds faster than that.
func (p *Plan) Critical() (seconds float64, chain []*Entry) {
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Critical {
			seconds += e.Seconds
			chain = append(chain, e)
		}
	}
	return seconds, chain
}

// Disk returns the most bytes that the build adds to the cache at any time, if every
// action that may run does, one after the other: what stays and what is dropped again.
// Several at once may need more, by as much as what they have in progress.
func (p *Plan) Disk() int64 {
	var now, most int64
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Status != Hit {
			now += e.Size
			most = max(most, now)
			now -= e.Dropped
		}
	}
	return most
}

// forecast marks the longest chain and says after which entry transient bytes go.
// entries holds, for each action, the number of its entry in the plan, or -1.
func (b *build) forecast(p *Plan, entries []int) {
	b.markCritical(p, entries)
	b.sayDropped(p, entries)
}

// markCritical marks the chain of entries that are not hits whose seconds add up to the
// most. Of two that are as long, the one that begins earlier in the graph.
func (b *build) markCritical(p *Plan, entries []int) {
	longest := make([]float64, len(p.Entries)) // up to the end of an entry
	before := make([]int, len(p.Entries))      // the entry before it in that chain
	last := -1
	for id, e := range entries {
		if e < 0 || p.Entries[e].Status == Hit {
			continue
		}
		before[e] = -1
		for _, in := range b.graph.actions[id].In {
			if in.maker < 0 || entries[in.maker] < 0 {
				continue
			}
			if m := entries[in.maker]; p.Entries[m].Status != Hit && (before[e] < 0 || longest[m] > longest[before[e]]) {
				before[e] = m
			}
		}
		longest[e] = p.Entries[e].Seconds
		if before[e] >= 0 {
			longest[e] += longest[before[e]]
		}
		if last < 0 || longest[e] > longest[last] {
			last = e
		}
	}
	for ; last >= 0; last = before[last] {
		p.Entries[last].Critical = true
	}
}

// sayDropped says how many transient bytes of entries that are not hits go after which
// entry: after the last that reads them, or at once if nothing does.
func (b *build) sayDropped(p *Plan, entries []int) {
	last := make([]int, len(b.artifacts)) // 1 + the entry that reads an artifact last
	for id, e := range entries {
		if e < 0 || p.Entries[e].Status == Hit {
			continue
		}
		for _, in := range b.graph.actions[id].In {
			last[in.id] = e + 1
		}
	}
	for id, e := range entries {
		if e < 0 || p.Entries[e].Status == Hit {
			continue
		}
		first, _ := b.graph.made(id)
		for i, out := range b.graph.actions[id].Outputs {
			if !out.Transient || b.artifacts[first+i].wanted {
				continue
			}
			after := max(e, last[first+i]-1)
			p.Entries[after].Dropped += b.outputSize(id, i)
		}
	}
}

// outputSize returns the bytes of an output that is not in the store: the estimate, else
// what the last run gave.
func (b *build) outputSize(id, i int) int64 {
	if size := b.graph.actions[id].Outputs[i].Size; size > 0 {
		return size
	}
	if e := b.actions[id].earlier; i < len(e.sizes) {
		return e.sizes[i]
	}
	return 0
}
