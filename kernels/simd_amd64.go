//go:build goexperiment.simd && amd64

package kernels

import (
	"simd/archsimd"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasAVX2 and hasAVX512 say what this CPU can run, in the sets that archsimd relies on.
func hasAVX2() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

func hasAVX512() bool {
	x := &cpu.X86
	return hasAVX2() && x.HasAVX512F && x.HasAVX512CD && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL
}

func simdTiles32() []impl[tile[float32]] {
	return []impl[tile[float32]]{
		{"avx2", hasAVX2(), tile[float32]{16, mul32AVX2, add32AVX2}},
		{"avx512", hasAVX512(), tile[float32]{32, mul32AVX512, add32AVX512}},
	}
}

func simdTiles64() []impl[tile[float64]] {
	return []impl[tile[float64]]{
		{"avx2", hasAVX2(), tile[float64]{8, mul64AVX2, addGo[float64]}},
		{"avx512", hasAVX512(), tile[float64]{16, mul64AVX512, addGo[float64]}},
	}
}

// Each micro-kernel below has eight sums: the compiler spills more than that, at a quarter of
// the speed. Bounds are checked once, for the last elements, and then left to pointers.

// checkTile panics if a micro-kernel of the given width would read or write out of bounds.
func checkTile[F float](k int, a []F, ars, acs int, b, c []F, ldc, cols int) {
	_, _, _ = a[3*ars+(k-1)*acs], b[k*cols-1], c[3*ldc+cols-1]
}

func mul32AVX512(k int, a []float32, ars, acs int, b, c []float32, ldc int) {
	checkTile(k, a, ars, acs, b, c, ldc, 32)
	var c00, c01, c10, c11, c20, c21, c30, c31 archsimd.Float32x16
	pa, pb := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0])
	sa, s2, s3, next := uintptr(4*ars), uintptr(8*ars), uintptr(12*ars), uintptr(4*acs)
	for ; k > 0; k-- {
		b0 := archsimd.LoadFloat32x16((*[16]float32)(pb))
		b1 := archsimd.LoadFloat32x16((*[16]float32)(unsafe.Add(pb, 64)))
		x := archsimd.BroadcastFloat32x16(*(*float32)(pa))
		c00 = x.MulAdd(b0, c00)
		c01 = x.MulAdd(b1, c01)
		x = archsimd.BroadcastFloat32x16(*(*float32)(unsafe.Add(pa, sa)))
		c10 = x.MulAdd(b0, c10)
		c11 = x.MulAdd(b1, c11)
		x = archsimd.BroadcastFloat32x16(*(*float32)(unsafe.Add(pa, s2)))
		c20 = x.MulAdd(b0, c20)
		c21 = x.MulAdd(b1, c21)
		x = archsimd.BroadcastFloat32x16(*(*float32)(unsafe.Add(pa, s3)))
		c30 = x.MulAdd(b0, c30)
		c31 = x.MulAdd(b1, c31)
		pa = unsafe.Add(pa, next)
		pb = unsafe.Add(pb, 128)
	}
	put32x16(c, c00, c01)
	put32x16(c[ldc:], c10, c11)
	put32x16(c[2*ldc:], c20, c21)
	put32x16(c[3*ldc:], c30, c31)
	archsimd.ClearAVXUpperBits()
}

// put32x16 adds x and y to the first 32 elements of c.
func put32x16(c []float32, x, y archsimd.Float32x16) {
	p, q := (*[16]float32)(c), (*[16]float32)(c[16:])
	archsimd.LoadFloat32x16(p).Add(x).Store(p)
	archsimd.LoadFloat32x16(q).Add(y).Store(q)
}

