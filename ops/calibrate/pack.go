package calibrate

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A packer cuts tokens into blocks as they come and keeps as many as are wanted, each of them
// with the same chance (reservoir sampling, Vitter's algorithm R). It holds no more tokens
// than it keeps.
type packer struct {
	counts
	want   int // 0 for all
	random *rand.PCG
	block  []int32   // being filled
	chosen [][]int32 // each of the length of block
}

func newPacker(length, want int, random *rand.PCG) *packer {
	return &packer{want: want, random: random, block: make([]int32, 0, length)}
}

// add appends ids to what is packed.
func (p *packer) add(ids []int32) {
	p.tokens += len(ids)
	for len(ids) > 0 {
		n := min(len(ids), cap(p.block)-len(p.block))
		p.block = append(p.block, ids[:n]...)
		ids = ids[n:]
		if len(p.block) == cap(p.block) {
			p.keep()
			p.block = p.block[:0]
		}
	}
}

// keep decides about a block that is full.
func (p *packer) keep() {
	p.blocks++
	if p.want == 0 || len(p.chosen) < p.want {
		p.chosen = append(p.chosen, slices.Clone(p.block))
		return
	}
	if i := below(p.random, uint64(p.blocks)); i < uint64(p.want) {
		copy(p.chosen[i], p.block)
	}
}

// finish refuses what does not fill the blocks wanted.
func (p *packer) finish() error {
	p.counts.chosen, p.dropped = len(p.chosen), len(p.block)
	switch {
	case len(p.chosen) < p.want:
		return fmt.Errorf("asked for %d blocks of %d tokens; its %d documents have %d tokens, %d blocks",
			p.want, cap(p.block), p.documents, p.tokens, p.blocks)
	case len(p.chosen) == 0:
		return fmt.Errorf("its %d documents have %d tokens, not one block of %d", p.documents, p.tokens, cap(p.block))
	}
	return nil
}

// below returns a number below n, each with the same chance. The standard library does not
// promise that its own way to one stays as it is, and a calibration must.
//
// Lemire, "Fast Random Integer Generation in an Interval", 2019.
func below(r *rand.PCG, n uint64) uint64 {
	hi, lo := bits.Mul64(r.Uint64(), n)
	for lo < n && lo < -n%n {
		hi, lo = bits.Mul64(r.Uint64(), n)
	}
	return hi
}

// shuffle puts blocks into an order of which each has the same chance.
func shuffle(blocks [][]int32, r *rand.PCG) {
	for i := len(blocks) - 1; i > 0; i-- {
		j := below(r, uint64(i)+1)
		blocks[i], blocks[j] = blocks[j], blocks[i]
	}
}
