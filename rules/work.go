package rules

import "bonsai/engine"

// work is what an action is expected to take. It is not in its key.
type work struct {
	seconds float64
	peak    int64 // bytes of memory
}

// Pool is the pool that all actions run in. It has room for one: each uses every CPU, or
// the one GPU.
const Pool = "compute"

// add adds an action of the step and returns its outputs.
func (x *Expansion) add(name string, op engine.Op, w work, in []*engine.Artifact, out ...engine.Output) []*engine.Artifact {
	return x.Graph.Add(engine.Action{
		Step: x.Step, Name: name, Op: op, In: in, Outputs: out, Pool: Pool, Peak: w.peak, Cost: w.seconds,
	})
}

// work returns what that many floating-point operations and bytes at once are.
func (s Settings) work(flops float64, peak int64) work {
	if s.Rate <= 0 {
		return work{peak: peak}
	}
	return work{seconds: flops / s.Rate, peak: peak}
}
