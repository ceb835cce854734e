package mlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// A Tensor is a float32 array in the memory of an engine's backend. Free it: garbage collection does not count what a
// device holds.
type Tensor struct {
	t    *tensors.Tensor
	dims []int
}

// Fill makes a tensor of the given shape and lets fill write its values, row-major. dst starts zeroed and is the
// backend's own memory where that is possible, so that large weights are not held twice.
func (e *Engine) Fill(dims []int, fill func(dst []float32)) (t *Tensor, err error) {
	defer recoverTo(&err)
	b, err := e.open()
	if err != nil {
		return nil, err
	}
	for _, d := range dims {
		if d < 1 {
			return nil, fmt.Errorf("tensor of shape %v: axes must be 1 or longer", dims)
		}
	}
	x, err := tensors.FromShapeForBackend(b, 0, shapes.Make(dtypes.Float32, dims...))
	if err != nil {
		return nil, err
	}
	if err := x.MutableFlatData(func(flat any) { fill(flat.([]float32)) }); err != nil {
		return nil, err
	}
	return &Tensor{x, slices.Clone(dims)}, nil
}

// Upload makes a tensor of the given shape with the values of flat, row-major.
func (e *Engine) Upload(flat []float32, dims ...int) (*Tensor, error) {
	if n := size(dims); n != len(flat) {
		return nil, fmt.Errorf("tensor of shape %v has %d elements, not %d", dims, n, len(flat))
	}
	return e.Fill(dims, func(dst []float32) { copy(dst, flat) })
}

// Dims returns the shape.
func (t *Tensor) Dims() []int { return slices.Clone(t.dims) }

// Read copies the values, row-major, to dst, which has their number.
func (t *Tensor) Read(dst []float32) (err error) {
	defer recoverTo(&err)
	if n := size(t.dims); n != len(dst) {
		return fmt.Errorf("read %d of the %d elements of a tensor of shape %v", len(dst), n, t.dims)
	}
	return t.t.ConstFlatData(func(flat any) { copy(dst, flat.([]float32)) })
}

// Free gives the memory back. The tensor must not be used afterwards, nor while a call that takes it runs.
// Freeing nil, or again, does nothing.
func (t *Tensor) Free() {
	if t == nil || t.t == nil {
		return
	}
	t.t.MustFinalizeAll()
	t.t = nil
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
