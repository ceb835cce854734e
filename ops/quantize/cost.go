package quantize

import (
	"bonsai/kernels"
	"bonsai/ops/model"
)

// Peak and Cost of the ops are closed forms for a planner: the most bytes that Run holds
// beside mapped files, and the floating-point operations it does. Costs count products of
// matrices, factors and what GPTQ does; the rest is small beside them. length is the tokens
// of a sequence, tokens those of the calibration.

// Peak returns the most bytes that Run holds.
func (r Rotation) Peak() int64 {
	var n int64
	for _, w := range r.Widths {
		n += 2 * int64(w)
	}
	return n
}

// Peak returns the most bytes that Run holds: a sequence of states, and all tokens.
func (e Embed) Peak(tokens, length int) int64 {
	return 8*int64(tokens) + 8*int64(length)*int64(e.Hidden)
}

// Peak returns the most bytes that Run holds.
func (h Hessian) Peak(length int) int64 {
	return h.on.partPeak(&h.Config, h.Group, length) + gramPeak(h.width())
}

// Cost returns the floating-point operations of Run.
func (h Hessian) Cost(tokens, length int) float64 {
	return float64(tokens) * (h.Config.FLOPs(h.Group, h.Layer, length) + gramCost(h.width()))
}

// width returns the length of the group's input vectors, 0 if there is no such group.
func (h Hessian) width() int {
	g, err := groupOf(&h.Config, h.Layer, h.Group)
	if err != nil {
		return 0
	}
	return g.Width
}

// Peak returns the most bytes that Run holds.
func (h FinalHessian) Peak(length int) int64 {
	return h.on.partPeak(&h.Config, model.PartFinal, length) + gramPeak(h.Config.Hidden)
}

// Cost returns the floating-point operations of Run.
func (h FinalHessian) Cost(tokens int) float64 { return float64(tokens) * gramCost(h.Config.Hidden) }

// Peak returns the most bytes that Run holds.
func (h GainHessian) Peak() int64 { return 4 * int64(h.Width) * int64(h.Width) }

// Peak returns the most bytes that Run holds.
func (n Inputs) Peak(length int) int64 { return n.on.partPeak(&n.Config, n.part(), length) }

// Cost returns the floating-point operations of Run.
func (n Inputs) Cost(tokens, length int) float64 {
	return float64(tokens) * n.Config.FLOPs(n.part(), n.Layer, length)
}

func (n Inputs) part() string {
	if n.Half == Out {
		return model.PartOut
	}
	return model.PartMid
}

// Peak returns the most bytes that Run holds: the Hessian, its factor, twice that size
// where it has to be computed in float64, some rows and their errors, and all codes.
func (c Codes) Peak() int64 {
	width, rows := int64(c.width()), int64(c.rows())
	held := min(rows, chunkRows)
	return 16*width*width + 20*held*width + rows*width/4 + rows*width/kernels.Group*2
}

// Cost returns the floating-point operations of Run.
func (c Codes) Cost() float64 {
	width, rows := float64(c.width()), float64(c.rows())
	energy := 2 * rows * width * width
	if c.Method == RTN {
		return 2 * energy
	}
	return width*width*width/3 + energy + rows*width*width
}

// partPeak returns the bytes that a batch takes on its way through a part of a layer.
func (m machine) partPeak(c *model.Config, part string, length int) int64 {
	calls := m.parallel()
	return c.Peak(part, m.sequences(length)*length, length, calls)
}

// gramPeak returns the bytes of a gram: its sum in float64, the mean in float32 or a panel
// of products, and the rows that wait.
func gramPeak(width int) int64 {
	w := int64(width)
	return 12*w*w + 4*gramRows*w
}

// gramCost returns the operations for one vector: half the products, by symmetry.
func gramCost(width int) float64 { return float64(width) * float64(width) }
