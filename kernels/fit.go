package kernels

import (
	"fmt"
	"math"
	"slices"
)

// maxHalf is the largest finite binary16 number.
const maxHalf = 65504

// FitGroup writes the ternary codes of w that, with the best scale, have the least squared
// error, and returns that scale as binary16 bits, rounded to nearest even. The codes are
// those that are best for the rounded scale.
//
//	codes  len(w); each −1, 0 or 1
//	w      1 to 128 weights
//
// A scale that rounds to zero gives codes 0. The error says that a weight is not finite or
// that the scale exceeds 65504; codes are then undefined.
//
// Source: quant-methods.md 1b. The best support is a prefix of |w| in descending order: of k
// weights with the sum A it leaves Σw² − A²/k.
func FitGroup(codes []int8, w []float32) (scale uint16, err error) {
	checkGroup(codes, w)
	s, err := fitScale(w)
	if err != nil {
		return 0, err
	}
	assign(codes, w, s)
	return s, nil
}

// AbsMeanGroup is FitGroup with the scale of BitNet, mean |w|: a baseline for tests.
func AbsMeanGroup(codes []int8, w []float32) (scale uint16, err error) {
	checkGroup(codes, w)
	sum := 0.0
	for _, x := range w {
		sum += math.Abs(float64(x))
	}
	s, err := halfScale(sum / float64(len(w)))
	if err != nil {
		return 0, err
	}
	assign(codes, w, s)
	return s, nil
}

func checkGroup(codes []int8, w []float32) {
	wantLen("group codes", len(codes), len(w))
	if len(w) == 0 || len(w) > Group {
		panic(fmt.Sprintf("kernels: group of %d weights", len(w)))
	}
}

// assign writes the best codes of w for the scale with bits s: ±1 beyond half of it.
func assign(codes []int8, w []float32, s uint16) {
	f := HalfToFloat(s)
	for i, x := range w {
		codes[i], _ = nearest(x, f)
	}
}

// halfScale rounds s to binary16; it is an error if s is not finite or out of range.
func halfScale(s float64) (uint16, error) {
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return 0, fmt.Errorf("weight is not finite")
	}
	if s > maxHalf {
		return 0, fmt.Errorf("scale %g exceeds %d", s, maxHalf)
	}
	return FloatToHalf(roundToOdd(s)), nil
}

// roundToOdd returns s as a float32 whose last bit says whether more bits follow, so that it
// rounds to binary16 as s itself would.
func roundToOdd(s float64) float32 {
	f := float32(s)
	u := math.Float32bits(f)
	switch {
	case u&1 == 1 || float64(f) == s:
		return f
	case float64(f) < s:
		return math.Float32frombits(u + 1)
	}
	return math.Float32frombits(u - 1)
}

// fitScale returns the scale of FitGroup.
func fitScale(w []float32) (uint16, error) { return halfScale(bestScale(w)) }

// scaleFits lists the searches for the best scale, the reference first. Each returns the scale
// with the least squared error, for equal errors the one with fewer weights, and NaN if a weight
// is not finite.
func scaleFits() []impl[func(w []float32) float64] {
	return []impl[func(w []float32) float64]{{"sort", true, bestScaleRef}, {"bounds", true, bestScaleBounds}}
}

var bestScale = last(scaleFits()).f

// bestScaleRef sorts the magnitudes and tries every prefix.
func bestScaleRef(w []float32) float64 {
	var buf [Group]float32
	a, _ := magnitudes(&buf, w)
	if a == nil {
		return math.NaN()
	}
	slices.Sort(a)
	slices.Reverse(a)
	return bestPrefix(a, 0, 0)
}

// magnitudes writes |w| to buf and returns it and its maximum, or nil if a weight is not finite.
func magnitudes(buf *[Group]float32, w []float32) (a []float32, top float32) {
	a = buf[:len(w)]
	for i, x := range w {
		a[i] = math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
		top = max(top, a[i]) // NaN if one is
	}
	if !(top <= math.MaxFloat32) {
		return nil, 0
	}
	return a, top
}

// bestPrefix returns the scale sum/k of the best fit whose support is count weights that sum to
// sum, and then some of a, magnitudes in descending order.
func bestPrefix(a []float32, count int, sum float64) float64 {
	gain, scale := 0.0, 0.0
	if count > 0 {
		scale = sum / float64(count)
		gain = sum * scale
	}
	for i, x := range a {
		sum += float64(x)
		s := sum / float64(count+i+1)
		if sum*s > gain {
			gain, scale = sum*s, s
		}
	}
	return scale
}

// bestScaleBounds does without sorting. The best support is a prefix of the descending
// magnitudes, so its mean, the scale s, is at least the mean of any set that contains it and
// at most that of any prefix within it. It holds exactly the magnitudes over s/2. So half the mean
// of all bounds what may be in it, half the maximum what must; each pass tightens both.
// Rarely do some remain, when there are several local optima: these are sorted.
//
// All magnitudes of a support are within a factor of 256, so that their sum in float64 is
// exact, in any order.
func bestScaleBounds(w []float32) float64 {
	var buf [Group]float32
	open, top := magnitudes(&buf, w)
	if open == nil {
		return math.NaN()
	}
	inSum, in := 0.0, 0
	openSum := sumOf(open)
	high := top / 2
	for len(open) > 0 {
		low := float32((inSum + openSum) / float64(in+len(open)) / 2)
		was := len(open)
		var s float64
		var n int
		open, openSum, s, n = narrow(open, low, high)
		inSum, in = inSum+s, in+n
		if len(open) == was || in == 0 {
			break
		}
		high = float32(inSum / float64(in) / 2)
	}
	slices.Sort(open)
	slices.Reverse(open)
	return bestPrefix(open, in, inSum)
}

func sumOf(a []float32) (s float64) {
	for _, x := range a {
		s += float64(x)
	}
	return s
}

// narrow keeps, in place, those of a in (low, high] and returns them with their sum; also the sum
// and number of those over high.
func narrow(a []float32, low, high float32) (open []float32, openSum, inSum float64, in int) {
	l, h := int32(math.Float32bits(low)), int32(math.Float32bits(high))
	n := 0
	for _, x := range a {
		u := int32(math.Float32bits(x))
		over := (h - u) >> 31         // all ones if x > high
		kept := (l - u) >> 31 &^ over // all ones if low < x <= high
		inSum += float64(math.Float32frombits(uint32(u & over)))
		openSum += float64(math.Float32frombits(uint32(u & kept)))
		in -= int(over)
		a[n] = x
		n -= int(kept)
	}
	return a[:n], openSum, inSum, in
}
