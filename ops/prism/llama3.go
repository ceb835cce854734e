package prism

import (
	"math"
	"slices"

	"bonsai/ops/model"
)

// fitLlama3 returns a llama3 rope scaling that divides the frequencies of base as given,
// or false if there is none.
//
// The scaling multiplies a frequency by clamp(a·f+b, 1/factor, 1): a line in f between
// two bounds. The table gives points of it; where the line reaches the bounds are
// the two frequencies that the config's low_freq_factor and high_freq_factor stand for.
func fitLlama3(base float64, divisors []float32) (model.Rope, bool) {
	plain, _ := model.Rope{Type: "default", Base: base}.Frequencies(2 * len(divisors))
	factor := float64(divisors[len(divisors)-1])
	if factor == 1 {
		r := model.Rope{Type: "default", Base: base}
		return r, slices.Max(divisors) == 1 && slices.Min(divisors) == 1
	}
	low, high, ok := bounds(plain, divisors, factor)
	if !ok {
		return model.Rope{}, false
	}
	for _, r := range []model.Rope{
		// Only ratios of the settings can be seen: those of Llama 3.1 first, then the
		// simplest, then any.
		{LowFreq: 1, HighFreq: 4, Original: 8192},
		{LowFreq: 1, HighFreq: math.Round(high / low), Original: int(math.Round(2 * math.Pi / low))},
		{LowFreq: low / (2 * math.Pi) * (1 << 24), HighFreq: high / (2 * math.Pi) * (1 << 24), Original: 1 << 24},
	} {
		r.Type, r.Base, r.Factor = "llama3", base, factor
		if matches(r, divisors) {
			return r, true
		}
	}
	return model.Rope{}, false
}

// bounds returns the frequencies, in radians a position, from which down all are divided
// by factor, and from which up all are kept.
func bounds(plain []float64, divisors []float32, factor float64) (low, high float64, ok bool) {
	const same = 1e-6
	kept, stretched := 2*plain[0], plain[len(plain)-1] // the nearest outside the slope
	var slope []int
	for i, d := range divisors {
		switch {
		case math.Abs(float64(d)-1) < same:
			kept = plain[i]
		case math.Abs(float64(d)/factor-1) < same:
			stretched = max(stretched, plain[i])
		default:
			slope = append(slope, i)
		}
	}
	if !(factor >= 1) || kept < stretched {
		return 0, 0, false
	}
	if len(slope) == 0 {
		return stretched, kept, true
	}
	// Two points of the line: both on the slope, or the one there is and the nearer bound.
	at := func(i int) (x, y float64) { return plain[i], 1 / float64(divisors[i]) }
	x1, y1 := at(slope[0])
	x2, y2 := at(slope[len(slope)-1])
	if len(slope) == 1 {
		x2, y2 = stretched, 1/factor
		if (y1-y2)*(kept-x1) < (1-y1)*(x1-x2) { // that line would reach 1 too late
			x2, y2 = kept, 1
		}
	}
	a := (y1 - y2) / (x1 - x2)
	return x1 + (1/factor-y1)/a, x1 + (1-y1)/a, a > 0
}

// matches reports whether a scaling has this table, as exactly as float32 can say.
func matches(r model.Rope, divisors []float32) bool {
	if r.Original < 1 || !(r.LowFreq > 0 && r.HighFreq > r.LowFreq) {
		return false
	}
	plain, _ := model.Rope{Type: "default", Base: r.Base}.Frequencies(2 * len(divisors))
	stretched, _ := r.Frequencies(2 * len(divisors))
	for i, d := range divisors {
		if math.Abs(plain[i]/stretched[i]/float64(d)-1) > 1e-5 {
			return false
		}
	}
	return true
}
