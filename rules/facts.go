package rules

import "github.com/zclconf/go-cty/cty"

// Factual is what the value of a step may be: one that knows something before anything
// runs. The function facts of the language gives it to conditions.
type Factual interface {
	// Facts returns what is known, by name. The names and their types are the same for
	// all values of a type.
	Facts() map[string]cty.Value
}

func whole[T int | int64](n T) cty.Value { return cty.NumberIntVal(int64(n)) }

// Facts implements Factual: architecture, layers, hidden, intermediate, heads, vocabulary,
// context, tied, tensors, parameters, and bytes of the weights.
func (c *Checkpoint) Facts() map[string]cty.Value {
	var parameters int64
	tensors := c.Config.Tensors()
	for _, t := range tensors {
		parameters += t.Size()
	}
	return map[string]cty.Value{
		"architecture": cty.StringVal(c.Config.Type),
		"layers":       whole(c.Config.Layers),
		"hidden":       whole(c.Config.Hidden),
		"intermediate": whole(c.Config.Intermediate),
		"heads":        whole(c.Config.Heads),
		"vocabulary":   whole(c.Config.Vocab),
		"context":      whole(c.Config.Context),
		"tied":         cty.BoolVal(c.Config.Tied),
		"tensors":      whole(len(tensors)),
		"parameters":   whole(parameters),
		"bytes":        whole(c.bytes),
	}
}

// Facts implements Factual: architecture, layers, hidden, vocabulary, context and bytes
// of the file.
func (f *File) Facts() map[string]cty.Value {
	return map[string]cty.Value{
		"architecture": cty.StringVal(f.Config.Type),
		"layers":       whole(f.Config.Layers),
		"hidden":       whole(f.Config.Hidden),
		"vocabulary":   whole(f.Config.Vocab),
		"context":      whole(f.Config.Context),
		"bytes":        whole(f.bytes),
	}
}

// Facts implements Factual: bytes of the file of text.
func (d *Dataset) Facts() map[string]cty.Value {
	return map[string]cty.Value{"bytes": whole(d.bytes)}
}

// Facts implements Factual: length of a block, blocks, and tokens in all of them.
func (c *Calibration) Facts() map[string]cty.Value {
	return map[string]cty.Value{
		"length": whole(c.Length), "blocks": whole(c.Tokens / int64(c.Length)), "tokens": whole(c.Tokens),
	}
}

// Facts implements Factual: block of the Hadamard rotation, and the widths of inputs.
func (r *Rotation) Facts() map[string]cty.Value {
	var widths []cty.Value
	for _, w := range r.Widths {
		widths = append(widths, whole(w))
	}
	return map[string]cty.Value{"block": whole(r.Block), "widths": cty.ListVal(widths)}
}

// Facts implements Factual: method, damping, tensors and weights that are ternary, tokens of
// the calibration.
func (w *Weights) Facts() map[string]cty.Value {
	var weights int64
	for _, t := range w.Ternary {
		weights += t.Size()
	}
	return map[string]cty.Value{
		"method":  cty.StringVal(w.chosen.Method),
		"damping": cty.NumberFloatVal(w.chosen.damping()),
		"tensors": whole(len(w.Ternary)),
		"weights": whole(weights),
		"tokens":  whole(w.tokens),
	}
}

// Facts implements Factual: format, name of the file, planned bytes, tensors, weights and
// bits a weight.
func (g *GGUF) Facts() map[string]cty.Value {
	return map[string]cty.Value{
		"format":          cty.StringVal(g.format),
		"file":            cty.StringVal(g.FileName()),
		"bytes":           whole(g.Layout.Bytes),
		"tensors":         whole(len(g.Layout.Tensors)),
		"weights":         whole(g.Layout.Weights),
		"bits_per_weight": cty.NumberFloatVal(g.Layout.BitsPerWeight()),
	}
}

// Facts implements Factual: the names of the texts.
func (e *Evaluation) Facts() map[string]cty.Value {
	var texts []cty.Value
	for _, r := range e.reports {
		a, _ := r.Action()
		texts = append(texts, cty.StringVal(a.Name))
	}
	return map[string]cty.Value{"texts": cty.ListVal(texts)}
}
