package kernels

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomCodes returns n codes in [−1, top].
func randomCodes(seed uint64, n, top int) []int8 {
	r := rand.New(rand.NewPCG(seed, 2))
	c := make([]int8, n)
	for i := range c {
		c[i] = int8(r.IntN(top+2) - 1)
	}
	return c
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestCodecTwins checks that all codecs of a kind write and read the same.
func TestCodecTwins(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		compareCodecs(t, tritCodecs(), randomCodes(seed, Group, 1), randomBytes(seed, SizePTQ1-2))
		n := int(seed)
		compareCodecs(t, fieldCodecs(), randomCodes(seed, 4*n, 2), randomBytes(seed, n))
	}
}

func compareCodecs(t *testing.T, list []impl[codec], codes []int8, packed []byte) {
	t.Helper()
	wantBytes, wantCodes := make([]byte, len(packed)), make([]int8, len(codes))
	list[0].f.pack(wantBytes, codes)
	list[0].f.unpack(wantCodes, packed)
	for _, impl := range list[1:] {
		b, c := make([]byte, len(packed)), make([]int8, len(codes))
		impl.f.pack(b, codes)
		impl.f.unpack(c, packed)
		if !bytes.Equal(b, wantBytes) {
			t.Fatalf("%s packs %v as %x, want %x", impl.name, codes, b, wantBytes)
		}
		if !slices.Equal(c, wantCodes) {
			t.Fatalf("%s unpacks %x as %v, want %v", impl.name, packed, c, wantCodes)
		}
	}
}

// TestTritCodecsRefuse checks every value that is not a ternary code, in every place.
func TestTritCodecsRefuse(t *testing.T) {
	t.Parallel()
	for _, impl := range tritCodecs() {
		for v := -128; v < 128; v++ {
			codes := make([]int8, Group)
			codes[(v+128)%Group] = int8(v)
			ok := !panics(func() { impl.f.pack(make([]byte, SizePTQ1-2), codes) })
			if want := v >= -1 && v <= 1; ok != want {
				t.Errorf("%s: code %d accepted: %v, want %v", impl.name, v, ok, want)
			}
		}
	}
}

func BenchmarkCodec(b *testing.B) {
	for kind, list := range map[string][]impl[codec]{"trits": tritCodecs(), "fields": fieldCodecs()} {
		size := map[string]int{"trits": SizePTQ1 - 2, "fields": SizePQ2 - 2}[kind]
		for _, impl := range list {
			codes, packed := randomCodes(1, Group, 1), make([]byte, size)
			b.Run(fmt.Sprintf("kind=%s/op=pack/impl=%s/n=%d", kind, impl.name, Group), func(b *testing.B) {
				b.SetBytes(Group)
				for b.Loop() {
					impl.f.pack(packed, codes)
				}
			})
			b.Run(fmt.Sprintf("kind=%s/op=unpack/impl=%s/n=%d", kind, impl.name, Group), func(b *testing.B) {
				b.SetBytes(Group)
				for b.Loop() {
					impl.f.unpack(codes, packed)
				}
			})
		}
	}
}
