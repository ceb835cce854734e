package prism

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bonsai/ops/gguf"
	"bonsai/ops/quantize"
)

// The keys of the contract and the values that they must have.
const (
	prefix       = "prism.hadamard."
	transform    = "normalized-sylvester-walsh-hadamard"
	axis         = "input-last-dimension"
	signExplicit = "explicit"
	signIdentity = "identity"
)

// A Rotation is the contract of a file: which tensors are stored as W S H, with which
// signs and block.
type Rotation struct {
	Version int            // 1, or 2 for a table that is embedding and head at once
	Block   int            // of the Hadamard transform, a power of two
	Signs   map[int][]int8 // by input width, each ±1; nil for no signs
	Tensors []string       // whose input the runtime rotates
	Inverse bool           // token_embd.weight holds rotated rows
}

// contract returns the keys for the ternary tensors of a layout.
func contract(l *Layout, signs *quantize.Signs) ([]gguf.KV, error) {
	var names []string
	var widths, values []int32
	inverse := false
	for _, t := range l.Tensors {
		if !t.Type.IsTernary() {
			continue
		}
		if width := int32(t.Shape[1]); !slices.Contains(widths, width) {
			widths = append(widths, width)
		}
		if t.Name == embedName {
			inverse = true
		} else {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("only the embedding is ternary, which prism.hadamard cannot say")
	}
	slices.Sort(widths)
	for _, w := range widths {
		s, err := signs.Of(int(w))
		if err != nil {
			return nil, err
		}
		for _, v := range s {
			values = append(values, int32(v))
		}
	}
	keys := []gguf.KV{
		{Key: prefix + "version", Value: uint32(1)},
		{Key: prefix + "block_size", Value: uint32(signs.Block)},
		{Key: prefix + "transform", Value: transform},
		{Key: prefix + "axis", Value: axis},
		{Key: prefix + "sign_mode", Value: signExplicit},
		{Key: prefix + "sign_widths", Value: widths},
		{Key: prefix + "sign_values", Value: values},
		{Key: prefix + "weight_names", Value: names},
	}
	if inverse {
		keys = append(keys, gguf.KV{Key: prefix + "inverse_weight_names", Value: []string{embedName}})
	}
	return keys, nil
}

// ReadRotation returns the contract of a file, or nil if it has none.
//
// Errors wrap gguf.ErrFormat and name the key: all that Prism's loader refuses, and a
// file with some of the keys but no version, which it would run without rotating.
func ReadRotation(f *gguf.File) (*Rotation, error) {
	if _, ok := f.Value(prefix + "version"); !ok {
		for _, kv := range f.Meta() {
			if strings.HasPrefix(kv.Key, prefix) {
				return nil, refuse(f, "key %s without %sversion", kv.Key, prefix)
			}
		}
		return nil, nil
	}
	r := &Rotation{}
	for _, step := range []func(*gguf.File) error{r.readVersion, r.readTransform, r.readNames, r.readSigns, r.checkTensors} {
		if err := step(f); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// refuse returns an error about a file that wraps gguf.ErrFormat.
func refuse(f *gguf.File, format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", f.Name(), gguf.ErrFormat, fmt.Sprintf(format, args...))
}

func (r *Rotation) readVersion(f *gguf.File) error {
	tied, err := optional(f, prefix+"tied_output", false)
	if err != nil {
		return err
	}
	if _, err := optional(f, prefix+"gdn_v_grouped", false); err != nil {
		return err
	}
	version, err := gguf.Get[uint32](f, prefix+"version")
	if err != nil {
		return err
	}
	if version != 1 && version != 2 {
		return refuse(f, "key %sversion is %d, not 1 or 2", prefix, version)
	}
	if tied != (version == 2) {
		return refuse(f, "key %sversion is %d and %stied_output %v", prefix, version, prefix, tied)
	}
	r.Version = int(version)
	return nil
}

// optional returns the value of a key, or absent if there is none.
func optional[T any](f *gguf.File, key string, absent T) (T, error) {
	v, err := gguf.Get[T](f, key)
	if errors.Is(err, gguf.ErrMissing) {
		return absent, nil
	}
	return v, err
}

func (r *Rotation) readTransform(f *gguf.File) error {
	block, err := gguf.Get[uint32](f, prefix+"block_size")
	if err != nil {
		return err
	}
	if block == 0 || block&(block-1) != 0 || block > 1<<30 {
		return refuse(f, "key %sblock_size is %d, not a power of two", prefix, block)
	}
	r.Block = int(block)
	for key, want := range map[string]string{"transform": transform, "axis": axis} {
		got, err := gguf.Get[string](f, prefix+key)
		if err != nil {
			return err
		}
		if got != want {
			return refuse(f, "key %s%s is %q, not %q", prefix, key, got, want)
		}
	}
	return nil
}

func (r *Rotation) readNames(f *gguf.File) (err error) {
	if r.Tensors, err = gguf.Get[[]string](f, prefix+"weight_names"); err != nil {
		return err
	}
	inverse, err := optional(f, prefix+"inverse_weight_names", []string(nil))
	if err != nil {
		return err
	}
	if len(r.Tensors) == 0 {
		return refuse(f, "key %sweight_names is empty", prefix)
	}
	seen := map[string]bool{}
	for _, name := range append(slices.Clone(r.Tensors), inverse...) {
		if seen[name] {
			return refuse(f, "key %sweight_names or inverse_weight_names: %q comes twice", prefix, name)
		}
		seen[name] = true
	}
	for _, name := range inverse {
		if name != embedName {
			return refuse(f, "key %sinverse_weight_names: %q is not %s", prefix, name, embedName)
		}
	}
	r.Inverse = len(inverse) > 0
	return nil
}

// readSigns reads the signs of every width.
func (r *Rotation) readSigns(f *gguf.File) error {
	mode, err := gguf.Get[string](f, prefix+"sign_mode")
	if err != nil {
		return err
	}
	if mode == signIdentity {
		return nil
	}
	if mode != signExplicit {
		return refuse(f, "key %ssign_mode is %q, not %s or %s", prefix, mode, signExplicit, signIdentity)
	}
	widths, err := int32s(f, prefix+"sign_widths")
	if err != nil {
		return err
	}
	values, err := int32s(f, prefix+"sign_values")
	if err != nil {
		return err
	}
	if len(widths) == 0 {
		return refuse(f, "key %ssign_widths is empty", prefix)
	}
	r.Signs = map[int][]int8{}
	for _, w := range widths {
		if w <= 0 || int(w)%r.Block != 0 || int(w) > len(values) || r.Signs[int(w)] != nil {
			return refuse(f, "key %ssign_widths: %d, with blocks of %d and %d values left, or it comes twice", prefix, w, r.Block, len(values))
		}
		signs := make([]int8, w)
		for i, v := range values[:w] {
			if v != 1 && v != -1 {
				return refuse(f, "key %ssign_values: %d is not 1 or -1", prefix, v)
			}
			signs[i] = int8(v)
		}
		r.Signs[int(w)], values = signs, values[w:]
	}
	if len(values) > 0 {
		return refuse(f, "key %ssign_values: %d values more than sign_widths", prefix, len(values))
	}
	return nil
}

// int32s returns an array of int32, or of uint32 with the same bits.
func int32s(f *gguf.File, key string) ([]int32, error) {
	unsigned, err := gguf.Get[[]uint32](f, key)
	if err != nil {
		return gguf.Get[[]int32](f, key)
	}
	list := make([]int32, len(unsigned))
	for i, v := range unsigned {
		list[i] = int32(v)
	}
	return list, nil
}

// checkTensors compares the contract with the tensors of the file.
func (r *Rotation) checkTensors(f *gguf.File) error {
	_, hasHead := f.Lookup(headName)
	switch {
	case r.Version == 2 && hasHead:
		return refuse(f, "key %stied_output with a tensor %s", prefix, headName)
	case r.Version == 2 && !r.Inverse:
		return refuse(f, "key %stied_output without %s in inverse_weight_names", prefix, embedName)
	case r.Version == 1 && r.Inverse && !hasHead:
		return refuse(f, "key %sinverse_weight_names with no tensor %s under version 1", prefix, headName)
	}
	names := slices.Clone(r.Tensors)
	if r.Inverse {
		names = append(names, embedName)
	}
	for _, name := range names {
		if name != embedName && !isRotatable(name) || name == embedName && !r.Inverse {
			return refuse(f, "key %sweight_names: %q is no tensor whose input can be rotated", prefix, name)
		}
		t, ok := f.Lookup(name)
		if !ok {
			return refuse(f, "key %sweight_names: no tensor %q in the file", prefix, name)
		}
		width := int(t.Width())
		if width%r.Block != 0 {
			return refuse(f, "tensor %s: width %d is not a multiple of %sblock_size %d", name, width, prefix, r.Block)
		}
		if r.Signs != nil && r.Signs[width] == nil {
			return refuse(f, "tensor %s: width %d is not in %ssign_widths", name, width, prefix)
		}
	}
	return nil
}

// isRotatable reports whether Prism's loader accepts a name in weight_names.
func isRotatable(name string) bool {
	if name == headName {
		return true
	}
	parts := strings.Split(name, ".")
	if len(parts) != 4 || parts[0] != "blk" || parts[3] != "weight" || parts[1] == "" || strings.Trim(parts[1], "0123456789") != "" {
		return false
	}
	return slices.Contains([]string{
		"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_gate", "attn_output", "ffn_gate", "ffn_up", "ffn_down",
		"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps", "ffn_gate_shexp", "ffn_up_shexp",
		"ffn_down_shexp", "ssm_out",
	}, parts[2])
}
