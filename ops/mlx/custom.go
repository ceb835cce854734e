package mlx

import (
	"math"

	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// The pure-Go backend has no custom calls, and its own exponentials are its slowest operation: math.Exp mixes SSE with
// AVX instructions, and where a goroutine was preempted the upper halves of the vector registers are in use, which on
// some Intel processors makes each such mix a hundred times slower until a kernel clears them. That was measured on a
// Sapphire Rapids as 8 and 2000 ns per exponential, with GOEXPERIMENT=simd, whose runtime restores all of the registers.
//
// Its matrix product is the one operation that we may replace, so a product of [m, 1] and [1, 1] whose right side is
// one of these quiet NaN, which no computation makes, stands for an operation on the left side.
const (
	softmaxMark = 0x7fcb0501 // softmax along the m values of each product of a batch
	siluMark    = 0x7fcb0502 // silu of each value
)

// custom computes the operation that a product stands for, and reports whether there is one.
func custom(out, lhs, rhs []float32, batch, m int) bool {
	switch math.Float32bits(rhs[0]) {
	case softmaxMark:
		for b := range batch {
			softmax(out[b*m:][:m], lhs[b*m:][:m])
		}
	case siluMark:
		silu(out, lhs)
	default:
		return false
	}
	return true
}

// hasCustom reports whether x's backend is the one with our product.
func hasCustom(x *graph.Node) bool { return x.Graph().Backend().String() == simplego.BackendName }

// markedProduct is x, of shape [batch, m, 1], times the mark.
func markedProduct(x *graph.Node, mark uint32) *graph.Node {
	one := graph.Const(x.Graph(), [][][]float32{{{math.Float32frombits(mark)}}})
	return matMul(x, graph.BroadcastToDims(one, x.Shape().Dimensions[0], 1, 1))
}

// softmaxNode is softmax along the last axis of x, [rows, n].
func softmaxNode(x *graph.Node) *graph.Node {
	if !hasCustom(x) || x.Rank() != 2 {
		return graph.Softmax(x, -1)
	}
	d := x.Shape().Dimensions
	return graph.InternalFusedOpCaller(
		func() *graph.Node {
			return graph.Reshape(markedProduct(graph.Reshape(x, d[0], d[1], 1), softmaxMark), d...)
		},
		func() *graph.Node { return graph.Softmax(x, -1) })
}

// siluNode is x·σ(x).
func siluNode(x *graph.Node) *graph.Node {
	plain := func() *graph.Node { return graph.Mul(x, graph.Sigmoid(x)) }
	if !hasCustom(x) {
		return plain()
	}
	return graph.InternalFusedOpCaller(
		func() *graph.Node {
			return graph.Reshape(markedProduct(graph.Reshape(x, 1, x.Shape().Size(), 1), siluMark), x.Shape().Dimensions...)
		}, plain)
}

// softmax writes e^x over its sum to dst, of x's length. A value of -∞ gives 0; any NaN makes all NaN.
func softmax(dst, x []float32) {
	most := x[0]
	for _, v := range x {
		most = max(most, v)
	}
	for i, v := range x {
		dst[i] = v - most
	}
	exps(dst)
	sum := 0.0
	for _, v := range dst {
		sum += float64(v)
	}
	inverse := float32(1 / sum)
	for i := range dst {
		dst[i] *= inverse
	}
}

// silu writes x/(1+e^-x) to dst, of x's length.
func silu(dst, x []float32) {
	for i, v := range x {
		dst[i] = -v
	}
	exps(dst)
	for i, v := range x {
		dst[i] = v / (1 + dst[i])
	}
}

// exps replaces each x by e^x, with a relative error below 2e-7; below e^-87 by 0, above e^88.3 by infinity.
// The polynomial is that of Cephes' expf (S. Moshier, netlib.org/cephes).
func exps(x []float32) {
	const (
		least, most = -87, 88.3 // of x, so that powers of two and results are normal numbers
		ln2High     = 0.693359375
		ln2Low      = -2.12194440e-4
	)
	for i, v := range x {
		switch {
		case v < least:
			x[i] = 0
			continue
		case v > most:
			x[i] = float32(math.Inf(1))
			continue
		}
		n := int32(v*math.Log2E+128.5) - 128 // v/ln 2, rounded
		r := v - float32(n)*ln2High - float32(n)*ln2Low
		p := float32(1.9875691500e-4)
		p = p*r + 1.3981999507e-3
		p = p*r + 8.3334519073e-3
		p = p*r + 4.1665795894e-2
		p = p*r + 1.6666665459e-1
		p = p*r + 5.0000001201e-1
		x[i] = (p*r*r + r + 1) * math.Float32frombits(uint32(n+127)<<23)
	}
}
