//go:build goexperiment.simd && amd64

package kernels

import "simd/archsimd"

func simdFWHTs() []impl[fwhtFunc] {
	return []impl[fwhtFunc]{
		{"avx2", hasAVX2(), fwhtAVX2},
		{"avx512", hasAVX512(), fwhtAVX512},
	}
}

// Within a vector, distance d pairs element i with i^d. The permuted vector plus the vector with
// signs, negative where i&d is set, has a+b and a−b in their places. Multiplying by a sign is
// exact, so that the fused product rounds as the plain sum does.
//
// fwhtSigns and fwhtSwaps hold signs and places for the distances 1, 2, 4 and 8; their first
// halves serve vectors of eight.
var fwhtSigns, fwhtSwaps = fwhtTables()

func fwhtTables() (signs [4][16]float32, swaps [4][16]uint32) {
	for k := range 4 {
		for i := range 16 {
			d := 1 << k
			swaps[k][i] = uint32(i ^ d)
			signs[k][i] = 1
			if i&d != 0 {
				signs[k][i] = -1
			}
		}
	}
	return signs, swaps
}

func fwhtAVX512(x []float32, norm float32) {
	if len(x) < 16 {
		fwhtGo(x, norm)
		return
	}
	within16(x, norm)
	d := 16
	for ; 4*d <= len(x); d *= 4 {
		for i := 0; i < len(x); i += 4 * d {
			quad16(x[i:i+d], x[i+d:i+2*d], x[i+2*d:i+3*d], x[i+3*d:i+4*d])
		}
	}
	archsimd.ClearAVXUpperBits()
	if d < len(x) {
		pair(x[:d], x[d:])
	}
}

// within16 scales x and does the distances 1 to 8.
func within16(x []float32, norm float32) {
	var sign [4]archsimd.Float32x16
	var swap [4]archsimd.Uint32x16
	for k := range 4 {
		sign[k], swap[k] = archsimd.LoadFloat32x16(&fwhtSigns[k]), archsimd.LoadUint32x16(&fwhtSwaps[k])
	}
	s0, s1, s2, s3 := sign[0], sign[1], sign[2], sign[3]
	p0, p1, p2, p3 := swap[0], swap[1], swap[2], swap[3]
	n := archsimd.BroadcastFloat32x16(norm)
	for ; len(x) >= 16; x = x[16:] {
		v := archsimd.LoadFloat32x16((*[16]float32)(x)).Mul(n)
		v = v.MulAdd(s0, v.Permute(p0))
		v = v.MulAdd(s1, v.Permute(p1))
		v = v.MulAdd(s2, v.Permute(p2))
		v = v.MulAdd(s3, v.Permute(p3))
		v.Store((*[16]float32)(x))
	}
}

// quad16 is quad for runs of a multiple of 16.
func quad16(x0, x1, x2, x3 []float32) {
	for len(x0) >= 16 && len(x1) >= 16 && len(x2) >= 16 && len(x3) >= 16 {
		p0, p1, p2, p3 := (*[16]float32)(x0), (*[16]float32)(x1), (*[16]float32)(x2), (*[16]float32)(x3)
		a, b := archsimd.LoadFloat32x16(p0), archsimd.LoadFloat32x16(p1)
		c, d := archsimd.LoadFloat32x16(p2), archsimd.LoadFloat32x16(p3)
		a, b, c, d = a.Add(b), a.Sub(b), c.Add(d), c.Sub(d)
		a.Add(c).Store(p0)
		b.Add(d).Store(p1)
		a.Sub(c).Store(p2)
		b.Sub(d).Store(p3)
		x0, x1, x2, x3 = x0[16:], x1[16:], x2[16:], x3[16:]
	}
}

func fwhtAVX2(x []float32, norm float32) {
	if len(x) < 8 {
		fwhtGo(x, norm)
		return
	}
	within8(x, norm)
	d := 8
	for ; 4*d <= len(x); d *= 4 {
		for i := 0; i < len(x); i += 4 * d {
			quad8(x[i:i+d], x[i+d:i+2*d], x[i+2*d:i+3*d], x[i+3*d:i+4*d])
		}
	}
	archsimd.ClearAVXUpperBits()
	if d < len(x) {
		pair(x[:d], x[d:])
	}
}

// within8 scales x and does the distances 1 to 4.
func within8(x []float32, norm float32) {
	var sign [3]archsimd.Float32x8
	var swap [3]archsimd.Uint32x8
	for k := range 3 {
		sign[k] = archsimd.LoadFloat32x8((*[8]float32)(fwhtSigns[k][:]))
		swap[k] = archsimd.LoadUint32x8((*[8]uint32)(fwhtSwaps[k][:]))
	}
	s0, s1, s2 := sign[0], sign[1], sign[2]
	p0, p1, p2 := swap[0], swap[1], swap[2]
	n := archsimd.BroadcastFloat32x8(norm)
	for ; len(x) >= 8; x = x[8:] {
		v := archsimd.LoadFloat32x8((*[8]float32)(x)).Mul(n)
		v = v.MulAdd(s0, v.Permute(p0))
		v = v.MulAdd(s1, v.Permute(p1))
		v = v.MulAdd(s2, v.Permute(p2))
		v.Store((*[8]float32)(x))
	}
}

// quad8 is quad for runs of a multiple of 8.
func quad8(x0, x1, x2, x3 []float32) {
	for len(x0) >= 8 && len(x1) >= 8 && len(x2) >= 8 && len(x3) >= 8 {
		p0, p1, p2, p3 := (*[8]float32)(x0), (*[8]float32)(x1), (*[8]float32)(x2), (*[8]float32)(x3)
		a, b := archsimd.LoadFloat32x8(p0), archsimd.LoadFloat32x8(p1)
		c, d := archsimd.LoadFloat32x8(p2), archsimd.LoadFloat32x8(p3)
		a, b, c, d = a.Add(b), a.Sub(b), c.Add(d), c.Sub(d)
		a.Add(c).Store(p0)
		b.Add(d).Store(p1)
		a.Sub(c).Store(p2)
		b.Sub(d).Store(p3)
		x0, x1, x2, x3 = x0[8:], x1[8:], x2[8:], x3[8:]
	}
}
