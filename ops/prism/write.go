package prism

import (
	"context"
	"errors"
	"fmt"
	"io"

	"bonsai/ops"
	"bonsai/ops/gguf"
)

// Write makes a GGUF file of a checkpoint and the codes of its ternary tensors.
//
// Inputs: first the files that Files names; then, in any order, the rotation of the codes
// and all files of codes and shards of the checkpoint. Codes are needed for the tensors in
// Ternary and refused for others.
//
// The output is the file, written tensor by tensor with none held: matrices that are not
// ternary as BF16, vectors as F32.
//
// Errors are those of Plan, of reading, and of tensors that do not fit config.json; they
// name the tensor.
type Write struct {
	Format  string   // one of Formats
	Name    string   // general.name
	Context int      // context_length in tokens; 0 for the config's
	Ternary []string // tensors that have codes, by the checkpoint's names
	Files   []string // names of the first inputs: ConfigFile, TokenizerFile and any of the optional ones
}

// AppendText implements engine.Op.
func (w Write) AppendText(b []byte) ([]byte, error) { return ops.AppendManifest(b, "gguf.write", 1, w) }

// Peak returns the most bytes that Run holds, beside mapped files.
func (w Write) Peak() int64 { return 256 << 20 }

// Run implements engine.Op.
func (w Write) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) (err error) {
	o, err := w.open(in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	f, err := gguf.NewWriter(out[0], o.meta, o.layout.specs())
	if err != nil {
		return err
	}
	var done int64
	for _, t := range o.layout.Tensors {
		report(float64(done)/float64(o.layout.Bytes+1), t.Name)
		if err := o.writeTensor(ctx, f, t); err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		done += padded(t.Bytes)
	}
	if err := f.Close(); err != nil {
		return err
	}
	report(1, fmt.Sprintf("%d tensors, %d of them %s, %.3f bits a weight", len(o.layout.Tensors), o.layout.Ternary(), w.Format, o.layout.BitsPerWeight()))
	return nil
}

func (o *inputs) writeTensor(ctx context.Context, f *gguf.Writer, t Tensor) error {
	return o.chunks(t, func(c chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.Type.IsTernary() {
			return f.WriteCodes(t.Name, c.codes, c.scales)
		}
		return f.WriteFloats(t.Name, c.floats)
	})
}
