package gguf

import (
	"fmt"
	"math"
)

// A Type is ggml's number for the layout of a tensor's elements.
type Type uint32

// The types that this package decodes and writes.
const (
	F32  Type = 0
	F16  Type = 1
	BF16 Type = 30
	PQ2  Type = 142 // Prism's 2-bit fields: 34 bytes for 128 weights, scale first
	PTQ1 Type = 143 // Prism's base-3 digits: 28 bytes for 128 weights, scale last
)

// legacyQ2 is upstream's Q2_0, 18 bytes for 64 weights, and in files of Prism's fork from
// before July 2026 what is PQ2_0 now.
const legacyQ2 Type = 42

// A layout is the name of a type and how many bytes a block of weights takes, 0 where
// that is not settled.
type layout struct {
	name           string
	weights, bytes int64
}

// layouts is the type table of ggml and of Prism's fork. Source: ggml.h and the block
// structures of ggml-common.h; for 142 and 143 the published files.
func layouts(t Type) (layout, bool) {
	switch t {
	case F32:
		return layout{"F32", 1, 4}, true
	case F16:
		return layout{"F16", 1, 2}, true
	case BF16:
		return layout{"BF16", 1, 2}, true
	case PQ2:
		return layout{"PQ2_0", 128, 34}, true
	case PTQ1:
		return layout{"PTQ1_0", 128, 28}, true
	case legacyQ2:
		return layout{name: "Q2_0"}, true
	case 34:
		return layout{"TQ1_0", 256, 54}, true
	case 35:
		return layout{"TQ2_0", 256, 66}, true
	case 41:
		return layout{"Q1_0", 128, 18}, true
	default:
		return upstream(t)
	}
}

// upstream is the part of the table that ternary files have no use for.
func upstream(t Type) (layout, bool) {
	table := [...]layout{
		2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24},
		8: {"Q8_0", 32, 34}, 9: {name: "Q8_1"}, 10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110},
		12: {"Q4_K", 256, 144}, 13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {name: "Q8_K"},
		16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98},
		19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110},
		22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136}, 24: {"I8", 1, 1}, 25: {"I16", 1, 2},
		26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8}, 29: {"IQ1_M", 256, 56},
		39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36},
	}
	if int64(t) >= int64(len(table)) || table[t].name == "" {
		return layout{}, false
	}
	return table[t], true
}

// String returns ggml's name of the type, or its number.
func (t Type) String() string {
	if l, ok := layouts(t); ok {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Block returns how many weights share a block and the block's bytes; ok is false where
// that is not known.
func (t Type) Block() (weights, bytes int64, ok bool) {
	l, known := layouts(t)
	return l.weights, l.bytes, known && l.bytes > 0
}

// IsTernary reports whether Codes can read the type: PTQ1_0 and PQ2_0.
func (t Type) IsTernary() bool { return t == PTQ1 || t == PQ2 }

// Size returns the bytes of a tensor of that type and shape, outermost axis first.
// Errors wrap ErrFormat: a layout that is not known, a width that is not a whole number
// of blocks, a shape that overflows.
func (t Type) Size(shape []int64) (int64, error) {
	weights, bytes, ok := t.Block()
	if !ok {
		return 0, refuse("%v: size not known", t)
	}
	if err := checkShape(shape); err != nil {
		return 0, err
	}
	width := int64(1)
	if len(shape) > 0 {
		width = shape[len(shape)-1]
	}
	if width%weights != 0 {
		return 0, refuse("%v: width %d is not a multiple of %d", t, width, weights)
	}
	blocks := elements(shape) / weights
	if blocks > math.MaxInt64/bytes {
		return 0, refuse("shape %v overflows", shape)
	}
	return blocks * bytes, nil
}

// maxRank is the most axes of a tensor, as in ggml.
const maxRank = 4

// checkShape refuses a shape whose elements cannot be counted.
func checkShape(shape []int64) error {
	if len(shape) > maxRank {
		return refuse("%d axes, more than %d", len(shape), maxRank)
	}
	n := int64(1)
	for _, d := range shape {
		if d <= 0 {
			return refuse("shape %v", shape)
		}
		if n > math.MaxInt64/d {
			return refuse("shape %v overflows", shape)
		}
		n *= d
	}
	return nil
}

// elements returns the product of a shape that was checked.
func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// refuse returns an ErrFormat with its reason.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
