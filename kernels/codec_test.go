package kernels_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"bonsai/kernels"
)

// vectors is testdata/prism-blocks.json.
type vectors struct {
	Blocks []struct {
		Name    string
		Codes   []int8
		Scale   string   `json:"scale_f16_bits"`
		PTQ1    hexBytes `json:"ptq1_0_hex"`
		PQ2     hexBytes `json:"pq2_0_hex"`
		Decoded []string `json:"decoded_f32_bits"`
	}
	DecodeOnly []struct {
		Name, Type string
		Hex        hexBytes
		Decoded    []float32
	} `json:"decode_only"`
	Trits struct {
		Table []string
	} `json:"ptq1_0_byte_to_trits"`
	QS struct {
		Map map[string]byte
	} `json:"ptq1_0_canonical_qs_bytes"`
	QH struct {
		Map map[string]byte
	} `json:"ptq1_0_canonical_qh_bytes"`
	NonCanonical []int `json:"ptq1_0_non_canonical_bytes"`
	Quantizer    []struct {
		Name  string
		Input []string `json:"input_f32_bits"`
		PTQ1  hexBytes `json:"ptq1_0_hex"`
		PQ2   hexBytes `json:"pq2_0_hex"`
	} `json:"reference_quantizer"`
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func readVectors(t *testing.T) *vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/prism-blocks.json")
	if err != nil {
		t.Fatal(err)
	}
	v := new(vectors)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
	return v
}

func bits(t *testing.T, text string, base, size int) uint64 {
	t.Helper()
	u, err := strconv.ParseUint(text, base, size)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestBlocksBothWays(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if len(v.Blocks) != 29 {
		t.Fatalf("%d blocks, want 29", len(v.Blocks))
	}
	for _, block := range v.Blocks {
		scale := uint16(bits(t, block.Scale, 0, 16))
		checkBlock(t, block.Name, block.PTQ1, block.Codes, scale, kernels.PackPTQ1, kernels.UnpackPTQ1)
		checkBlock(t, block.Name, block.PQ2, block.Codes, scale, kernels.PackPQ2, kernels.UnpackPQ2)
		decoded := make([]float32, len(block.Codes))
		kernels.Dequantize(decoded, block.Codes, []uint16{scale})
		for i, want := range block.Decoded {
			if got := math.Float32bits(decoded[i]); got != uint32(bits(t, want, 16, 32)) {
				t.Errorf("%s: value %d has bits %08x, want %s", block.Name, i, got, want)
			}
		}
	}
}

// checkBlock packs codes and scale, unpacks block, and compares each with the other.
func checkBlock(t *testing.T, name string, block []byte, codes []int8, scale uint16,
	pack func([]byte, []int8, uint16), unpack func([]int8, []byte) uint16,
) {
	t.Helper()
	got := make([]byte, len(block))
	pack(got, codes, scale)
	if !bytes.Equal(got, block) {
		t.Errorf("%s: packed %x, want %x", name, got, block)
	}
	gotCodes := make([]int8, len(codes))
	if s := unpack(gotCodes, block); s != scale || !slices.Equal(gotCodes, codes) {
		t.Errorf("%s: unpacked scale %#04x and %v, want %#04x and %v", name, s, gotCodes, scale, codes)
	}
}

func TestBlocksThatOnlyDecode(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	unpack := map[string]func([]int8, []byte) uint16{"PTQ1_0": kernels.UnpackPTQ1, "PQ2_0": kernels.UnpackPQ2}
	for _, block := range v.DecodeOnly {
		codes, got := make([]int8, kernels.Group), make([]float32, kernels.Group)
		scale := unpack[block.Type](codes, block.Hex)
		kernels.Dequantize(got, codes, []uint16{scale})
		if !slices.Equal(got, block.Decoded) {
			t.Errorf("%s: decoded %v, want %v", block.Name, got, block.Decoded)
		}
	}
	if len(v.DecodeOnly) != 2 {
		t.Errorf("%d blocks, want 2", len(v.DecodeOnly))
	}
}

// TestEveryByteOfTrits puts each of the 256 bytes in each place of a block. Those that are canonical
// for their place come back when the codes are packed again; all keep their codes.
func TestEveryByteOfTrits(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	for b, digits := range v.Trits.Table {
		block := bytes.Repeat([]byte{byte(b)}, kernels.SizePTQ1)
		codes, again := make([]int8, kernels.Group), make([]int8, kernels.Group)
		scale := kernels.UnpackPTQ1(codes, block)
		for e, c := range codes {
			if want := int8(digits[digitOf(e)]-'0') - 1; c != want {
				t.Fatalf("byte %d: code %d is %d, want %d", b, e, c, want)
			}
		}
		packed := make([]byte, kernels.SizePTQ1)
		kernels.PackPTQ1(packed, codes, scale)
		kernels.UnpackPTQ1(again, packed)
		if !slices.Equal(again, codes) {
			t.Errorf("byte %d: packed again, other codes", b)
		}
		if want := v.QS.Map[digits]; packed[0] != want || packed[23] != want {
			t.Errorf("byte %d: packed again as %d and %d, want %d", b, packed[0], packed[23], want)
		}
		if want := v.QH.Map[digits[:4]]; packed[24] != want || packed[25] != want {
			t.Errorf("byte %d: packed again as %d and %d at the end, want %d", b, packed[24], packed[25], want)
		}
		if same := packed[0] == byte(b); same == slices.Contains(v.NonCanonical, b) {
			t.Errorf("byte %d: comes back %v", b, same)
		}
	}
}

// digitOf returns which digit of its byte holds element e.
func digitOf(e int) int {
	switch {
	case e < 80:
		return e / 16
	case e < 120:
		return (e - 80) / 8
	}
	return (e - 120) / 2
}

// TestReferenceQuantizer quantizes as the format's reference writer does, the scale being the maximum,
// and compares the blocks; input that is ternary already must come out of FitGroup as well.
func TestReferenceQuantizer(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t).Quantizer {
		w := make([]float32, len(c.Input))
		for i, text := range c.Input {
			w[i] = math.Float32frombits(uint32(bits(t, text, 16, 32)))
		}
		codes, scale := quantizeToMaximum(w)
		checkBlock(t, c.Name, c.PTQ1, codes, scale, kernels.PackPTQ1, kernels.UnpackPTQ1)
		checkBlock(t, c.Name, c.PQ2, codes, scale, kernels.PackPQ2, kernels.UnpackPQ2)
		if c.Name == "gaussian" || c.Name == "half_tie" {
			continue // not ternary
		}
		fit := make([]int8, len(w))
		s, err := kernels.FitGroup(fit, w)
		if err != nil || s != scale || !slices.Equal(fit, codes) {
			t.Errorf("%s: FitGroup gives scale %#04x, error %v and %v, want %#04x and %v", c.Name, s, err, fit, scale, codes)
		}
	}
}

