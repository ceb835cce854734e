package kernels

import (
	"encoding/binary"
	"unsafe"
)

// Codecs that treat eight codes, or eight bytes, as one word.

const (
	ones  = 0x0101010101010101 // 1 in each byte of a word
	evens = 0x00ff00ff00ff00ff // bytes 0, 2, 4 and 6 of a word
)

// asBytes returns the memory of codes.
func asBytes(codes []int8) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(codes))), len(codes))
}

// tritBytes holds, for each number of five base-3 digits, its byte: the least b with b·243/256
// not below it.
var tritBytes = func() (t [243]byte) {
	for q := range t {
		t[q] = byte((256*q + 242) / 243)
	}
	return t
}()

func packTritsWords(dst []byte, codes []int8) {
	c := (*[Group]byte)(asBytes(codes))
	checkTernary(c)
	packTritWord(dst[0:8], c[0:], 16)
	packTritWord(dst[8:16], c[8:], 16)
	packTritWord(dst[16:24], c[80:], 8)
	for i := range 2 {
		q := 0
		for digit := range 4 {
			q = 3*q + int(codes[120+2*digit+i]) + 1
		}
		dst[24+i] = tritBytes[3*q]
	}
}

// checkTernary panics unless each code is −1, 0 or 1.
func checkTernary(codes *[Group]byte) {
	bad := uint64(0)
	for i := 0; i < Group; i += 8 {
		x := binary.LittleEndian.Uint64(codes[i:])
		negative := x >> 7 & ones
		// All bits but the last equal the sign, and a negative code is odd.
		bad |= (x^negative*0xff)&(0xfe*ones) | negative&^x
	}
	if bad != 0 {
		panic("kernels: code is not ternary")
	}
}

// packTritWord writes eight bytes; digits of a byte are step codes apart.
func packTritWord(dst, codes []byte, step int) {
	var even, odd uint64 // numbers of the bytes, in 16 bits each
	for digit := range 5 {
		x := binary.LittleEndian.Uint64(codes[digit*step:])
		x = (x&(3*ones) + ones) & (3 * ones)
		even, odd = 3*even+x&evens, 3*odd+x>>8&evens
	}
	for i := range 4 {
		dst[2*i] = tritBytes[uint8(even>>(16*i))]
		dst[2*i+1] = tritBytes[uint8(odd>>(16*i))]
	}
}

func unpackTritsWords(codes []int8, src []byte) {
	c := (*[Group]byte)(asBytes(codes))
	unpackTritWord(c[0:], 16, binary.LittleEndian.Uint64(src[0:]))
	unpackTritWord(c[8:], 16, binary.LittleEndian.Uint64(src[8:]))
	unpackTritWord(c[80:], 8, binary.LittleEndian.Uint64(src[16:]))
	b0, b1 := src[24], src[25]
	for i := 120; i < Group; i += 2 {
		codes[i], codes[i+1] = int8(uint16(b0)*3>>8)-1, int8(uint16(b1)*3>>8)-1
		b0, b1 = 3*b0, 3*b1
	}
}

// unpackTritWord writes the digits of eight bytes, those of a byte step codes apart.
func unpackTritWord(codes []byte, step int, bytes uint64) {
	even, odd := bytes&evens, bytes>>8&evens
	for digit := range 5 {
		even, odd = 3*even, 3*odd
		d := even>>8&evens | odd&^evens
		binary.LittleEndian.PutUint64(codes[digit*step:], minusOne(d))
		even, odd = even&evens, odd&evens
	}
}

// minusOne subtracts 1 from each byte of x, all of them under 128.
func minusOne(x uint64) uint64 { return (x | 0x80*ones) - ones ^ 0x80*ones }

func packFieldsWords(dst []byte, codes []int8) {
	c := asBytes(codes)
	for ; len(dst) >= 2 && len(c) >= 8; dst, c = dst[2:], c[8:] {
		x := binary.LittleEndian.Uint64(c)
		x = (x&(3*ones) + ones) & (3 * ones)
		x |= x >> 6  // two fields in every second byte
		x |= x >> 12 // four in every fourth
		dst[0], dst[1] = byte(x), byte(x>>32)
	}
	packFieldsRef(dst, codes[len(codes)-len(c):])
}

func unpackFieldsWords(codes []int8, src []byte) {
	c := asBytes(codes)
	for ; len(src) >= 2 && len(c) >= 8; src, c = src[2:], c[8:] {
		x := uint64(src[0]) | uint64(src[1])<<32
		x = (x | x<<12) & 0x000f000f000f000f
		x = (x | x<<6) & (3 * ones)
		binary.LittleEndian.PutUint64(c, minusOne(x))
	}
	unpackFieldsRef(codes[len(codes)-len(c):], src)
}
