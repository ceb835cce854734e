package quantize

import (
	"fmt"
	"io"
	"strconv"

	"bonsai/ops/safetensors"
)

// A state is an artifact of hidden states: a safetensors file with a tensor "x", BF16
// [tokens, hidden], the tokens of one sequence side by side, and "length" in its metadata,
// the tokens of a sequence.
type state struct {
	file                   *safetensors.File
	tokens, hidden, length int
}

const stateName = "x"

func openState(r *io.SectionReader, hidden int) (*state, error) {
	f, err := safetensors.OpenInput(r, "")
	if err != nil {
		return nil, fmt.Errorf("hidden states: %w", err)
	}
	t, ok := f.Lookup(stateName)
	length, err := strconv.Atoi(f.Metadata()["length"])
	if !ok || len(t.Shape) != 2 || err != nil || length < 1 {
		return nil, fmt.Errorf("%s: not hidden states", f.Name())
	}
	s := &state{file: f, tokens: int(t.Shape[0]), hidden: int(t.Shape[1]), length: length}
	if s.hidden != hidden || s.tokens == 0 || s.tokens%length != 0 {
		return nil, fmt.Errorf("%s: hidden states %v in sequences of %d, want width %d", f.Name(), t.Shape, length, hidden)
	}
	return s, nil
}

// each calls f with the states of up to seqs sequences at a time, [n*length, hidden], in
// order, and the number of tokens before them.
func (s *state) each(seqs int, f func(x []float32, n, before int) error) error {
	step := seqs * s.length
	for at := 0; at < s.tokens; at += step {
		n := min(step, s.tokens-at)
		x := make([]float32, n*s.hidden)
		if err := s.file.ReadFloats(stateName, x, int64(at)*int64(s.hidden)); err != nil {
			return err
		}
		if err := f(x, n/s.length, at); err != nil {
			return err
		}
	}
	return nil
}

// A stateWriter writes a state as it comes.
type stateWriter struct{ w *safetensors.Writer }

func newStateWriter(w io.Writer, tokens, hidden, length int) (stateWriter, error) {
	spec := safetensors.Spec{Name: stateName, DType: safetensors.BF16, Shape: []int64{int64(tokens), int64(hidden)}}
	f, err := safetensors.NewWriter(w, []safetensors.Spec{spec}, map[string]string{"length": strconv.Itoa(length)})
	return stateWriter{f}, err
}

func (s stateWriter) write(x []float32) error { return s.w.WriteFloats(stateName, x) }
func (s stateWriter) close() error            { return s.w.Close() }
