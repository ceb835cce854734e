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
		fwhtRef(x[:block], norm)
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

// fwhtRef is the reference of the transform of one block.
func fwhtRef(x []float32, norm float32) {
	for i := range x {
		x[i] *= norm
	}
	for d := 1; d < len(x); d *= 2 {
		for i := 0; i < len(x); i += 2 * d {
			lo, hi := x[i:i+d], x[i+d:i+2*d]
			for j, a := range lo {
				b := hi[j]
				lo[j], hi[j] = a+b, a-b
			}
		}
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
