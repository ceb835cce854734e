package quantize_test

import (
	"strings"
	"testing"

	"bonsai/ops/opstest"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
)

func TestRotationManifest(t *testing.T) {
	opstest.CheckManifest(t, quantize.Rotation{Block: 256, Seed: 7, Widths: []int{256, 768}})
}

func TestRotationIsTheSameForEver(t *testing.T) {
	f := open(t, run(t, quantize.Rotation{Block: 256, Seed: 7, Widths: []int{256, 768}}))
	if got := f.Metadata()["block"]; got != "256" {
		t.Errorf("block %q, want 256", got)
	}
	const want = "--+---+-++-+---+++--++--+++-++++"
	if got := signsText(t, f, "signs.256")[:len(want)]; got != want {
		t.Errorf("signs of seed 7, width 256 start with\n%s, want\n%s", got, want)
	}
}

func TestRotationOfAWidthDependsOnSeedAndWidthAlone(t *testing.T) {
	one := open(t, run(t, quantize.Rotation{Block: 128, Seed: 7, Widths: []int{768}}))
	two := open(t, run(t, quantize.Rotation{Block: 256, Seed: 7, Widths: []int{256, 768}}))
	other := open(t, run(t, quantize.Rotation{Block: 256, Seed: 8, Widths: []int{768}}))
	signs := signsText(t, one, "signs.768")
	if signs != signsText(t, two, "signs.768") {
		t.Error("another width changed the signs")
	}
	if signs == signsText(t, other, "signs.768") {
		t.Error("another seed did not change the signs")
	}
	if n := strings.Count(signs, "+"); n < 300 || n > 468 {
		t.Errorf("%d of 768 signs are positive", n)
	}
}

func signsText(t *testing.T, f *safetensors.File, name string) string {
	t.Helper()
	signs, err := f.Int8s(name)
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len(signs))
	for i, s := range signs {
		text[i] = "-?+"[s+1]
	}
	return string(text)
}

func TestDefaultBlock(t *testing.T) {
	for name, test := range map[string]struct {
		widths []int
		want   int
	}{
		"Qwen3-8B":      {[]int{4096, 12288}, 4096},
		"Llama-3.1-8B":  {[]int{4096, 14336}, 2048},
		"27B":           {[]int{5120, 6144, 17408}, 1024},
		"Qwen2.5-0.5B":  {[]int{896, 4864}, 128},
		"Muse Glimmer":  {[]int{6656, 19968}, 512},
		"tiny-qwen3":    {[]int{256, 768}, 256},
		"above the cap": {[]int{8192}, 4096},
	} {
		if got, err := quantize.DefaultBlock(test.widths...); got != test.want || err != nil {
			t.Errorf("%s: DefaultBlock(%v) = %d, %v, want %d", name, test.widths, got, err, test.want)
		}
	}
	_, err := quantize.DefaultBlock(576, 128, 960)
	wantError(t, err, "576", "960", "128")
	_, err = quantize.DefaultBlock()
	wantError(t, err, "no input widths")
}

func TestRotationRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		op   quantize.Rotation
		want string
	}{
		"a block that does not divide a width": {quantize.Rotation{Block: 512, Widths: []int{256, 1024}}, "512 does not divide input width 256"},
		"a block that is no power of two":      {quantize.Rotation{Block: 384, Widths: []int{768}}, "384"},
		"a block below a group":                {quantize.Rotation{Block: 64, Widths: []int{256}}, "64"},
		"a width twice":                        {quantize.Rotation{Block: 256, Widths: []int{256, 256}}, "distinct"},
		"a width that has no whole groups":     {quantize.Rotation{Block: 128, Widths: []int{200}}, "200"},
		"no widths":                            {quantize.Rotation{Block: 128}, "no input widths"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := try(t.Context(), test.op)
			wantError(t, err, test.want)
		})
	}
}

func TestReadSignsRefuses(t *testing.T) {
	good := run(t, quantize.Rotation{Block: 128, Widths: []int{128}})
	i8 := func(name string, n int, v byte, metadata map[string]string) []byte {
		raw := make([]byte, n)
		for i := range raw {
			raw[i] = v
		}
		return write(t, safetensors.Spec{Name: name, DType: safetensors.I8, Shape: []int64{int64(n)}}, raw, metadata)
	}
	block := map[string]string{"block": "128"}
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"no block":         {i8("signs.128", 128, 1, nil), "no Hadamard block"},
		"another value":    {i8("signs.128", 128, 2, block), "sign 0 is 2"},
		"another width":    {i8("signs.128", 256, 1, block), "256 signs"},
		"a block too long": {i8("signs.128", 128, 1, map[string]string{"block": "256"}), "blocks of 256"},
		"a block of zero":  {i8("signs.128", 128, 1, map[string]string{"block": "0"}), "blocks of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := quantize.ReadSigns(open(t, test.file))
			wantError(t, err, test.want)
		})
	}
	s, err := quantize.ReadSigns(open(t, good))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Of(256)
	wantError(t, err, "width 256")
}