func mul32AVX2(k int, a []float32, ars, acs int, b, c []float32, ldc int) {
	checkTile(k, a, ars, acs, b, c, ldc, 16)
	var c00, c01, c10, c11, c20, c21, c30, c31 archsimd.Float32x8
	pa, pb := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0])
	sa, s2, s3, next := uintptr(4*ars), uintptr(8*ars), uintptr(12*ars), uintptr(4*acs)
	for ; k > 0; k-- {
		b0 := archsimd.LoadFloat32x8((*[8]float32)(pb))
		b1 := archsimd.LoadFloat32x8((*[8]float32)(unsafe.Add(pb, 32)))
		x := archsimd.BroadcastFloat32x8(*(*float32)(pa))
		c00 = x.MulAdd(b0, c00)
		c01 = x.MulAdd(b1, c01)
		x = archsimd.BroadcastFloat32x8(*(*float32)(unsafe.Add(pa, sa)))
		c10 = x.MulAdd(b0, c10)
		c11 = x.MulAdd(b1, c11)
		x = archsimd.BroadcastFloat32x8(*(*float32)(unsafe.Add(pa, s2)))
		c20 = x.MulAdd(b0, c20)
		c21 = x.MulAdd(b1, c21)
		x = archsimd.BroadcastFloat32x8(*(*float32)(unsafe.Add(pa, s3)))
		c30 = x.MulAdd(b0, c30)
		c31 = x.MulAdd(b1, c31)
		pa = unsafe.Add(pa, next)
		pb = unsafe.Add(pb, 64)
	}
	put32x8(c, c00, c01)
	put32x8(c[ldc:], c10, c11)
	put32x8(c[2*ldc:], c20, c21)
	put32x8(c[3*ldc:], c30, c31)
	archsimd.ClearAVXUpperBits()
}

// put32x8 adds x and y to the first 16 elements of c.
func put32x8(c []float32, x, y archsimd.Float32x8) {
	p, q := (*[8]float32)(c), (*[8]float32)(c[8:])
	archsimd.LoadFloat32x8(p).Add(x).Store(p)
	archsimd.LoadFloat32x8(q).Add(y).Store(q)
}

func mul64AVX512(k int, a []float64, ars, acs int, b, c []float64, ldc int) {
	checkTile(k, a, ars, acs, b, c, ldc, 16)
	var c00, c01, c10, c11, c20, c21, c30, c31 archsimd.Float64x8
	pa, pb := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0])
	sa, s2, s3, next := uintptr(8*ars), uintptr(16*ars), uintptr(24*ars), uintptr(8*acs)
	for ; k > 0; k-- {
		b0 := archsimd.LoadFloat64x8((*[8]float64)(pb))
		b1 := archsimd.LoadFloat64x8((*[8]float64)(unsafe.Add(pb, 64)))
		x := archsimd.BroadcastFloat64x8(*(*float64)(pa))
		c00 = x.MulAdd(b0, c00)
		c01 = x.MulAdd(b1, c01)
		x = archsimd.BroadcastFloat64x8(*(*float64)(unsafe.Add(pa, sa)))
		c10 = x.MulAdd(b0, c10)
		c11 = x.MulAdd(b1, c11)
		x = archsimd.BroadcastFloat64x8(*(*float64)(unsafe.Add(pa, s2)))
		c20 = x.MulAdd(b0, c20)
		c21 = x.MulAdd(b1, c21)
		x = archsimd.BroadcastFloat64x8(*(*float64)(unsafe.Add(pa, s3)))
		c30 = x.MulAdd(b0, c30)
		c31 = x.MulAdd(b1, c31)
		pa = unsafe.Add(pa, next)
		pb = unsafe.Add(pb, 128)
	}
	put64x8(c, c00, c01)
	put64x8(c[ldc:], c10, c11)
	put64x8(c[2*ldc:], c20, c21)
	put64x8(c[3*ldc:], c30, c31)
	archsimd.ClearAVXUpperBits()
}

// put64x8 adds x and y to the first 16 elements of c.
func put64x8(c []float64, x, y archsimd.Float64x8) {
	p, q := (*[8]float64)(c), (*[8]float64)(c[8:])
	archsimd.LoadFloat64x8(p).Add(x).Store(p)
	archsimd.LoadFloat64x8(q).Add(y).Store(q)
}

