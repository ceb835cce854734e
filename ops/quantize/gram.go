package quantize

import (
	"fmt"

	"bonsai/kernels"
)

// gramRows is how many rows are summed in float32 before they join the float64 sum. Rows
// are gathered to exactly that many, so that the size of a batch does not change a bit.
const gramRows = 2048

// A gram is the running sum of x xᵀ over rotated input vectors x.
type gram struct {
	signs   []int8
	block   int
	threads int

	sum     []float64 // [width, width]
	pending []float32 // [<gramRows, width]
	rows    int
}

func newGram(s *Signs, width, threads int) (*gram, error) {
	signs, err := s.Of(width)
	if err != nil {
		return nil, err
	}
	return &gram{
		signs: signs, block: s.Block, threads: threads,
		sum: make([]float64, width*width), pending: make([]float32, 0, gramRows*width),
	}, nil
}

// add adds the rows of x, [rows, width], which it rotates in place.
func (g *gram) add(x []float32) error {
	width := len(g.signs)
	if len(x)%width != 0 {
		return fmt.Errorf("%d inputs for width %d", len(x), width)
	}
	kernels.Rotate(x, g.signs, g.block)
	g.rows += len(x) / width
	for len(x) > 0 {
		n := min(len(x), cap(g.pending)-len(g.pending))
		g.pending = append(g.pending, x[:n]...)
		x = x[n:]
		if len(g.pending) == cap(g.pending) {
			g.flush()
		}
	}
	return nil
}

func (g *gram) flush() {
	width := len(g.signs)
	kernels.AddGram(g.sum, g.pending, len(g.pending)/width, width, g.threads)
	g.pending = g.pending[:0]
}

// mean returns E[x xᵀ], [width, width]. The sum is given up.
func (g *gram) mean() ([]float32, error) {
	if g.rows == 0 {
		return nil, fmt.Errorf("no tokens")
	}
	if len(g.pending) > 0 {
		g.flush()
	}
	h := make([]float32, len(g.sum))
	for i, v := range g.sum {
		h[i] = float32(v / float64(g.rows))
	}
	g.sum = nil
	return h, checkHessian(h, len(g.signs))
}

// checkHessian returns an error unless h, [n, n], is finite, with no negative number on its
// diagonal and a trace above 0.
func checkHessian(h []float32, n int) error {
	if i := kernels.NotFinite(h); i >= 0 {
		return fmt.Errorf("Hessian is %v at row %d, column %d", h[i], i/n, i%n)
	}
	var trace float64
	for i := range n {
		d := h[i*n+i]
		if d < 0 {
			return fmt.Errorf("Hessian has %v on its diagonal, at %d", d, i)
		}
		trace += float64(d)
	}
	if !(trace > 0) {
		return fmt.Errorf("Hessian is zero: every input vector was zero")
	}
	return nil
}
