package engine

// none is the root of an action that is a hit.
const none = -1

// roots returns for each action that is no hit the cause it follows: itself if it is one,
// else the cause of the first such action that it reads from, or, if it only runs because
// its bytes are needed again, that of the action which needs them. Others have none.
func (b *build) roots(status []Status, cause []bool) []int {
	roots := make([]int, len(b.actions))
	runs := func(id int) bool { return id >= 0 && (status[id] == Run || status[id] == Maybe) }
	for id := range roots {
		roots[id] = none
		if !runs(id) {
			continue
		}
		if cause[id] {
			roots[id] = id
			continue
		}
		for _, in := range b.graph.actions[id].In {
			if in.maker >= 0 && roots[in.maker] != none {
				roots[id] = roots[in.maker]
				break
			}
		}
	}
	for id := len(roots) - 1; id >= 0; id-- {
		for _, in := range b.graph.actions[id].In {
			if roots[id] != none && runs(in.maker) && roots[in.maker] == none {
				roots[in.maker] = roots[id]
			}
		}
	}
	return roots
}
