package rules

import (
	"runtime"

	"bonsai/engine"
	"bonsai/ops/model"
	"bonsai/ops/quantize"
)

// work is what an action is expected to take. It is not in its key.
type work struct {
	seconds float64
	peak    int64 // bytes of memory
}

// add adds an action of the step and returns its outputs.
func (x *Expansion) add(name string, op engine.Op, w work, in []*engine.Artifact, out ...engine.Output) []*engine.Artifact {
	return x.Graph.Add(engine.Action{
		Step: x.Step, Name: name, Op: op, In: in, Outputs: out, Pool: Pool, Peak: w.peak, Cost: w.seconds,
	})
}

// Pool is the pool that all actions run in. It has room for one: each uses every CPU, or
// the one GPU.
const Pool = "compute"

// seconds returns how long that many floating-point operations take.
func (s Settings) seconds(flops float64) float64 {
	if s.Rate <= 0 {
		return 0
	}
	return flops / s.Rate
}

// threads returns how many threads a kernel runs on.
func (s Settings) threads() int {
	if s.Threads > 0 {
		return s.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// batch is how many tokens go through a layer at once (quantize, evaluate).
const batch = 2048

// partPeak returns the bytes that a part of a layer takes while tokens stream through it.
func (s Settings) partPeak(c *model.Config, part string, length int) int64 {
	return c.Peak(part, max(batch, length), length, s.threads())
}

func (l *layers) embedWork() work {
	return work{peak: l.w.Checkpoint.Config.Peak(model.PartEmbed, 1<<16, l.w.length, 1)}
}

// hessianWork is the forward pass to a group's inputs and the sum of their outer
// products, held in float64 and twice in float32.
func (l *layers) hessianWork(layer int, g model.Group) work {
	c, s := l.w.Checkpoint.Config, l.settings
	width := int64(g.Width)
	flops := c.FLOPs(g.Name, layer, l.w.length) + float64(width*width)
	return work{
		seconds: s.seconds(flops * float64(l.w.tokens)),
		peak:    s.partPeak(c, g.Name, l.w.length) + gramPeak(width),
	}
}

// gramPeak returns the bytes of a running sum of outer products.
func gramPeak(width int64) int64 { return 16*width*width + 4*batch*width }

// passWork is half a layer's forward pass.
func (l *layers) passWork(layer int, half string) work {
	c, s := l.w.Checkpoint.Config, l.settings
	part := model.PartMid
	if half == quantize.Out {
		part = model.PartOut
	}
	return work{
		seconds: s.seconds(c.FLOPs(part, layer, l.w.length) * float64(l.w.tokens)),
		peak:    s.partPeak(c, part, l.w.length),
	}
}

func (w *Weights) finalWork(s Settings) work {
	c := w.Checkpoint.Config
	width := int64(c.Hidden)
	return work{
		seconds: s.seconds(float64(width*width) * float64(w.tokens)),
		peak:    s.partPeak(c, model.PartFinal, w.length) + gramPeak(width),
	}
}

func gainWork(width int) work { return work{peak: gramPeak(int64(width))} }

// chunkRows is how many rows quantize holds in float32 at a time.
const chunkRows = 8192

// codesWork is the factor of the Hessian, the columns' corrections and the error
// (quant-methods: 1c), with the Hessian held three times and a chunk of rows four times.
func codesWork(s Settings, tensors []model.Tensor) work {
	width, rows, most := float64(tensors[0].Shape[1]), 0.0, int64(0)
	for _, t := range tensors {
		rows += float64(t.Shape[0])
		most = max(most, min(t.Shape[0], chunkRows))
	}
	return work{
		seconds: s.seconds(width*width*width/3 + 3*rows*width*width),
		peak:    12*int64(width*width) + 16*most*int64(width),
	}
}
