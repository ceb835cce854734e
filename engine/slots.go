package engine

import (
	"container/heap"
	"math"
)

// slots are what running actions share: workers, places in pools, and memory. Actions
// that are ready wait in a queue for each pool, in the order they were added to the
// graph, so that a build goes through a recipe step by step. For the same reason none
// starts while the store is still asked about an earlier one.
type slots struct {
	workers int   // free
	memory  int64 // free bytes
	pools   map[string]*pool
	asked   ids // actions that the store is asked about, or was
}

// A pool is a limit on how many of some actions run at once.
type pool struct {
	free    int
	waiting ids
}

func newSlots(opt Options) slots {
	s := slots{workers: opt.Workers, memory: opt.Memory, pools: make(map[string]*pool)}
	if s.memory == 0 {
		s.memory = math.MaxInt64
	}
	for name, depth := range opt.Pools {
		s.pools[name] = &pool{free: depth}
	}
	return s
}

func (s *slots) push(poolName string, id int) {
	p := s.pools[poolName]
	if p == nil {
		p = &pool{free: math.MaxInt}
		s.pools[poolName] = p
	}
	heap.Push(&p.waiting, id)
}

// next takes the first action that is ready and has its slots free from the queue. One
// that waits for memory holds back later ones that need memory too, else many small
// ones could keep a big one waiting to the end.
func (s *slots) next(b *build) (id int, ok bool) {
	if s.workers == 0 {
		return 0, false
	}
	starved := math.MaxInt // first action that waits for memory
	var from *pool
	for _, p := range s.pools {
		head, ok := p.waiting.first(b, ready)
		if !ok || p.free == 0 {
			continue
		}
		if peak := b.graph.actions[head].Peak; peak > s.memory {
			starved = min(starved, head)
			continue
		}
		if from == nil || head < from.waiting[0] {
			from = p
		}
	}
	if from == nil {
		return 0, false
	}
	if id = from.waiting[0]; id > starved && b.graph.actions[id].Peak > 0 {
		return 0, false
	}
	if first, ok := s.asked.first(b, asking); ok && first < id {
		return 0, false
	}
	heap.Pop(&from.waiting)
	return id, true
}

// take gives an action its slots; give takes them back.
func (s *slots) take(a *Action) { s.change(a, -1) }
func (s *slots) give(a *Action) { s.change(a, +1) }

func (s *slots) change(a *Action, by int) {
	s.workers += by
	s.memory += int64(by) * a.Peak
	if p := s.pools[a.Pool]; p.free != math.MaxInt {
		p.free += by
	}
}

// ids is a heap of action ids, the smallest first.
type ids []int

// first returns the first action of those that are in state s, and forgets those before
// it that no longer are.
func (h *ids) first(b *build, s state) (id int, ok bool) {
	for len(*h) > 0 {
		if id = (*h)[0]; b.actions[id].state == s {
			return id, true
		}
		heap.Pop(h)
	}
	return 0, false
}

func (h ids) Len() int           { return len(h) }
func (h ids) Less(i, j int) bool { return h[i] < h[j] }
func (h ids) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *ids) Push(x any) { *h = append(*h, x.(int)) }

// Pop implements heap.Interface.
func (h *ids) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
