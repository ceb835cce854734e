package quantize

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	"bonsai/kernels"
	"bonsai/ops"
	"bonsai/ops/safetensors"
)

// MaxBlock is the largest Hadamard block that DefaultBlock gives: runtimes have fast code
// for no more, and larger ones gain no quality: with GPTQ, blocks of 128 to 1024 gave
// relative errors of 0.2705 to 0.2772 on heavy-tailed weights.
const MaxBlock = 4096

// Rotation draws the signs of the rotation x' = H(s⊙x): one vector s of ±1 for each input
// width, shared by all tensors of that width.
//
// It has no inputs. Its output is a safetensors file with a tensor "signs.WIDTH", I8
// [WIDTH], for each width, and "block" in its metadata.
//
// The signs of a width depend on Seed and that width alone: sign i is bit i%64 (low bits
// first) of draw i/64 of PCG(Seed, WIDTH) of math/rand/v2, 1 where the bit is set.
type Rotation struct {
	Block  int // Hadamard block: a power of two that divides every width, at least 128
	Seed   uint64
	Widths []int // distinct input widths, ascending
}

// DefaultBlock returns the largest power of two that divides every width, at most MaxBlock.
// It returns an error that names the widths which are not a multiple of 128.
func DefaultBlock(widths ...int) (int, error) {
	if len(widths) == 0 {
		return 0, fmt.Errorf("no input widths to rotate")
	}
	block := MaxBlock
	var bad []string
	for _, w := range widths {
		if w <= 0 || w%kernels.Group != 0 {
			bad = append(bad, strconv.Itoa(w))
			continue
		}
		block = min(block, 1<<bits.TrailingZeros(uint(w)))
	}
	if bad != nil {
		return 0, fmt.Errorf("input width %s is not a multiple of %d", strings.Join(bad, ", "), kernels.Group)
	}
	return block, nil
}

// Check returns an error if the block does not fit the widths.
func (r Rotation) Check() error {
	most, err := DefaultBlock(r.Widths...)
	if err != nil {
		return err
	}
	if r.Block < kernels.Group || r.Block&(r.Block-1) != 0 {
		return fmt.Errorf("block %d is not a power of two of at least %d", r.Block, kernels.Group)
	}
	for i, w := range r.Widths {
		if w%r.Block != 0 {
			return fmt.Errorf("block %d does not divide input width %d; %d divides all", r.Block, w, most)
		}
		if i > 0 && w <= r.Widths[i-1] {
			return fmt.Errorf("input widths %v are not distinct and ascending", r.Widths)
		}
	}
	return nil
}

// AppendText implements engine.Op.
func (r Rotation) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "rotation", 1, r)
}

// Run implements engine.Op.
func (r Rotation) Run(_ context.Context, _ []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := r.Check(); err != nil {
		return err
	}
	var specs []safetensors.Spec
	for _, w := range r.Widths {
		specs = append(specs, safetensors.Spec{Name: signsName(w), DType: safetensors.I8, Shape: []int64{int64(w)}})
	}
	f, err := safetensors.NewWriter(out[0], specs, map[string]string{"block": strconv.Itoa(r.Block)})
	if err != nil {
		return err
	}
	for _, w := range r.Widths {
		if err := f.Write(signsName(w), bytesOf(drawSigns(r.Seed, w))); err != nil {
			return err
		}
	}
	report(1, fmt.Sprintf("blocks of %d, widths %v", r.Block, r.Widths))
	return f.Close()
}

func signsName(width int) string { return "signs." + strconv.Itoa(width) }

func drawSigns(seed uint64, width int) []int8 {
	rng := rand.NewPCG(seed, uint64(width))
	signs := make([]int8, width)
	var word uint64
	for i := range signs {
		if i%64 == 0 {
			word = rng.Uint64()
		}
		signs[i] = int8(word>>(i%64)&1)*2 - 1
	}
	return signs
}

func bytesOf(signs []int8) []byte {
	b := make([]byte, len(signs))
	for i, s := range signs {
		b[i] = byte(s)
	}
	return b
}

// Signs are the rotation that a Rotation wrote.
type Signs struct {
	Block int // Hadamard block

	widths map[int][]int8
}

// ReadSigns reads a rotation. Its errors name what is not as Rotation writes it.
func ReadSigns(f *safetensors.File) (*Signs, error) {
	block, err := strconv.Atoi(f.Metadata()["block"])
	if err != nil {
		return nil, fmt.Errorf("%s: no Hadamard block in its metadata", f.Name())
	}
	s := &Signs{Block: block, widths: map[int][]int8{}}
	for _, t := range f.Tensors() {
		signs, err := f.Int8s(t.Name)
		if err != nil {
			return nil, err
		}
		for i, v := range signs {
			if v != 1 && v != -1 {
				return nil, fmt.Errorf("%s: tensor %s: sign %d is %d", f.Name(), t.Name, i, v)
			}
		}
		if len(signs) == 0 || block <= 0 || len(signs)%block != 0 || t.Name != signsName(len(signs)) {
			return nil, fmt.Errorf("%s: tensor %s: %d signs for blocks of %d", f.Name(), t.Name, len(signs), block)
		}
		s.widths[len(signs)] = signs
	}
	return s, nil
}

// Of returns the signs of an input width, which the caller must not change.
func (s *Signs) Of(width int) ([]int8, error) {
	if s == nil {
		return nil, fmt.Errorf("no rotation for width %d", width)
	}
	signs, ok := s.widths[width]
	if !ok {
		return nil, fmt.Errorf("the rotation has no signs for width %d", width)
	}
	return signs, nil
}

// Name returns a text that two rotations of an input width share only if they are the same.
func (s *Signs) Name(width int) (string, error) {
	signs, err := s.Of(width)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(bytesOf(signs))
	return fmt.Sprintf("%d:%x", s.Block, sum[:8]), nil
}
