// Package compare says how two files of artifacts differ: GGUF and safetensors tensor by
// tensor, codes as codes, JSON value by value, anything else byte by byte.
//
// It streams: what it holds does not grow with the tensors. It does not know which step
// made a file. Start at Files.
package compare

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"bonsai/ops/gguf"
	"bonsai/ops/safetensors"
)

// A File is one of the two that are compared.
type File struct {
	Name string // for errors, and its ending says what it is if the bytes do not
	R    io.ReaderAt
	Size int64
}

// A Status says how a part of two files compares.
type Status string

// How parts compare.
const (
	Equal   Status = "equal"
	Differs Status = "differs"
	Added   Status = "added"   // only the second file has it
	Removed Status = "removed" // only the first file has it
)

// The formats that are told apart.
const (
	GGUF        = "gguf"
	Codes       = "codes" // safetensors with NAME.codes and NAME.scales
	Safetensors = "safetensors"
	JSON        = "json"
	Bytes       = "bytes"
)

// A Report says how two files differ. Both have one format, else they are compared as
// bytes.
type Report struct {
	Format string   `json:"format"`
	Sizes  [2]int64 `json:"sizes"`
	Same   bool     `json:"same"` // no part differs; the bytes may

	Metadata []Value  `json:"metadata,omitempty"` // what differs of it
	Tensors  []Tensor `json:"tensors,omitempty"`  // all, in the order of the first file; then those added
	Values   []Value  `json:"values,omitempty"`   // of JSON, all, in order

	// First is the offset of the first byte that differs, or -1; of Bytes alone.
	First int64 `json:"first_difference"`
}

// A Value is one key of metadata or one value of a JSON file, as text.
type Value struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// A Layout is how a tensor is stored.
type Layout struct {
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"` // outermost axis first
}

// A Tensor says how a tensor of two files compares.
type Tensor struct {
	Name   string  `json:"name"`
	Status Status  `json:"status"`
	Old    *Layout `json:"old,omitempty"`
	New    *Layout `json:"new,omitempty"`
	Note   string  `json:"note,omitempty"` // why it could not be compared by its values

	Ternary *Ternary `json:"ternary,omitempty"` // of two ternary tensors that differ
	Float   *Float   `json:"float,omitempty"`   // of two others that differ and have one shape
}

// Ternary is how ternary tensors of one shape differ.
type Ternary struct {
	Elements int64      `json:"elements"`
	Codes    float64    `json:"codes"`  // share of the codes that differ, in [0, 1]
	Flips    float64    `json:"flips"`  // share that changed their sign, +1 to −1 or back
	Scales   float64    `json:"scales"` // RMS of the scales' difference over the RMS of the first file's
	Zeros    [2]float64 `json:"zeros"`  // share of zeros in each
}

// Float is how tensors of floats of one shape differ.
type Float struct {
	Max      float64 `json:"max"`      // largest absolute difference
	Relative float64 `json:"relative"` // RMS of the difference over the RMS of the first file's
}

// Files compares two files. Errors of reading, and those of a file that begins as GGUF and
// is none, name the file.
func Files(ctx context.Context, a, b File) (*Report, error) {
	first, err := open(a)
	if err != nil {
		return nil, err
	}
	second, err := open(b)
	if err != nil {
		return nil, err
	}
	r := &Report{Format: first.format, Sizes: [2]int64{a.Size, b.Size}, Same: true, First: -1}
	if second.format != first.format {
		r.Format = Bytes
	}
	switch r.Format {
	case JSON:
		r.Values = values(first.values, second.values)
	case Bytes:
		r.First, err = firstDifference(ctx, io.NewSectionReader(a.R, 0, a.Size), io.NewSectionReader(b.R, 0, b.Size))
		r.Same = r.First < 0
	default:
		r.Metadata = changed(values(first.values, second.values))
		r.Tensors, err = tensors(ctx, first.tensors, second.tensors)
	}
	for _, v := range append(r.Metadata, r.Values...) {
		r.Same = r.Same && v.Status == Equal
	}
	for _, t := range r.Tensors {
		r.Same = r.Same && t.Status == Equal
	}
	return r, err
}

// A content is what was found in a file.
type content struct {
	format  string
	values  []value
	tensors []tensor
}

// open finds out what a file is.
func open(f File) (*content, error) {
	var head [9]byte
	if _, err := f.R.ReadAt(head[:min(f.Size, 9)], 0); err != nil && f.Size > 9 {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if string(head[:4]) == "GGUF" || filepath.Ext(f.Name) == ".gguf" {
		g, err := gguf.Open(f.R, f.Size, f.Name)
		if err != nil {
			return nil, err
		}
		return &content{GGUF, metaOf(g.Meta()), ggufTensors(g)}, nil
	}
	if head[8] == '{' || filepath.Ext(f.Name) == ".safetensors" {
		s, err := safetensors.Open(f.R, f.Size, f.Name)
		if err == nil {
			c := &content{format: Safetensors, values: textsOf(s.Metadata())}
			c.tensors, c.format = safeTensors(s)
			return c, nil
		}
		if filepath.Ext(f.Name) == ".safetensors" {
			return nil, err
		}
	}
	if list, ok := jsonValues(f, head[0]); ok {
		return &content{format: JSON, values: list}, nil
	}
	return &content{format: Bytes}, nil
}
