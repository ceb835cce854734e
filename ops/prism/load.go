package prism

import (
	"fmt"
	"slices"

	"bonsai/kernels"
	"bonsai/ops/gguf"
	"bonsai/ops/model"
)

// Weights gives the weights of a GGUF file by the checkpoint's names and in its layout:
// rows in the checkpoint's order, rotation undone. It is a model.Source. Its methods may
// be called from many goroutines at once.
type Weights struct {
	f        *gguf.File
	config   *model.Config
	rotation *Rotation // nil without one
	tensors  map[string]loaded
}

// loaded is one tensor of the file.
type loaded struct {
	name        string // in the file
	of          model.Tensor
	interleaved bool
	rotated     bool
}

// Load returns the config and the weights of a file of architecture llama or qwen3 whose
// tensors are F32, F16, BF16, PTQ1_0 or PQ2_0, rotated or not.
//
// Errors wrap gguf.ErrFormat or gguf.ErrMissing for what a runtime would refuse or
// compute wrongly, naming key or tensor, and model.ErrUnsupported for other models.
func Load(f *gguf.File) (*model.Config, *Weights, error) {
	arch, err := gguf.Get[string](f, "general.architecture")
	if err != nil {
		return nil, nil, err
	}
	rotation, err := ReadRotation(f)
	if err != nil {
		return nil, nil, err
	}
	c, err := readConfig(f, arch)
	if err != nil {
		return nil, nil, err
	}
	w := &Weights{f: f, config: c, rotation: rotation, tensors: map[string]loaded{}}
	if err := w.list(arch); err != nil {
		return nil, nil, err
	}
	return c, w, nil
}

// list compares the tensors of the file with those of the model.
func (w *Weights) list(arch string) error {
	known := map[string]bool{freqsName: w.config.Rope.Type == "llama3"}
	for _, t := range w.config.Tensors() {
		name := fileName(t)
		known[name] = true
		have, ok := w.f.Lookup(name)
		if !ok {
			return fmt.Errorf("%s: tensor %s: %w", w.f.Name(), name, gguf.ErrMissing)
		}
		if !slices.Equal(have.Shape, t.Shape) {
			return refuse(w.f, "tensor %s is %v, want %v", name, have.Shape, t.Shape)
		}
		w.tensors[t.Name] = loaded{
			name: name, of: t, interleaved: isInterleaved(arch, t),
			rotated: w.rotation.rotates(name),
		}
	}
	for _, t := range w.f.Tensors() {
		if !known[t.Name] {
			return refuse(w.f, "tensor %s belongs to no %s model of this config", t.Name, arch)
		}
	}
	return nil
}

// rotates reports whether a tensor is stored as W S H.
func (r *Rotation) rotates(name string) bool {
	return r != nil && (slices.Contains(r.Tensors, name) || r.Inverse && name == embedName)
}

// Floats implements model.Source.
func (w *Weights) Floats(name string) ([]float32, error) {
	t, ok := w.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%s: tensor %s: %w", w.f.Name(), name, gguf.ErrMissing)
	}
	x, err := w.f.Floats(t.name)
	if err != nil {
		return nil, err
	}
	w.unrotate(t, x)
	if !t.interleaved {
		return x, nil
	}
	y := make([]float32, len(x))
	deinterleave(y, x, w.config.HeadDim, t.width())
	return y, nil
}

// ReadFloats fills x with whole rows of a tensor from element first on.
func (w *Weights) ReadFloats(name string, x []float32, first int64) error {
	t, ok := w.tensors[name]
	if !ok {
		return fmt.Errorf("%s: tensor %s: %w", w.f.Name(), name, gguf.ErrMissing)
	}
	width := t.width()
	if len(x)%width != 0 || first%int64(width) != 0 || first < 0 || first+int64(len(x)) > t.of.Size() {
		return fmt.Errorf("%s: tensor %s: elements %d to %d of rows of %d", w.f.Name(), name, first, first+int64(len(x)), width)
	}
	if err := w.readRows(t, x, int(first)/width); err != nil {
		return err
	}
	w.unrotate(t, x)
	return nil
}

// readRows fills x with rows from the given one of the checkpoint on, rotated or not as
// they are stored.
func (w *Weights) readRows(t loaded, x []float32, row int) error {
	width := t.width()
	if !t.interleaved {
		return w.f.ReadFloats(t.name, x, int64(row)*int64(width))
	}
	dim := w.config.HeadDim
	for ; len(x) > 0; x, row = x[width:], row+1 {
		stored := row/dim*dim + interleaved(row%dim, dim)
		if err := w.f.ReadFloats(t.name, x[:width], int64(stored)*int64(width)); err != nil {
			return err
		}
	}
	return nil
}

// unrotate gives whole rows of a tensor back their own basis.
func (w *Weights) unrotate(t loaded, x []float32) {
	if !t.rotated {
		return
	}
	if w.rotation.Signs == nil {
		kernels.Hadamard(x, w.rotation.Block)
		return
	}
	kernels.Unrotate(x, w.rotation.Signs[t.width()], w.rotation.Block)
}

// width returns the length of a row, 1 for a vector.
func (t loaded) width() int {
	if len(t.of.Shape) < 2 {
		return 1
	}
	return int(t.of.Shape[1])
}
