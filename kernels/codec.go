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
	trits.pack(dst[:SizePTQ1-2], codes)
	binary.LittleEndian.PutUint16(dst[SizePTQ1-2:], scale)
}

// UnpackPTQ1 reads a PTQ1_0 block of 28 bytes into 128 codes, each −1, 0 or 1, and returns
// the binary16 bits of its scale. All bytes decode, also the 13 that PackPTQ1 never writes.
func UnpackPTQ1(codes []int8, src []byte) (scale uint16) {
	wantLen("UnpackPTQ1 codes", len(codes), Group)
	wantLen("UnpackPTQ1 source", len(src), SizePTQ1)
	trits.unpack(codes, src[:SizePTQ1-2])
	return binary.LittleEndian.Uint16(src[SizePTQ1-2:])
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
	fields.pack(dst, codes)
}

// UnpackCodes reads what PackCodes wrote: 4·len(src) codes in [−1, 2].
func UnpackCodes(codes []int8, src []byte) {
	wantLen("UnpackCodes codes", len(codes), 4*len(src))
	fields.unpack(codes, src)
}

// Dequantize writes code times scale.
//
//	dst     [rows, cols] or one row; cols a multiple of Group
//	codes   as dst; in [−1, 2]
//	scales  binary16 bits, one for each Group consecutive codes
func Dequantize(dst []float32, codes []int8, scales []uint16) {
	wantLen("Dequantize codes", len(codes), len(dst))
	wantLen("Dequantize destination", len(dst), Group*len(scales))
	for i, h := range scales {
		s := HalfToFloat(h)
		values := [4]float32{-1 * s, 0 * s, s, 2 * s}
		group := dst[i*Group : (i+1)*Group]
		for j, c := range codes[i*Group : (i+1)*Group] {
			group[j] = values[(c+1)&3]
		}
	}
}

// A codec packs codes without their scale and unpacks them.
type codec struct {
	pack   func(dst []byte, codes []int8)
	unpack func(codes []int8, src []byte)
}

// tritCodecs lists the codecs of the 26 bytes of a PTQ1_0 block, the reference first.
func tritCodecs() []impl[codec] {
	return []impl[codec]{
		{"ref", true, codec{packTritsRef, unpackTritsRef}},
		{"words", true, codec{packTritsWords, unpackTritsWords}},
	}
}

// fieldCodecs lists the codecs of PackCodes, the reference first.
func fieldCodecs() []impl[codec] {
	return []impl[codec]{
		{"ref", true, codec{packFieldsRef, unpackFieldsRef}},
		{"words", true, codec{packFieldsWords, unpackFieldsWords}},
	}
}

// The codecs in use.
var (
	trits  = last(tritCodecs()).f
	fields = last(fieldCodecs()).f
)

func packTritsRef(dst []byte, codes []int8) {
	for i := range dst {
		q, n := 0, 1
		for digit := range 5 {
			c, ok := tritCode(codes, i, digit)
			if c < -1 || c > 1 {
				panic("kernels: code is not ternary")
			}
			q *= 3
			if ok {
				q += int(c) + 1
			}
			n *= 3
		}
		dst[i] = byte((256*q + n - 1) / n)
	}
}

func unpackTritsRef(codes []int8, src []byte) {
	for i, b := range src {
		for digit := range 5 {
			if e, ok := tritPlace(i, digit); ok {
				codes[e] = int8(uint16(b)*3>>8) - 1
			}
			b *= 3
		}
	}
}

// tritCode returns the code for a digit of byte i, if there is one.
func tritCode(codes []int8, i, digit int) (c int8, ok bool) {
	e, ok := tritPlace(i, digit)
	if !ok {
		return 0, false
	}
	return codes[e], true
}

// tritPlace returns the element that a digit of byte i holds, digit 0 being the most significant.
// Bytes 24 and 25 have no digit 4.
func tritPlace(i, digit int) (element int, ok bool) {
	switch {
	case i < 16:
		return 16*digit + i, true
	case i < 24:
		return 80 + 8*digit + i - 16, true
	}
	return 120 + 2*digit + i - 24, digit < 4
}

func packFieldsRef(dst []byte, codes []int8) {
	for i := range dst {
		for j, c := range codes[4*i : 4*i+4] {
			dst[i] = dst[i]&^(3<<(2*j)) | byte(c+1)&3<<(2*j)
		}
	}
}

func unpackFieldsRef(codes []int8, src []byte) {
	for i := range codes {
		codes[i] = int8(src[i/4]>>(2*(i%4))&3) - 1
	}
}
