package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dominikbraun/graph"
	"github.com/hashicorp/hcl/v2"

	"bonsai/rules"
)

// order returns all declarations, each after those it refers to and otherwise in the
// order of the source. Cycles are reported, and what is on one counts as failed.
func (l *loader) order() []*decl {
	s := sorter{state: map[*decl]state{}}
	for _, d := range l.all {
		s.visit(d)
	}
	if s.cyclic {
		for _, c := range cycles(l.all) {
			l.add(describeCycle(c))
			for _, d := range c {
				d.fail()
			}
		}
	}
	return s.sorted
}

// A sorter orders declarations by depth first search, in time linear in the references.
type sorter struct {
	state  map[*decl]state
	sorted []*decl
	cyclic bool
}

// state is how far a search has come with a declaration.
type state int

const (
	unseen state = iota
	open         // what it refers to is being visited
	done         // in sorted
)

func (s *sorter) visit(d *decl) {
	switch s.state[d] {
	case done:
		return
	case open:
		s.cyclic = true
		return
	case unseen:
	}
	s.state[d] = open
	for _, u := range d.uses {
		s.visit(u.to)
	}
	s.state[d] = done
	s.sorted = append(s.sorted, d)
}

// cycles returns the sets of declarations that all refer to each other, directly or
// not, each set and all of them in the order of the source.
func cycles(all []*decl) [][]*decl {
	number := map[*decl]int{}
	for i, d := range all {
		number[d] = i + 1 // the search for components mistakes a zero for nothing
	}
	components, err := graph.StronglyConnectedComponents(referenceGraph(all, number))
	if err != nil {
		panic(err) // only for undirected graphs
	}
	var found [][]*decl
	for _, c := range components {
		slices.Sort(c)
		first := all[c[0]-1]
		if len(c) > 1 || refersTo(first, first) {
			found = append(found, pick(all, c))
		}
	}
	slices.SortFunc(found, func(a, b []*decl) int { return cmp.Compare(number[a[0]], number[b[0]]) })
	return found
}

// referenceGraph holds the references between declarations, each named by its number.
func referenceGraph(all []*decl, number map[*decl]int) graph.Graph[int, int] {
	g := graph.New(graph.IntHash, graph.Directed())
	for _, d := range all {
		_ = g.AddVertex(number[d]) // the numbers differ
	}
	for _, d := range all {
		for _, u := range d.uses {
			if to, declared := number[u.to]; declared {
				_ = g.AddEdge(number[d], to) // a second reference to the same changes nothing
			}
		}
	}
	return g
}

func refersTo(d, to *decl) bool {
	return slices.ContainsFunc(d.uses, func(u use) bool { return u.to == to })
}

func pick(all []*decl, numbers []int) []*decl {
	var list []*decl
	for _, n := range numbers {
		list = append(list, all[n-1])
	}
	return list
}

// describeCycle reports a cycle as its chain, with the place of each reference.
func describeCycle(c []*decl) *hcl.Diagnostic {
	chain := shortestCycle(c)
	names := []string{c[0].address()}
	var links strings.Builder
	from := c[0]
	for _, u := range chain {
		fmt.Fprintf(&links, "\n  %s refers to %s at %s", from.address(), u.to.address(), u.at)
		names = append(names, u.to.address())
		from = u.to
	}
	return rules.Mistake(chain[0].at, "Cycle of references", "%s%s\nTake one of these references away.",
		strings.Join(names, " → "), links.String())
}

// shortestCycle returns the references by which the first member of c comes back to itself.
func shortestCycle(c []*decl) []use {
	members := map[*decl]bool{}
	for _, d := range c {
		members[d] = true
	}
	from := map[*decl]link{} // how each member was reached first
	queue := []*decl{c[0]}
	for from[c[0]].by.to == nil {
		d := queue[0]
		queue = queue[1:]
		for _, u := range d.uses {
			if _, seen := from[u.to]; members[u.to] && !seen {
				from[u.to] = link{d, u}
				queue = append(queue, u.to)
			}
		}
	}
	chain := []use{from[c[0]].by}
	for d := from[c[0]].of; d != c[0]; d = from[d].of {
		chain = append(chain, from[d].by)
	}
	slices.Reverse(chain)
	return chain
}

// A link is a reference with whose it is.
type link struct {
	of *decl
	by use
}
