// Package evaluate measures how far a model is from the one it was made of, on given text.
//
// It holds the windows of tokens that a text is scored in (Tokens), the hidden states that
// a model has on them (Hidden), and the figures that follow (Compare): negative log
// likelihood and perplexity of both models, KL divergence, top-1 agreement. It does not
// know file formats other than safetensors: a Model says how its files are opened.
// Start at Compare.
//
// Every figure is a mean over predicted positions: of a window of n tokens the last n−1.
// Models run in float32; exponentials and sums are float64.
package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/quantize"
)

// An Opener opens a model's files. If the source is an io.Closer it is closed after use.
type Opener = func(in []*io.SectionReader) (*model.Config, model.Source, error)

// Safetensors is the format of a Checkpoint.
const Safetensors = "safetensors"

// A Model says how a model's files are opened. Make one with Checkpoint or File.
type Model struct {
	Format string       // Safetensors, or the name that was given to File
	Config model.Config // zero if the files say
	Files  int          // how many inputs of an op are the model's

	open Opener
}

// Checkpoint is a model in safetensors: shards of a checkpoint and, in any order among
// them, codes that replace some of its tensors and the rotation of the codes.
func Checkpoint(c model.Config, files int) Model {
	return Model{Format: Safetensors, Config: c, Files: files, open: func(in []*io.SectionReader) (*model.Config, model.Source, error) {
		w, err := quantize.OpenWeights(in)
		return &c, w, err
	}}
}

// File is a model in one file of a format that open reads, its config included.
func File(format string, open Opener) Model { return Model{Format: format, Files: 1, open: open} }

// opened is a model whose files are open.
type opened struct {
	config *model.Config
	source model.Source
}

func (m Model) opened(in []*io.SectionReader) (*opened, error) {
	if m.open == nil {
		return nil, fmt.Errorf("no way to open a model of format %q", m.Format)
	}
	c, src, err := m.open(in)
	if err != nil {
		return nil, fmt.Errorf("open %s model: %w", m.Format, err)
	}
	return &opened{c, src}, nil
}

func (o *opened) close() {
	if c, ok := o.source.(io.Closer); ok {
		_ = c.Close() // of files read
	}
}

// head returns how rows of the head are read, [vocab, hidden].
func (o *opened) head() (head, error) {
	name, width := o.config.HeadName(), o.config.Hidden
	if r, ok := o.source.(rowReader); ok {
		return func(x []float32, row int) error { return r.ReadFloats(name, x, int64(row)*int64(width)) }, nil
	}
	all, err := o.source.Floats(name)
	if err != nil {
		return nil, err
	}
	if len(all) != o.config.Vocab*width {
		return nil, fmt.Errorf("tensor %s: %d elements, want %d × %d", name, len(all), o.config.Vocab, width)
	}
	return func(x []float32, row int) error {
		copy(x, all[row*width:])
		return nil
	}, nil
}

// A head fills x, [n, hidden], with the rows of the head from row on.
type head = func(x []float32, row int) error

// A rowReader is a source that reads a part of a tensor.
type rowReader interface {
	ReadFloats(name string, x []float32, first int64) error
}

// A machine is what an op computes on. It never changes a result.
type machine struct {
	engine  *mlx.Engine
	threads int // 0 means GOMAXPROCS
}

var errNoEngine = errors.New("no tensor engine")

// step reports progress below 1 and returns ctx's error.
func step(ctx context.Context, report func(float64, string), done, all int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if done < all {
		report(float64(done)/float64(all), "")
	}
	return nil
}
