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
	half := HalfToFloat(s) / 2
	for i, x := range w {
		codes[i] = code(x, half)
	}
}

// code returns the best code of x for a scale of 2·half: 0 up to half, and everywhere if the
// scale is 0.
func code(x, half float32) int8 {
	switch {
	case half == 0:
		return 0
	case x > half:
		return 1
	case x < -half:
		return -1
	}
	return 0
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
func fitScale(w []float32) (uint16, error) { return halfScale(bestScaleRef(w)) }

// bestScaleRef returns the scale of the ternary fit with the least squared error, NaN or
// infinite if a weight is. Of equal fits it takes the one with fewer weights.
func bestScaleRef(w []float32) float64 {
	var buf [Group]float32
	a := buf[:len(w)]
	for i, x := range w {
		if x != x {
			return math.NaN()
		}
		a[i] = float32(math.Abs(float64(x)))
	}
	slices.Sort(a)
	slices.Reverse(a)
	return bestPrefix(a, 0, 0)
}

// bestPrefix returns the scale sum/k of the best fit whose support is the first k weights
// of count weights that sum to sum, followed by a, magnitudes in descending order.
func bestPrefix(a []float32, count int, sum float64) float64 {
	best, scale := 0.0, 0.0
	if count > 0 {
		scale = sum / float64(count)
		best = sum * scale
	}
	for i, x := range a {
		sum += float64(x)
		s := sum / float64(count+i+1)
		if gain := sum * s; gain > best {
			best, scale = gain, s
		}
	}
	return scale
}
