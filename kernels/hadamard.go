package kernels

import (
	"fmt"
	"math"
)

// Hadamard replaces every consecutive block of x by its normalized Sylvester-Hadamard
// transform: y[i] = Σ_j (−1)^popcount(i&j) x[j] / √block. It is its own inverse.
//
//	x      length a multiple of block
//	block  a power of two, 1 or more
//
// The values are scaled first, then added and subtracted at distances 1, 2, 4 and so on: the
// order of the runtime that reads the files (formats.md 1.6). All twins keep it, and agree bit for bit.
func Hadamard(x []float32, block int) {
	wantMultiple("Hadamard input", len(x), block)
	if block&(block-1) != 0 {
		panic(fmt.Sprintf("kernels: Hadamard block %d is not a power of two", block))
	}
	norm := float32(1 / math.Sqrt(float64(block)))
	for ; len(x) > 0; x = x[block:] {
		fwht(x[:block], norm)
	}
}

// Rotate replaces every row x of a matrix by H(s⊙x). For a row of weights that is (w⊙s)H, the
// same formula, as H is symmetric.
//
//	x      [rows, len(signs)], row by row
//	signs  each 1 or −1; length a multiple of block
func Rotate(x []float32, signs []int8, block int) {
	wantMultiple("Rotate input", len(x), len(signs))
	wantMultiple("Rotate signs", len(signs), block)
	flipRows(x, signs)
	Hadamard(x, block)
}

// Unrotate replaces every row x of a matrix by s⊙(Hx) and so undoes Rotate.
func Unrotate(x []float32, signs []int8, block int) {
	wantMultiple("Unrotate input", len(x), len(signs))
	wantMultiple("Unrotate signs", len(signs), block)
	Hadamard(x, block)
	flipRows(x, signs)
}

// RotateGram replaces h by R h Rᵀ in place, where R is the matrix of Rotate.
//
//	h  [len(signs), len(signs)], symmetric
func RotateGram(h []float32, signs []int8, block int) {
	n := len(signs)
	wantLen("RotateGram input", len(h), n*n)
	Rotate(h, signs, block)
	transpose(h, n)
	Rotate(h, signs, block)
}

// flipRows multiplies every row of x by signs.
func flipRows(x []float32, signs []int8) {
	for ; len(x) > 0; x = x[len(signs):] {
		flip(x[:len(signs)], signs)
	}
}

// flip multiplies x by signs.
func flip(x []float32, signs []int8) {
	for i, s := range signs {
		// The sign bit of s moves to that of x: no multiplication, and NaN keeps its payload.
		x[i] = math.Float32frombits(math.Float32bits(x[i]) ^ uint32(s)&0x80000000)
	}
}

// A fwhtFunc scales x, whose length is a power of two, by norm and transforms it.
type fwhtFunc func(x []float32, norm float32)

// fwhts lists the transforms of one block, the reference first.
func fwhts() []impl[fwhtFunc] {
	return append([]impl[fwhtFunc]{{"ref", true, fwhtRef}, {"go", true, fwhtGo}}, simdFWHTs()...)
}

// fwht is the transform in use.
var fwht = last(fwhts()).f

// fwhtRef is the reference of the transform of one block.
func fwhtRef(x []float32, norm float32) {
	for i := range x {
		x[i] *= norm
	}
	for d := 1; d < len(x); d *= 2 {
		for i := range x {
			if i&d == 0 {
				x[i], x[i+d] = x[i]+x[i+d], x[i]-x[i+d]
			}
		}
	}
}

// fwhtGo passes over x once for every two distances.
func fwhtGo(x []float32, norm float32) {
	for i := range x {
		x[i] *= norm
	}
	d := 1
	for ; 4*d <= len(x); d *= 4 {
		for i := 0; i < len(x); i += 4 * d {
			quad(x[i:i+d], x[i+d:i+2*d], x[i+2*d:i+3*d], x[i+3*d:i+4*d])
		}
	}
	if d < len(x) {
		pair(x[:d], x[d:])
	}
}

// quad does two distances at once for four runs of equal length.
func quad(x0, x1, x2, x3 []float32) {
	x1, x2, x3 = x1[:len(x0)], x2[:len(x0)], x3[:len(x0)]
	for i, a := range x0 {
		b, c, d := x1[i], x2[i], x3[i]
		a, b, c, d = a+b, a-b, c+d, c-d
		x0[i], x1[i], x2[i], x3[i] = a+c, b+d, a-c, b-d
	}
}

// pair does one distance for two runs of equal length.
func pair(x0, x1 []float32) {
	x1 = x1[:len(x0)]
	for i, a := range x0 {
		x0[i], x1[i] = a+x1[i], a-x1[i]
	}
}

// transpose replaces the square matrix h of n rows by its transpose, tile by tile.
func transpose[F float32 | float64](h []F, n int) {
	const tile = 32
	for i := 0; i < n; i += tile {
		for j := i; j < n; j += tile {
			transposeTile(h, n, i, min(i+tile, n), j, min(j+tile, n))
		}
	}
}

// transposeTile swaps rows [i0, i1) of columns [j0, j1) with their mirror image.
func transposeTile[F float32 | float64](h []F, n, i0, i1, j0, j1 int) {
	for i := i0; i < i1; i++ {
		for j := max(j0, i+1); j < j1; j++ {
			h[i*n+j], h[j*n+i] = h[j*n+i], h[i*n+j]
		}
	}
}
