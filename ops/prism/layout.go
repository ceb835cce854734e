package prism

import (
	"fmt"
	"slices"

	"bonsai/ops/gguf"
	"bonsai/ops/model"
)

// A Tensor is one tensor of a file to be.
type Tensor struct {
	Name  string    // in the file
	From  string    // in the checkpoint; "" for a table that the config implies
	Type  gguf.Type // PTQ1_0 or PQ2_0 if ternary; BF16 for other matrices, F32 for vectors
	Shape []int64   // outermost axis first
	Bytes int64     // without padding

	of          model.Tensor
	interleaved bool // rows stand in another order than in the checkpoint
}

// A Layout is what a file will hold, known from the model's config alone.
type Layout struct {
	Arch    string   // general.architecture
	Tensors []Tensor // in the order of the file: embedding, layers, final norm, head
	Weights int64    // elements of all tensors of the checkpoint that the file holds
	Bytes   int64    // of all tensors, each padded to 32
}

// BitsPerWeight returns what a weight takes on average, high-precision tensors and
// padding included, metadata not.
func (l *Layout) BitsPerWeight() float64 { return 8 * float64(l.Bytes) / float64(l.Weights) }

// Ternary returns how many tensors are ternary.
func (l *Layout) Ternary() (n int) {
	for _, t := range l.Tensors {
		if t.Type.IsTernary() {
			n++
		}
	}
	return n
}

// Plan returns the layout of a model whose tensors named in ternary, by the checkpoint's
// names, are stored in a format of Formats, with a context_length, 0 for the config's.
//
// Errors wrap model.ErrUnsupported where the layout cannot express the model: another
// model type, a sliding window shorter than the context, a ternary table that is tied.
// Other errors name a tensor that is not in the model, comes twice, is no matrix, or has
// a width that is not a multiple of 128.
func Plan(c *model.Config, format string, ternary []string, context int) (*Layout, error) {
	kind, _, err := formatOf(format)
	if err != nil {
		return nil, err
	}
	arch, err := archOf(c, contextOf(c, context))
	if err != nil {
		return nil, err
	}
	l := &Layout{Arch: arch}
	left := slices.Clone(ternary)
	for _, t := range c.Tensors() {
		kept := precise(t)
		if i := slices.Index(left, t.Name); i >= 0 {
			kept, left = kind, slices.Delete(left, i, i+1)
			if err := canBeTernary(c, t); err != nil {
				return nil, err
			}
		}
		if err := l.add(t, kept); err != nil {
			return nil, err
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("tensor %s to be ternary is not in the model, or named twice", left[0])
	}
	if len(ternary) == 0 {
		return nil, fmt.Errorf("no tensor is to be ternary")
	}
	return l, l.addFreqs(c)
}

// precise returns the type of a tensor that stays in high precision.
func precise(t model.Tensor) gguf.Type {
	if len(t.Shape) > 1 {
		return gguf.BF16
	}
	return gguf.F32
}

// canBeTernary refuses tensors that no code may stand for.
func canBeTernary(c *model.Config, t model.Tensor) error {
	if t.Group == "" {
		return fmt.Errorf("tensor %s to be ternary is a norm or bias", t.Name)
	}
	if c.Tied && t.Name == model.EmbedName {
		return fmt.Errorf("%w in GGUF: %s is tied to the head, and version 1 of prism.hadamard cannot say that one rotated table is both; it stays BF16", model.ErrUnsupported, t.Name)
	}
	return nil
}

// add adds a tensor of the checkpoint.
func (l *Layout) add(t model.Tensor, kind gguf.Type) error {
	size, err := kind.Size(t.Shape)
	if err != nil {
		return fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	l.Tensors = append(l.Tensors, Tensor{
		Name: fileName(t), From: t.Name, Type: kind, Shape: t.Shape, Bytes: size,
		of: t, interleaved: isInterleaved(l.Arch, t),
	})
	l.Weights += t.Size()
	l.Bytes += padded(size)
	return nil
}

// addFreqs adds the table that stands for llama3 rope scaling.
func (l *Layout) addFreqs(c *model.Config) error {
	if c.Rope.Type != "llama3" {
		return nil
	}
	shape := []int64{int64(c.HeadDim / 2)}
	size, err := gguf.F32.Size(shape)
	l.Tensors = append(l.Tensors, Tensor{Name: freqsName, Type: gguf.F32, Shape: shape, Bytes: size})
	l.Bytes += padded(size)
	return err
}

// specs returns the layout as the writer takes it.
func (l *Layout) specs() (specs []gguf.Spec) {
	for _, t := range l.Tensors {
		specs = append(specs, gguf.Spec{Name: t.Name, Type: t.Type, Shape: t.Shape})
	}
	return specs
}

// padded returns the bytes of a tensor with its padding.
func padded(size int64) int64 { return (size + 31) / 32 * 32 }