func quantizeToMaximum(w []float32) (codes []int8, scale uint16) {
	top := float32(0)
	for _, x := range w {
		top = max(top, float32(math.Abs(float64(x))))
	}
	codes = make([]int8, len(w))
	for i, x := range w {
		if top > 0 {
			codes[i] = int8(math.Round(float64(x / top)))
		}
	}
	return codes, kernels.FloatToHalf(top)
}

func TestPackCodes(t *testing.T) {
	t.Parallel()
	packed := make([]byte, 3)
	kernels.PackCodes(packed, []int8{-1, 0, 1, 2, 0, 0, 0, 0, 2, -1, -1, -1})
	if want := []byte{0b11100100, 0b01010101, 0b00000011}; !bytes.Equal(packed, want) {
		t.Errorf("packed %08b, want %08b", packed, want)
	}
}

func TestCodecsPanicOnWrongLengths(t *testing.T) {
	t.Parallel()
	c, b, f := make([]int8, 128), make([]byte, 34), make([]float32, 256)
	for i, call := range []func(){
		func() { kernels.PackPTQ1(b, c, 0) },
		func() { kernels.PackPTQ1(b[:28], c[1:], 0) },
		func() { kernels.UnpackPTQ1(c, b[:27]) },
		func() { kernels.PackPQ2(b[:28], c, 0) },
		func() { kernels.UnpackPQ2(c[1:], b) },
		func() { kernels.PackCodes(b, c) },
		func() { kernels.UnpackCodes(c, b) },
		func() { kernels.Dequantize(f, c, make([]uint16, 1)) },
		func() { kernels.Dequantize(f[:128], c, make([]uint16, 2)) },
		func() { kernels.F16ToF32(f, b) },
		func() { kernels.F32ToF16(b, f) },
		func() { kernels.BF16ToF32(f, b) },
		func() { kernels.F32ToBF16(b, f) },
	} {
		if !panics(call) {
			t.Errorf("call %d: no panic", i)
		}
	}
}

func panics(f func()) (p bool) {
	defer func() { p = recover() != nil }()
	f()
	return false
}

// FuzzPTQ1 checks that any block keeps its codes and scale when it is packed again, and that packing
// once more changes nothing.
func FuzzPTQ1(f *testing.F) {
	fuzzBlocks(f, kernels.SizePTQ1, kernels.PackPTQ1, kernels.UnpackPTQ1, false)
}

// FuzzPQ2 checks that any block comes back byte for byte.
func FuzzPQ2(f *testing.F) {
	fuzzBlocks(f, kernels.SizePQ2, kernels.PackPQ2, kernels.UnpackPQ2, true)
}

func fuzzBlocks(f *testing.F, size int, pack func([]byte, []int8, uint16), unpack func([]int8, []byte) uint16, exact bool) {
	f.Add(bytes.Repeat([]byte{1, 0x7f, 0xff}, size))
	f.Fuzz(func(t *testing.T, block []byte) {
		if len(block) < size {
			return
		}
		block = block[:size]
		codes, again := make([]int8, kernels.Group), make([]int8, kernels.Group)
		scale := unpack(codes, block)
		packed := make([]byte, size)
		pack(packed, codes, scale)
		if s := unpack(again, packed); s != scale || !slices.Equal(again, codes) {
			t.Errorf("%x packed again is %x: other codes or scale", block, packed)
		}
		if exact && !bytes.Equal(packed, block) {
			t.Errorf("%x packed again is %x", block, packed)
		}
	})
}
