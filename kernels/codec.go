package kernels

import "encoding/binary"

// Group is the number of weights that share a scale: the 128 of both block formats.
const Group = 128

// Bytes of a block of Group weights.
const (
	SizePTQ1 = 28 // PTQ1_0: 24 bytes of five trits, 2 of four, the scale
	SizePQ2  = 34 // PQ2_0: the scale, 32 bytes of four 2-bit fields
)

// PackPTQ1 writes a PTQ1_0 block (formats.md 1.3).
//
//	dst    28 bytes
//	codes  128 codes, each −1, 0 or 1; it panics on others
//	scale  binary16 bits
func PackPTQ1(dst []byte, codes []int8, scale uint16) {
	wantLen("PackPTQ1 destination", len(dst), SizePTQ1)
	wantLen("PackPTQ1 codes", len(codes), Group)
	for i := range 16 {
		dst[i] = packTrits(codes[i:], 16, 5)
	}
	for i := range 8 {
		dst[16+i] = packTrits(codes[80+i:], 8, 5)
	}
	for i := range 2 {
		dst[24+i] = packTrits(codes[120+i:], 2, 4)
	}
	binary.LittleEndian.PutUint16(dst[26:], scale)
}

// packTrits returns the byte of n digits, the codes at distance step, most significant first.
func packTrits(codes []int8, step, n int) byte {
	q := 0
	for i := range 5 {
		q *= 3
		if i < n {
			q += tritOf(codes[i*step])
		}
	}
	return byte((256*q + 242) / 243)
}

// tritOf returns the digit of a code.
func tritOf(c int8) int {
	if c < -1 || c > 1 {
		panic("kernels: code out of range")
	}
	return int(c) + 1
}

// UnpackPTQ1 reads a PTQ1_0 block of 28 bytes into 128 codes, each −1, 0 or 1, and returns
// the binary16 bits of its scale. All bytes decode, also the 13 that PackPTQ1 never writes.
func UnpackPTQ1(codes []int8, src []byte) (scale uint16) {
	wantLen("UnpackPTQ1 codes", len(codes), Group)
	wantLen("UnpackPTQ1 source", len(src), SizePTQ1)
	for i, b := range src[:16] {
		unpackTrits(codes[i:], 16, 5, b)
	}
	for i, b := range src[16:24] {
		unpackTrits(codes[80+i:], 8, 5, b)
	}
	for i, b := range src[24:26] {
		unpackTrits(codes[120+i:], 2, 4, b)
	}
	return binary.LittleEndian.Uint16(src[26:])
}

// unpackTrits writes the first n digits of b to codes at distance step.
func unpackTrits(codes []int8, step, n int, b byte) {
	for i := range n {
		codes[i*step] = int8(uint16(b)*3>>8) - 1
		b *= 3
	}
}

// PackPQ2 writes a PQ2_0 block (formats.md 1.2).
//
//	dst    34 bytes
//	codes  128 codes in [−1, 2]
//	scale  binary16 bits
func PackPQ2(dst []byte, codes []int8, scale uint16) {
	wantLen("PackPQ2 destination", len(dst), SizePQ2)
	wantLen("PackPQ2 codes", len(codes), Group)
	binary.LittleEndian.PutUint16(dst, scale)
	PackCodes(dst[2:], codes)
}

// UnpackPQ2 reads a PQ2_0 block of 34 bytes into 128 codes and returns the binary16 bits of
// its scale. A code may be 2, which no ternary model holds: callers that need −1, 0, 1 check.
func UnpackPQ2(codes []int8, src []byte) (scale uint16) {
	wantLen("UnpackPQ2 codes", len(codes), Group)
	wantLen("UnpackPQ2 source", len(src), SizePQ2)
	UnpackCodes(codes, src[2:])
	return binary.LittleEndian.Uint16(src)
}

// PackCodes writes four codes a byte, low bits first, as fields of code+1.
//
//	dst    len(codes)/4 bytes
//	codes  in [−1, 2]; of others only the low bits are kept
func PackCodes(dst []byte, codes []int8) {
	wantLen("PackCodes codes", len(codes), 4*len(dst))
	for i := range dst {
		c := codes[4*i : 4*i+4]
		dst[i] = byte(c[0]+1)&3 | byte(c[1]+1)&3<<2 | byte(c[2]+1)&3<<4 | byte(c[3]+1)<<6
	}
}

// UnpackCodes reads what PackCodes wrote: 4·len(src) codes in [−1, 2].
func UnpackCodes(codes []int8, src []byte) {
	wantLen("UnpackCodes codes", len(codes), 4*len(src))
	for i, b := range src {
		c := codes[4*i : 4*i+4]
		c[0], c[1], c[2], c[3] = int8(b&3)-1, int8(b>>2&3)-1, int8(b>>4&3)-1, int8(b>>6)-1
	}
}

// Dequantize writes code times scale.
//
//	dst     [rows, cols] or one row; cols a multiple of Group
//	codes   as dst
//	scales  binary16 bits, one for each Group consecutive codes
func Dequantize(dst []float32, codes []int8, scales []uint16) {
	wantLen("Dequantize codes", len(codes), len(dst))
	wantLen("Dequantize destination", len(dst), Group*len(scales))
	for i, s := range scales {
		scale(dst[i*Group:(i+1)*Group], codes[i*Group:(i+1)*Group], HalfToFloat(s))
	}
}

// scale writes codes times s to dst.
func scale(dst []float32, codes []int8, s float32) {
	for i, c := range codes {
		dst[i] = float32(c) * s
	}
}
