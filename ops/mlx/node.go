package mlx

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// A Node is a value in a graph that is being built. The functions on nodes panic when shapes do not fit; Func.Call
// turns that into its error.
//
// On the pure-Go backend an operation on one shape costs about 0.5 ns an element, a broadcast one 4.5, a transpose
// 4 to 8, a slice 1, a concatenation 0.4, exp 10 and a product 0.01 ns a multiply-add: hence OuterMul and Tile.
type Node struct{ n *graph.Node }

// Dims returns the node's shape.
func (x *Node) Dims() []int { return slices.Clone(x.n.Shape().Dimensions) }

func unwrap(nodes []*Node) []*graph.Node {
	out := make([]*graph.Node, len(nodes))
	for i, x := range nodes {
		out[i] = x.n
	}
	return out
}

// MatMul returns a·b: [m, k] × [k, n], or [batch, m, k] × [batch, k, n]. It is the only order of axes that the
// pure-Go backend multiplies at full speed.
func MatMul(a, b *Node) *Node {
	x, y := a.Dims(), b.Dims()
	r := len(x)
	if len(y) != r || r < 2 || r > 3 || x[r-1] != y[r-2] || (r == 3 && x[0] != y[0]) {
		panic(fmt.Errorf("product of shapes %v and %v", x, y))
	}
	return &Node{matMul(a.n, b.n)}
}

// Transpose returns x with its axes in the order of perm.
func Transpose(x *Node, perm ...int) *Node { return &Node{graph.TransposeAllAxes(x.n, perm...)} }

// Reshape returns the elements of x, in order, in another shape.
func Reshape(x *Node, dims ...int) *Node { return &Node{graph.Reshape(x.n, dims...)} }

// A Span is the part [From, To) of an axis; the zero Span is all of it.
type Span struct{ From, To int }

// Slice returns the part of x in the spans, one for each axis.
func Slice(x *Node, spans ...Span) *Node {
	specs := make([]graph.SliceAxisSpec, len(spans))
	for i, s := range spans {
		specs[i] = graph.AxisRange(s.From, s.To)
		if s == (Span{}) {
			specs[i] = graph.AxisRange()
		}
	}
	return &Node{graph.Slice(x.n, specs...)}
}

// Concat returns the nodes one after another along axis.
func Concat(axis int, nodes ...*Node) *Node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return &Node{graph.Concatenate(unwrap(nodes), axis)}
}

// Tile returns x, of shape [a, …], n times along its first axis: [n·a, …].
func Tile(x *Node, n int) *Node { return Concat(0, slices.Repeat([]*Node{x}, n)...) }

// Add returns a + b, of one shape.
func Add(a, b *Node) *Node { sameShape("sum", a, b); return &Node{graph.Add(a.n, b.n)} }

// Sub returns a - b, of one shape.
func Sub(a, b *Node) *Node { sameShape("difference", a, b); return &Node{graph.Sub(a.n, b.n)} }

// Mul returns a ⊙ b, of one shape.
func Mul(a, b *Node) *Node { sameShape("product", a, b); return &Node{graph.Mul(a.n, b.n)} }

func sameShape(what string, a, b *Node) {
	if !slices.Equal(a.n.Shape().Dimensions, b.n.Shape().Dimensions) {
		panic(fmt.Errorf("elementwise %s of shapes %v and %v", what, a.Dims(), b.Dims()))
	}
}

// Scale returns x times c.
func Scale(x *Node, c float64) *Node { return &Node{graph.MulScalar(x.n, c)} }

// Shift returns x plus c.
func Shift(x *Node, c float64) *Node { return &Node{graph.AddScalar(x.n, c)} }

// Square returns x ⊙ x.
func Square(x *Node) *Node { return &Node{graph.Square(x.n)} }

// Rsqrt returns 1/√x.
func Rsqrt(x *Node) *Node { return &Node{graph.Rsqrt(x.n)} }

// Exp returns eˣ.
func Exp(x *Node) *Node { return &Node{graph.Exp(x.n)} }

// Round returns x rounded to whole numbers, halves to even. Its gradient is zero.
func Round(x *Node) *Node { return &Node{graph.Round(x.n)} }

// Floor returns the largest whole number not above x. Its gradient is zero.
func Floor(x *Node) *Node { return &Node{graph.Floor(x.n)} }

// Sum returns the sum of all elements, of shape [].
func Sum(x *Node) *Node { return &Node{graph.ReduceAllSum(x.n)} }

// Full returns a tensor of the given shape with all elements c, in the graph of x.
func Full(x *Node, c float64, dims ...int) *Node {
	s := shapes.Make(dtypes.Float32, dims...)
	return &Node{graph.BroadcastToShape(graph.Scalar(x.n.Graph(), dtypes.Float32, c), s)}
}

// Softmax returns eˣ over its sum along the last axis.
func Softmax(x *Node) *Node { return &Node{softmaxNode(x.n)} }

// SiLU returns x/(1+e⁻ˣ).
func SiLU(x *Node) *Node { return &Node{siluNode(x.n)} }

// BroadcastMul returns a ⊙ b where b's shape is a's or has 1 in some axes. It is slow on the pure-Go backend: for
// small tensors.
func BroadcastMul(a, b *Node) *Node { return &Node{graph.Mul(a.n, b.n)} }

// AddRow returns x, [rows, n], with row, [1, n], added to each row.
func AddRow(x, row *Node) *Node {
	return Add(x, MatMul(Full(x, 1, x.n.Shape().Dimensions[0], 1), row))
}

// RMSNorm returns each row of x, [rows, n], over its root mean square, times weight, [1, n]; a nil weight is all ones.
// eps is added to the mean square.
func RMSNorm(x, weight *Node, eps float64) *Node {
	n := x.n.Shape().Dimensions[1]
	if weight == nil {
		weight = Full(x, 1, 1, n)
	}
	sum := MatMul(Square(x), Full(x, 1, n, 1))
	inverse := Rsqrt(Shift(Scale(sum, 1/float64(n)), eps))
	return Mul(x, MatMul(inverse, weight)) // a product of one column and one row instead of two broadcasts
}

// CausalMask returns what is added to attention scores of the queries at positions first, first+1, … to the keys at
// positions from, from+1, …: 0 where a query may look, and -∞ where the key is later than the query or, with a
// window above 0, window or more positions before it. The shape is [queries, keys].
func CausalMask(x *Node, first, queries, from, keys, window int) *Node {
	s := shapes.Make(dtypes.Int32, queries, keys)
	g := x.n.Graph()
	ahead := graph.Sub( // how many positions the key is before the query
		graph.AddScalar(graph.Iota(g, s, 0), float64(first-from)), graph.Iota(g, s, 1))
	ok := graph.GreaterOrEqual(ahead, graph.ZerosLike(ahead))
	if window > 0 {
		ok = graph.LogicalAnd(ok, graph.LessThan(ahead, graph.AddScalar(graph.ZerosLike(ahead), float64(window))))
	}
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, queries, keys))
	return &Node{graph.Where(ok, zero, graph.AddScalar(zero, math.Inf(-1)))}
}

// StopGradient returns x, through which no gradient flows.
func StopGradient(x *Node) *Node { return &Node{graph.StopGradient(x.n)} }

// Gradient returns the derivatives of loss, of shape [], with respect to each of the nodes, in their shapes.
func Gradient(loss *Node, nodes ...*Node) []*Node {
	var out []*Node
	for _, g := range graph.Gradient(loss.n, unwrap(nodes)...) {
		out = append(out, &Node{g})
	}
	return out
}
