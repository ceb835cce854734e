package mlx

import (
	"reflect"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// install changes what GoMLX keeps once for the process: the matrix product of its pure-Go backend, and gradients.
var install = sync.OnceFunc(func() {
	registerGEMM()
	registerGradients()
})

// registerGradients replaces the gradient of the matrix product, which GoMLX computes from a tensor of m×n×k elements,
// and adds those it lacks.
func registerGradients() {
	builtin := graph.VJPRegistration[graph.NodeTypeDotGeneral]
	graph.VJPRegistration[graph.NodeTypeDotGeneral] = func(n *graph.Node, v []*graph.Node, s shapes.Shape) []*graph.Node {
		if !isMatMul(n) {
			return builtin(n, v, s)
		}
		lhs, rhs := n.Inputs()[0], n.Inputs()[1]
		return []*graph.Node{matMul(v[0], swapLast(rhs)), matMul(swapLast(lhs), v[0])}
	}
	graph.VJPRegistration[graph.NodeTypeRsqrt] = func(n *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
		cube := graph.Mul(n, graph.Mul(n, n)) // d x^-½ = -½ x^-³⁄²
		return []*graph.Node{graph.Mul(v[0], graph.MulScalar(cube, -0.5))}
	}
	flat := func(n *graph.Node, _ []*graph.Node, _ shapes.Shape) []*graph.Node {
		return []*graph.Node{graph.ZerosLike(n.Inputs()[0])}
	}
	graph.VJPRegistration[graph.NodeTypeRound] = flat
	graph.VJPRegistration[graph.NodeTypeFloor] = flat
}

// matMul is [m, k] × [k, n] or [b, m, k] × [b, k, n].
func matMul(lhs, rhs *graph.Node) *graph.Node {
	if lhs.Rank() == 2 {
		return graph.DotGeneral(lhs, []int{1}, nil, rhs, []int{0}, nil)
	}
	return graph.DotGeneral(lhs, []int{2}, []int{0}, rhs, []int{1}, []int{0})
}

// swapLast transposes the last two axes.
func swapLast(x *graph.Node) *graph.Node {
	if x.Rank() == 2 {
		return graph.TransposeAllAxes(x, 1, 0)
	}
	return graph.TransposeAllAxes(x, 0, 2, 1)
}

// isMatMul reports whether a DotGeneral has the axes that matMul gives it. GoMLX does not export them.
func isMatMul(n *graph.Node) bool {
	in := n.Inputs()
	rank := in[0].Rank()
	if rank != in[1].Rank() || (rank != 2 && rank != 3) {
		return false
	}
	params := reflect.ValueOf(n).Elem().FieldByName("inputs").Elem().Elem()
	is := func(field string, want ...int) bool {
		axes := params.FieldByName(field)
		if axes.Len() != len(want) {
			return false
		}
		for i, w := range want {
			if axes.Index(i).Int() != int64(w) {
				return false
			}
		}
		return true
	}
	batch := []int{0}[:rank-2]
	return is("lhsContractingAxes", rank-1) && is("rhsContractingAxes", rank-2) &&
		is("lhsBatchAxes", batch...) && is("rhsBatchAxes", batch...)
}
