package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// count returns the ids 0 to n−1, so that a block's first token tells which block it is.
func count(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}

// choose returns which blocks of length 4 a packer keeps of n, fed some ids at a time.
func choose(t *testing.T, n, want, step int, random *rand.PCG) []int {
	t.Helper()
	p := newPacker(4, want, random)
	for part := range slices.Chunk(count(4*n), step) {
		p.add(part)
	}
	if err := p.finish(); err != nil {
		t.Fatal(err)
	}
	var blocks []int
	for _, b := range p.chosen {
		i := int(b[0]) / 4
		if !slices.Equal(b, []int32{int32(4 * i), int32(4*i + 1), int32(4*i + 2), int32(4*i + 3)}) {
			t.Fatalf("block %v is not one of the ids cut into four", b)
		}
		blocks = append(blocks, i)
	}
	return blocks
}

func TestChoiceIsPinned(t *testing.T) {
	want := []int{31, 28, 21, 17, 4, 5, 30, 15}
	for _, step := range []int{1, 3, 4, 5, 1000} {
		if got := choose(t, 40, 8, step, rand.NewPCG(1, 2)); !slices.Equal(got, want) {
			t.Errorf("fed %d ids at a time: blocks %v of 40, want %v", step, got, want)
		}
	}
	if got := choose(t, 3, 0, 5, rand.NewPCG(1, 2)); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("of all blocks %v were kept", got)
	}
}

func TestNoBlockIsChosenTwice(t *testing.T) {
	for seed := range uint64(200) {
		got := slices.Sorted(slices.Values(choose(t, 20, 12, 16, rand.NewPCG(seed, 0))))
		if len(slices.Compact(slices.Clone(got))) != 12 {
			t.Fatalf("seed %d: blocks %v", seed, got)
		}
	}
}

// TestChoiceIsFair draws often: every block is chosen as often as chance has it, and stands
// in every place.
func TestChoiceIsFair(t *testing.T) {
	const draws, n, want = 4000, 12, 3
	var chosen [n]int
	var places [n][n]int
	random := rand.NewPCG(11, 7)
	for range draws {
		for _, i := range choose(t, n, want, 48, random) {
			chosen[i]++
		}
		order := make([][]int32, n)
		for i := range order {
			order[i] = []int32{int32(i)}
		}
		shuffle(order, random)
		for place, b := range order {
			places[b[0]][place]++
		}
	}
	check := func(what string, have int, chance float64) {
		mean, sigma := draws*chance, math.Sqrt(draws*chance*(1-chance))
		if math.Abs(float64(have)-mean) > 5*sigma {
			t.Errorf("%s: %d of %d draws, want %.0f ± %.0f", what, have, draws, mean, sigma)
		}
	}
	for i := range n {
		check("a block", chosen[i], float64(want)/n)
		for place := range n {
			check("a place", places[i][place], 1.0/n)
		}
	}
}

func TestBelow(t *testing.T) {
	random := rand.NewPCG(3, 3)
	for _, n := range []uint64{1, 2, 3, 1<<63 + 1, math.MaxUint64} {
		for range 100 {
			if v := below(random, n); v >= n {
				t.Fatalf("below(%d) = %d", n, v)
			}
		}
	}
}

// TestPackerHoldsWhatItKeeps states that memory grows with the blocks wanted, not with the
// text: once these are there, more text allocates nothing.
func TestPackerHoldsWhatItKeeps(t *testing.T) {
	p := newPacker(64, 5, rand.NewPCG(1, 1))
	text := count(10000)
	p.add(text)
	if n := testing.AllocsPerRun(20, func() { p.add(text) }); n != 0 {
		t.Errorf("adding %d tokens allocates %v times", len(text), n)
	}
	if len(p.chosen) != 5 || p.blocks != 22*10000/64 {
		t.Errorf("%d blocks chosen of %d", len(p.chosen), p.blocks)
	}
}
