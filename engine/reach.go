package engine

// A Set is a set of artifacts of one graph.
type Set struct{ in []bool }

// Has reports whether a is in the set.
func (s Set) Has(a *Artifact) bool { return s.in[a.id] }

// Behind returns what any of some artifacts depends on, directly or not, and these
// artifacts themselves.
func (g *Graph) Behind(some []*Artifact) Set {
	s := g.set(some)
	for id := len(g.actions) - 1; id >= 0; id-- {
		for a, end := g.made(id); a < end; a++ {
			if !s.in[a] {
				continue
			}
			for _, in := range g.actions[id].In {
				s.in[in.id] = true
			}
			break
		}
	}
	return s
}

// After returns what depends on any of some artifacts, directly or not, and these
// artifacts themselves.
func (g *Graph) After(some []*Artifact) Set {
	s := g.set(some)
	for id := range g.actions {
		for _, in := range g.actions[id].In {
			if !s.in[in.id] {
				continue
			}
			for a, end := g.made(id); a < end; a++ {
				s.in[a] = true
			}
			break
		}
	}
	return s
}

// set returns the set of some artifacts of g.
func (g *Graph) set(some []*Artifact) Set {
	s := Set{in: make([]bool, len(g.artifacts))}
	for _, a := range some {
		s.in[a.id] = true
	}
	return s
}
