package kernels

import (
	"encoding/binary"
	"math"
)

// HalfToFloat returns the value of the IEEE 754 binary16 number with the given bits. It is
// exact; a signalling NaN becomes quiet, as in github.com/x448/float16.
func HalfToFloat(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	mag := uint32(h&0x7fff) << 13
	switch {
	case mag > 0x7c00<<13:
		return math.Float32frombits(sign | 0x7fc00000 | mag)
	case mag == 0x7c00<<13:
		return math.Float32frombits(sign | 0x7f800000)
	}
	// The exponent bias differs by 112; the product also makes subnormals normal.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(mag)*0x1p112))
}

// FloatToHalf returns the bits of the binary16 number nearest to x, ties to even. Magnitudes
// from 65520 on become infinite, those up to 2^-25 become zero, and NaN stays NaN and quiet.
func FloatToHalf(x float32) uint16 {
	u := math.Float32bits(x)
	sign := uint16(u >> 16 & 0x8000)
	u &= 0x7fffffff
	switch {
	case u > 0x7f800000:
		return sign | 0x7e00 | uint16(u>>13&0x1ff)
	case u >= 0x47800000: // 65536 and more
		return sign | 0x7c00
	case u < 0x38800000: // below 2^-14: subnormal
		// Adding 1/2 leaves the value in units of 2^-24, rounded to even, in the low bits.
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-0x3f000000)
	}
	u += 0xfff + u>>13&1
	return sign | uint16(u>>13-112<<10)
}

// F16ToF32 decodes src, little-endian binary16, into dst. len(src) is 2·len(dst).
func F16ToF32(dst []float32, src []byte) {
	wantLen("F16ToF32 source", len(src), 2*len(dst))
	for i := range dst {
		dst[i] = HalfToFloat(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// F32ToF16 encodes src into dst as FloatToHalf does, little-endian. len(dst) is 2·len(src).
// It does not check the range: a caller that must not write infinities looks first.
func F32ToF16(dst []byte, src []float32) {
	wantLen("F32ToF16 destination", len(dst), 2*len(src))
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], FloatToHalf(x))
	}
}

// BF16ToF32 decodes src, little-endian bfloat16, into dst. len(src) is 2·len(dst). It is exact.
func BF16ToF32(dst []float32, src []byte) {
	wantLen("BF16ToF32 source", len(src), 2*len(dst))
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}

// F32ToBF16 encodes src into dst, rounded to the nearest bfloat16, ties to even. NaN stays
// NaN and becomes quiet. len(dst) is 2·len(src).
func F32ToBF16(dst []byte, src []float32) {
	wantLen("F32ToBF16 destination", len(dst), 2*len(src))
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], bfloat(x))
	}
}

// bfloat returns the bits of the bfloat16 number nearest to x, ties to even.
func bfloat(x float32) uint16 {
	u := math.Float32bits(x)
	if u&0x7fffffff > 0x7f800000 {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}
