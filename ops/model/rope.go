package model

import (
	"fmt"
	"math"
)

// A Rope is a rotary position embedding: which frequencies a head's pairs of channels turn with.
// Fields that its Type does not use are zero.
type Rope struct {
	Type      string  // "default", "linear", "llama3" or "yarn"
	Base      float64 // rope_theta
	Factor    float64 // how many times longer than the original context; linear, llama3, yarn
	LowFreq   float64 // llama3: wavelengths above Original/LowFreq are stretched by Factor
	HighFreq  float64 // llama3: wavelengths below Original/HighFreq are kept
	Original  int     // llama3, yarn: context length of the original training
	BetaFast  float64 // yarn: turns within Original above which a frequency is kept
	BetaSlow  float64 // yarn: turns below which it is stretched
	Attention float64 // yarn: what cos and sin are multiplied by
	Truncate  bool    // yarn: round the bounds of the ramp outwards to whole channels
}

// readRope reads rope_scaling or rope_parameters; errors stay in f.
func readRope(f *fields) Rope {
	dict := f.object("rope_scaling")
	if dict == nil {
		dict = f.object("rope_parameters")
	}
	d := &fields{raw: dict}
	kind := d.text("rope_type", d.text("type", "default"))
	r := Rope{Type: kind, Base: d.number("rope_theta", f.number("rope_theta", 10000))}
	switch kind {
	case "default":
	case "linear":
		r.Factor = d.number("factor", 0)
	case "llama3":
		r.Factor = d.number("factor", 0)
		r.LowFreq = d.number("low_freq_factor", 0)
		r.HighFreq = d.number("high_freq_factor", 0)
		r.Original = d.whole("original_max_position_embeddings", 0)
	case "yarn":
		readYarn(d, f, &r)
	default:
		d.fail("%w: rotary embedding of type %q; supported are default, linear, llama3, yarn", ErrUnsupported, kind)
	}
	for _, key := range []string{"full_attention", "sliding_attention"} {
		if d.has(key) {
			d.fail("%w: rotary embeddings that differ between layers", ErrUnsupported)
		}
	}
	if p := d.number("partial_rotary_factor", 1); p != 1 {
		d.fail("%w: partial_rotary_factor %g; only full rotation is supported", ErrUnsupported, p)
	}
	if d.err != nil {
		f.fail("rope_scaling: %w", d.err)
	}
	return r
}

func readYarn(d, f *fields, r *Rope) {
	r.Factor = d.number("factor", 0)
	r.Original = d.whole("original_max_position_embeddings", f.whole("max_position_embeddings", 0))
	r.BetaFast = d.number("beta_fast", 32)
	r.BetaSlow = d.number("beta_slow", 1)
	r.Truncate = d.flag("truncate", true)
	scale, all := d.number("mscale", 0), d.number("mscale_all_dim", 0)
	r.Attention = d.number("attention_factor", 0)
	switch {
	case r.Attention != 0:
	case scale != 0 && all != 0:
		r.Attention = yarnScale(r.Factor, scale) / yarnScale(r.Factor, all)
	default:
		r.Attention = yarnScale(r.Factor, 1)
	}
}

// yarnScale is the temperature that YaRN gives attention at a factor (arXiv:2309.00071, section 3.4).
func yarnScale(factor, weight float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*weight*math.Log(factor) + 1
}

// validate returns an error if a number that the type uses is out of range.
func (r Rope) validate() error {
	if !(r.Base > 1 && r.Base < 1e15) {
		return fmt.Errorf("rope_theta is %g, want above 1", r.Base)
	}
	if r.Type != "default" && !(r.Factor >= 1 && r.Factor < 1e6) {
		return fmt.Errorf("rope_scaling: factor is %g, want 1 or more", r.Factor)
	}
	switch r.Type {
	case "default", "linear":
		return nil
	case "llama3":
		if !(r.LowFreq > 0 && r.HighFreq > r.LowFreq) {
			return fmt.Errorf("rope_scaling: low_freq_factor %g and high_freq_factor %g, want 0 < low < high", r.LowFreq, r.HighFreq)
		}
	case "yarn":
		if !(r.BetaSlow > 0 && r.BetaFast > r.BetaSlow && r.Attention > 0) {
			return fmt.Errorf("rope_scaling: beta_fast %g, beta_slow %g, attention_factor %g, want 0 < slow < fast and a factor above 0",
				r.BetaFast, r.BetaSlow, r.Attention)
		}
	default:
		return fmt.Errorf("%w: rotary embedding of type %q; supported are default, linear, llama3, yarn", ErrUnsupported, r.Type)
	}
	if r.Original < 1 {
		return fmt.Errorf("rope_scaling: original_max_position_embeddings is %d, want 1 or more", r.Original)
	}
	return nil
}

// Frequencies returns the angle per position of each of the dim/2 pairs of channels of a head (pair j is channels j
// and j+dim/2), in radians, and the factor that cos and sin are multiplied by.
func (r Rope) Frequencies(dim int) (freqs []float64, scale float64) {
	freqs = make([]float64, dim/2)
	for j := range freqs {
		freqs[j] = math.Pow(r.Base, -2*float64(j)/float64(dim))
	}
	switch r.Type {
	case "linear":
		for j := range freqs {
			freqs[j] /= r.Factor
		}
	case "llama3":
		for j, f := range freqs {
			freqs[j] = r.llama3(f)
		}
	case "yarn":
		r.yarn(freqs, dim)
		return freqs, r.Attention
	}
	return freqs, 1
}

// llama3 stretches one frequency as Llama 3.1 does (transformers, modeling_rope_utils.py).
func (r Rope) llama3(f float64) float64 {
	turns := float64(r.Original) * f / (2 * math.Pi) // full turns within the original context
	switch {
	case turns > r.HighFreq:
		return f
	case turns < r.LowFreq:
		return f / r.Factor
	}
	s := (turns - r.LowFreq) / (r.HighFreq - r.LowFreq)
	return f * ((1-s)/r.Factor + s)
}

// yarn stretches freqs by parts (arXiv:2309.00071, section 3.2).
func (r Rope) yarn(freqs []float64, dim int) {
	channel := func(turns float64) float64 {
		return float64(dim) * math.Log(float64(r.Original)/(2*math.Pi*turns)) / (2 * math.Log(r.Base))
	}
	lo, hi := channel(r.BetaFast), channel(r.BetaSlow)
	if r.Truncate {
		lo, hi = math.Floor(lo), math.Ceil(hi)
	}
	lo, hi = max(lo, 0), min(hi, float64(dim-1))
	if lo == hi {
		hi += 0.001
	}
	for j := range freqs {
		ramp := min(max((float64(j)-lo)/(hi-lo), 0), 1)
		freqs[j] = freqs[j]*(1-ramp) + freqs[j]/r.Factor*ramp
	}
}
