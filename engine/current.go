package engine

import (
	"time"

	"bonsai/cache"
)

// A Current is what a build that succeeded came to: what a later one must find again to
// have nothing to run.
type Current struct {
	Sources []string        // paths of the files that it read
	Actions []CurrentAction // those whose results a build with nothing to run looks up
	Wanted  []cache.Output  // blobs that must be there, in the order of what was wanted
}

// A CurrentAction is an action with its result.
type CurrentAction struct {
	Step, Name string
	Key        cache.Key
	Outputs    []cache.Output
	Duration   time.Duration // of its run
	Evicted    time.Time     // as of cache.Result
}

// current returns what the build came to. It answers false if an input of an action got
// another name after the action ran: then the next build has something to do.
func (b *build) current(wanted []cache.Output) (c Current, ok bool) {
	for i := range b.actions {
		r := &b.actions[i]
		if r.stale {
			return Current{}, false
		}
		if r.state == idle || !r.digests && !b.isWanted(i) {
			continue
		}
		if r.state != done || r.hit != yes {
			return Current{}, false
		}
		step, name := b.who(i)
		c.Actions = append(c.Actions, CurrentAction{step, name, r.key, r.result.Outputs, r.result.Duration, r.result.Evicted})
	}
	for _, a := range b.graph.artifacts {
		if a.maker < 0 && b.artifacts[a.id].reached {
			c.Sources = append(c.Sources, a.path)
		}
	}
	c.Wanted = wanted
	return c, true
}

// isWanted reports whether an output of an action was asked for.
func (b *build) isWanted(id int) bool {
	for a, end := b.graph.made(id); a < end; a++ {
		if b.artifacts[a].wanted {
			return true
		}
	}
	return false
}
