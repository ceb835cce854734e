package model

import (
	"math"

	"bonsai/ops/mlx"
)

// A part is a piece of a layer as a graph: from the state x and the weights that the piece needs, in the order that
// Layer.weights gives them.
type part func(c *Config, x *mlx.Node, w *args) *mlx.Node

// args hands out a graph's arguments in order.
type args struct{ rest []*mlx.Node }

func (a *args) next() *mlx.Node {
	n := a.rest[0]
	a.rest = a.rest[1:]
	return n
}

// maybe returns the next argument if there is one for this config, and nil otherwise.
func (a *args) maybe(present bool) *mlx.Node {
	if !present {
		return nil
	}
	return a.next()
}

// norm is the input of qkv and of gateup, and the last norm: x is [tokens, hidden].
func norm(c *Config, x *mlx.Node, w *args) *mlx.Node {
	return mlx.RMSNorm(x, w.next(), c.Epsilon)
}

// logits is the head: x is [tokens, hidden], the result [tokens, vocab].
func logits(_ *Config, x *mlx.Node, w *args) *mlx.Node { return mlx.MatMul(x, w.next()) }

// dense returns x·w, plus the bias unless that is nil.
func dense(x, w, bias *mlx.Node) *mlx.Node {
	y := mlx.MatMul(x, w)
	if bias == nil {
		return y
	}
	return mlx.AddRow(y, bias)
}

// attention returns the part that gives the input of o, [tokens, heads·dim], from x, [sequences, length, hidden].
func attention(window int) part {
	return func(c *Config, x *mlx.Node, w *args) *mlx.Node {
		dims := x.Dims()
		seqs, length := dims[0], dims[1]
		table := rotary{cos: w.next(), sin: w.next(), epsilon: c.Epsilon, length: length}
		h := norm(c, mlx.Reshape(x, seqs*length, c.Hidden), w)
		p := dense(h, w.next(), w.maybe(c.QKVBias))
		heads := mlx.Reshape(p, seqs, length, (c.Heads+2*c.KVHeads)*c.HeadDim)

		group := c.Heads / c.KVHeads
		q := foldHeads(heads, 0, c.KVHeads, group, c.HeadDim)
		k := foldHeads(heads, c.Heads, c.KVHeads, 1, c.HeadDim)
		v := foldHeads(heads, c.Heads+c.KVHeads, c.KVHeads, 1, c.HeadDim)
		q = table.turn(q, w.maybe(c.QKNorm), 1/math.Sqrt(float64(c.HeadDim)))
		k = table.turn(k, w.maybe(c.QKNorm), 1)
		return unfoldHeads(attend(q, k, v, group, window), seqs)
	}
}

// mid returns the part that gives y = x + attention, [tokens, hidden], from x, [sequences, length, hidden].
func mid(window int) part {
	return func(c *Config, x *mlx.Node, w *args) *mlx.Node {
		a := attention(window)(c, x, w)
		d := x.Dims()
		return mlx.Add(mlx.Reshape(x, d[0]*d[1], d[2]), dense(a, w.next(), w.maybe(c.OutBias)))
	}
}

// gated is the input of down, [tokens, intermediate], from y, [tokens, hidden].
func gated(c *Config, y *mlx.Node, w *args) *mlx.Node {
	h := norm(c, y, w)
	gate := mlx.SiLU(dense(h, w.next(), w.maybe(c.MLPBias)))
	return mlx.Mul(gate, dense(h, w.next(), w.maybe(c.MLPBias)))
}

// out is the state that leaves the layer, [tokens, hidden], from y, [tokens, hidden].
func out(c *Config, y *mlx.Node, w *args) *mlx.Node {
	return mlx.Add(y, dense(gated(c, y, w), w.next(), w.maybe(c.MLPBias)))
}

// foldHeads takes n·group heads, from the first on, out of x, [sequences, length, heads·dim]: the result is
// [n·sequences, group·length, dim], so that the group of query heads that share a key head are rows of one product.
func foldHeads(x *mlx.Node, first, n, group, dim int) *mlx.Node {
	var outer []*mlx.Node
	for j := range n {
		var inner []*mlx.Node
		for g := range group {
			at := (first + j*group + g) * dim
			inner = append(inner, mlx.Slice(x, mlx.Span{}, mlx.Span{}, mlx.Span{From: at, To: at + dim}))
		}
		outer = append(outer, mlx.Concat(1, inner...))
	}
	return mlx.Concat(0, outer...)
}