func mul64AVX2(k int, a []float64, ars, acs int, b, c []float64, ldc int) {
	checkTile(k, a, ars, acs, b, c, ldc, 8)
	var c00, c01, c10, c11, c20, c21, c30, c31 archsimd.Float64x4
	pa, pb := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0])
	sa, s2, s3, next := uintptr(8*ars), uintptr(16*ars), uintptr(24*ars), uintptr(8*acs)
	for ; k > 0; k-- {
		b0 := archsimd.LoadFloat64x4((*[4]float64)(pb))
		b1 := archsimd.LoadFloat64x4((*[4]float64)(unsafe.Add(pb, 32)))
		x := archsimd.BroadcastFloat64x4(*(*float64)(pa))
		c00 = x.MulAdd(b0, c00)
		c01 = x.MulAdd(b1, c01)
		x = archsimd.BroadcastFloat64x4(*(*float64)(unsafe.Add(pa, sa)))
		c10 = x.MulAdd(b0, c10)
		c11 = x.MulAdd(b1, c11)
		x = archsimd.BroadcastFloat64x4(*(*float64)(unsafe.Add(pa, s2)))
		c20 = x.MulAdd(b0, c20)
		c21 = x.MulAdd(b1, c21)
		x = archsimd.BroadcastFloat64x4(*(*float64)(unsafe.Add(pa, s3)))
		c30 = x.MulAdd(b0, c30)
		c31 = x.MulAdd(b1, c31)
		pa = unsafe.Add(pa, next)
		pb = unsafe.Add(pb, 64)
	}
	put64x4(c, c00, c01)
	put64x4(c[ldc:], c10, c11)
	put64x4(c[2*ldc:], c20, c21)
	put64x4(c[3*ldc:], c30, c31)
	archsimd.ClearAVXUpperBits()
}

// put64x4 adds x and y to the first 8 elements of c.
func put64x4(c []float64, x, y archsimd.Float64x4) {
	p, q := (*[4]float64)(c), (*[4]float64)(c[4:])
	archsimd.LoadFloat64x4(p).Add(x).Store(p)
	archsimd.LoadFloat64x4(q).Add(y).Store(q)
}

// add32AVX512 is addGo on 16 columns at a time.
func add32AVX512(y []float32, ldy int, e *[4]float32, x []float32) {
	e0, e1 := archsimd.BroadcastFloat32x16(e[0]), archsimd.BroadcastFloat32x16(e[1])
	e2, e3 := archsimd.BroadcastFloat32x16(e[2]), archsimd.BroadcastFloat32x16(e[3])
	y0, y1, y2, y3 := y[:len(x)], y[ldy:][:len(x)], y[2*ldy:][:len(x)], y[3*ldy:][:len(x)]
	for i := 0; i+16 <= len(x); i += 16 {
		v := archsimd.LoadFloat32x16((*[16]float32)(x[i:]))
		p0, p1, p2, p3 := (*[16]float32)(y0[i:]), (*[16]float32)(y1[i:]), (*[16]float32)(y2[i:]), (*[16]float32)(y3[i:])
		v.MulAdd(e0, archsimd.LoadFloat32x16(p0)).Store(p0)
		v.MulAdd(e1, archsimd.LoadFloat32x16(p1)).Store(p1)
		v.MulAdd(e2, archsimd.LoadFloat32x16(p2)).Store(p2)
		v.MulAdd(e3, archsimd.LoadFloat32x16(p3)).Store(p3)
	}
	archsimd.ClearAVXUpperBits()
}

// add32AVX2 is addGo on 8 columns at a time.
func add32AVX2(y []float32, ldy int, e *[4]float32, x []float32) {
	e0, e1 := archsimd.BroadcastFloat32x8(e[0]), archsimd.BroadcastFloat32x8(e[1])
	e2, e3 := archsimd.BroadcastFloat32x8(e[2]), archsimd.BroadcastFloat32x8(e[3])
	y0, y1, y2, y3 := y[:len(x)], y[ldy:][:len(x)], y[2*ldy:][:len(x)], y[3*ldy:][:len(x)]
	for i := 0; i+8 <= len(x); i += 8 {
		v := archsimd.LoadFloat32x8((*[8]float32)(x[i:]))
		p0, p1, p2, p3 := (*[8]float32)(y0[i:]), (*[8]float32)(y1[i:]), (*[8]float32)(y2[i:]), (*[8]float32)(y3[i:])
		v.MulAdd(e0, archsimd.LoadFloat32x8(p0)).Store(p0)
		v.MulAdd(e1, archsimd.LoadFloat32x8(p1)).Store(p1)
		v.MulAdd(e2, archsimd.LoadFloat32x8(p2)).Store(p2)
		v.MulAdd(e3, archsimd.LoadFloat32x8(p3)).Store(p3)
	}
	archsimd.ClearAVXUpperBits()
}