// unfoldHeads turns [n·sequences, group, length, dim] back to [sequences·length, n·group·dim].
func unfoldHeads(x *mlx.Node, seqs int) *mlx.Node {
	d := x.Dims()
	n, group, length, dim := d[0]/seqs, d[1], d[2], d[3]
	var heads []*mlx.Node
	for j := range n {
		for g := range group {
			h := mlx.Slice(x, mlx.Span{From: j * seqs, To: (j + 1) * seqs}, mlx.Span{From: g, To: g + 1}, mlx.Span{}, mlx.Span{})
			heads = append(heads, mlx.Reshape(h, seqs, length, dim))
		}
	}
	return mlx.Reshape(mlx.Concat(2, heads...), seqs*length, n*group*dim)
}

// A rotary turns queries and keys by their position.
type rotary struct {
	cos, sin *mlx.Node // [length, dim]; sin negated in its first half
	epsilon  float64
	length   int
}

// turn norms the rows of x, [batch, rows, dim], unless weight, [1, dim], is nil, turns each by its position (the
// rows are whole sequences) and multiplies by scale. The weight and the scale go into the tables, which are small.
func (r rotary) turn(x, weight *mlx.Node, scale float64) *mlx.Node {
	shape := x.Dims()
	rows, dim := shape[0]*shape[1], shape[2]
	x = mlx.Reshape(x, rows, dim)
	cos, sin := mlx.Scale(r.cos, scale), mlx.Scale(r.sin, scale)
	if weight != nil {
		x = mlx.RMSNorm(x, nil, r.epsilon)
		cos, sin = mlx.BroadcastMul(cos, weight), mlx.BroadcastMul(sin, swapHalves(weight))
	}
	n := rows / r.length
	turned := mlx.Add(mlx.Mul(x, mlx.Tile(cos, n)), mlx.Mul(swapHalves(x), mlx.Tile(sin, n)))
	return mlx.Reshape(turned, shape...)
}

// swapHalves exchanges the halves of each row of x, [rows, dim].
func swapHalves(x *mlx.Node) *mlx.Node {
	dim := x.Dims()[1]
	return mlx.Concat(1, mlx.Slice(x, mlx.Span{}, mlx.Span{From: dim / 2, To: dim}), mlx.Slice(x, mlx.Span{}, mlx.Span{To: dim / 2}))
}

// attend returns causal attention, [batch, group, length, dim]: q is [batch, group·length, dim], scaled, k and v are
// [batch, length, dim]. It goes through blocks of queries, each with the keys that it may see.
func attend(q, k, v *mlx.Node, group, window int) *mlx.Node {
	d := k.Dims()
	batch, length, dim := d[0], d[1], d[2]
	q = mlx.Reshape(q, batch, group, length, dim)
	keys := mlx.Transpose(k, 0, 2, 1)
	block := queryBlock(length)
	var blocks []*mlx.Node
	for from := 0; from < length; from += block {
		n := min(block, length-from)
		rows := batch * group * n
		seen := mlx.Span{To: from + n}
		if window > 0 {
			seen.From = max(0, from-window+1)
		}
		width := seen.To - seen.From
		some := mlx.Slice(q, mlx.Span{}, mlx.Span{}, mlx.Span{From: from, To: from + n}, mlx.Span{})
		scores := mlx.MatMul(mlx.Reshape(some, batch, group*n, dim), mlx.Slice(keys, mlx.Span{}, mlx.Span{}, seen))
		mask := mlx.Tile(mlx.CausalMask(q, from, n, seen.From, width, window), batch*group)
		p := mlx.Softmax(mlx.Add(mlx.Reshape(scores, rows, width), mask))
		o := mlx.MatMul(mlx.Reshape(p, batch, group*n, width), mlx.Slice(v, mlx.Span{}, seen, mlx.Span{}))
		blocks = append(blocks, mlx.Reshape(o, batch, group, n, dim))
	}
	return mlx.Concat(2, blocks...)
}

// queryBlock returns how many queries of a head attend reads at once: few enough that little of a block of scores is
// masked and all of it stays small, enough that products stay large. It must not depend on the number of sequences:
// then a sequence's bits would depend on its company.
func queryBlock(length int) int {
	const most, scores = 64, 1 << 18
	return min(length, max(16, min(most, scores/length)))
}
