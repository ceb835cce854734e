package prism

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"bonsai/kernels"
	"bonsai/ops/gguf"
	"bonsai/ops/model"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
)

// The tensors of a file of codes: for each ternary tensor NAME, NAME.codes, U8 [rows,
// cols/4], and NAME.scales, F16 [rows, cols/128].
const (
	codesSuffix  = ".codes"
	scalesSuffix = ".scales"
)

// inputs are the opened inputs of a Write, checked against each other.
type inputs struct {
	config *model.Config
	layout *Layout
	meta   []gguf.KV
	base   *safetensors.Set // the checkpoint
	codes  *safetensors.Set
	signs  *quantize.Signs
	coded  *quantize.Weights // the checkpoint with codes over it

	files []*safetensors.File
}

// open reads the named files and opens the weights.
func (w Write) open(in []*io.SectionReader) (*inputs, error) {
	files, err := w.readFiles(in)
	if err != nil {
		return nil, err
	}
	o := &inputs{}
	if err := w.openAll(o, files, in[len(w.Files):]); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (w Write) openAll(o *inputs, files map[string][]byte, weights []*io.SectionReader) (err error) {
	if o.config, err = model.ParseConfig(files[ConfigFile]); err != nil {
		return err
	}
	if o.layout, err = Plan(o.config, w.Format, w.Ternary, w.Context); err != nil {
		return err
	}
	if err := o.openWeights(weights); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	o.meta, err = w.metadata(o, files)
	return err
}

// Close closes the weights.
func (o *inputs) Close() error {
	var errs []error
	for _, f := range o.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// readFiles reads the inputs that are not weights.
func (w Write) readFiles(in []*io.SectionReader) (map[string][]byte, error) {
	if len(in) < len(w.Files)+3 {
		return nil, fmt.Errorf("%d inputs, want %v, the rotation, codes and shards", len(in), w.Files)
	}
	files := map[string][]byte{}
	for i, name := range w.Files {
		if _, ok := files[name]; ok || !isFile(name) {
			return nil, fmt.Errorf("input %d: file %q is not known or comes twice", i, name)
		}
		b, err := io.ReadAll(io.NewSectionReader(in[i], 0, in[i].Size()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = b
	}
	for _, name := range []string{ConfigFile, TokenizerFile} {
		if _, ok := files[name]; !ok {
			return nil, fmt.Errorf("no input %s", name)
		}
	}
	return files, nil
}

func isFile(name string) bool {
	return slices.Contains([]string{ConfigFile, TokenizerFile, TokenizerConfigFile, GenerationFile, TemplateFile}, name)
}

// openWeights opens the rotation, codes and shards, in any order.
func (o *inputs) openWeights(in []*io.SectionReader) error {
	var shards, codes []*safetensors.File
	for i, r := range in {
		f, err := safetensors.OpenInput(r, inputName(r, i))
		if err != nil {
			return err
		}
		o.files = append(o.files, f)
		switch {
		case hasTensor(f, func(name string) bool { return strings.HasSuffix(name, codesSuffix) }):
			codes = append(codes, f)
		case hasTensor(f, func(name string) bool { return strings.HasPrefix(name, "signs.") }):
			if o.signs != nil {
				return fmt.Errorf("%s: a second rotation", f.Name())
			}
			if o.signs, err = quantize.ReadSigns(f); err != nil {
				return err
			}
		default:
			shards = append(shards, f)
		}
	}
	if o.signs == nil {
		return errors.New("no rotation among the inputs")
	}
	var err error
	if o.base, err = safetensors.NewSet(shards...); err != nil {
		return err
	}
	if o.codes, err = safetensors.NewSet(codes...); err != nil {
		return err
	}
	o.coded, err = quantize.Overlay(o.base, codes, o.signs)
	return err
}

func hasTensor(f *safetensors.File, is func(name string) bool) bool {
	return slices.ContainsFunc(f.Tensors(), func(t safetensors.Tensor) bool { return is(t.Name) })
}

// inputName returns the name of an input in errors, empty where it is that of a file on disk.
func inputName(r *io.SectionReader, i int) string {
	outer, _, _ := r.Outer()
	if _, ok := outer.(interface{ Name() string }); ok {
		return ""
	}
	return fmt.Sprintf("weights %d", i)
}

// check compares the weights with the layout: every tensor there is, and codes for just
// those that are to be ternary.
func (o *inputs) check() error {
	have := map[string][]int64{}
	for _, t := range o.base.Tensors() {
		have[t.Name] = t.Shape
	}
	if err := o.config.CheckTensors(have); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, t := range o.layout.Tensors {
		if !t.Type.IsTernary() {
			continue
		}
		wanted[t.From+codesSuffix], wanted[t.From+scalesSuffix] = true, true
		if err := o.checkCodes(t); err != nil {
			return fmt.Errorf("tensor %s: %w", t.From, err)
		}
	}
	for _, t := range o.codes.Tensors() {
		if !wanted[t.Name] {
			return fmt.Errorf("tensor %s: codes of a tensor that is not to be ternary", t.Name)
		}
	}
	return o.checkTied(have)
}

// checkCodes checks type and shape of a tensor's codes and scales.
func (o *inputs) checkCodes(t Tensor) error {
	rows, cols := t.Shape[0], t.Shape[1]
	for _, want := range []safetensors.Spec{
		{Name: t.From + codesSuffix, DType: safetensors.U8, Shape: []int64{rows, cols / 4}},
		{Name: t.From + scalesSuffix, DType: safetensors.F16, Shape: []int64{rows, cols / kernels.Group}},
	} {
		got, ok := o.codes.Lookup(want.Name)
		if !ok {
			return fmt.Errorf("to be ternary, but %s is in no file of codes", want.Name)
		}
		if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
			return fmt.Errorf("%s is %s %v, want %s %v", want.Name, got.DType, got.Shape, want.DType, want.Shape)
		}
	}
	return nil
}

// checkTied compares the two copies of a tied table, row by row, where a checkpoint holds
// both: if they differ, leaving one out would make another model.
func (o *inputs) checkTied(have map[string][]int64) error {
	const copyName = "lm_head.weight"
	shape, ok := have[copyName]
	if !ok || !o.config.Tied {
		return nil
	}
	if !slices.Equal(shape, have[model.EmbedName]) {
		return fmt.Errorf("tie_word_embeddings, but %s is %v and %s %v", copyName, shape, model.EmbedName, have[model.EmbedName])
	}
	a, b := make([]float32, shape[1]), make([]float32, shape[1])
	for row := range shape[0] {
		if err := o.base.ReadFloats(model.EmbedName, a, row*shape[1]); err != nil {
			return err
		}
		if err := o.base.ReadFloats(copyName, b, row*shape[1]); err != nil {
			return err
		}
		if !slices.Equal(a, b) {
			return fmt.Errorf("tie_word_embeddings, but row %d of %s and %s differ", row, model.EmbedName, copyName)
		}
	}
	return nil
}

// metadata returns all keys of the file.
func (w Write) metadata(o *inputs, files map[string][]byte) ([]gguf.KV, error) {
	_, fileType, err := formatOf(w.Format)
	if err != nil {
		return nil, err
	}
	v, err := newVocabulary(files, o.config.Vocab)
	if err != nil {
		return nil, err
	}
	tokens, err := v.keys(o.config.Vocab)
	if err != nil {
		return nil, err
	}
	rotation, err := contract(o.layout, o.signs)
	if err != nil {
		return nil, err
	}
	arch := o.layout.Arch
	return slices.Concat(
		general(arch, w.Name, fileType),
		architecture(arch, o.config, contextOf(o.config, w.Context)),
		tokens, rotation), nil
}

// A chunk is some whole rows of a tensor in the order of the file.
type chunk struct {
	first  int64    // element
	codes  []int8   // of ternary tensors
	scales []uint16 // of ternary tensors
	floats []float32
}

// chunkWeights is how many weights are held at a time, at least one row or, of
// interleaved tensors, one head.
const chunkWeights = 1 << 22

// chunks calls each with the contents of a tensor as the file is to hold them.
func (o *inputs) chunks(t Tensor, each func(chunk) error) error {
	if t.From == "" {
		return each(chunk{floats: freqs(o.config)})
	}
	rows, width := t.Shape[0], int64(1)
	if len(t.Shape) > 1 {
		width = t.Shape[1]
	}
	unit := int64(1)
	if t.interleaved {
		unit = int64(o.config.HeadDim)
	}
	step := max(chunkWeights/width/unit, 1) * unit
	for row := int64(0); row < rows; row += step {
		c, err := o.read(t, row*width, min(step, rows-row)*width)
		if err != nil {
			return err
		}
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

// read returns n elements of a tensor, whole rows or heads.
func (o *inputs) read(t Tensor, first, n int64) (chunk, error) {
	c := chunk{first: first}
	width := int(n)
	if t.interleaved {
		width = 1
		if len(t.Shape) > 1 {
			width = int(t.Shape[1])
		}
	}
	if !t.Type.IsTernary() {
		x := make([]float32, n)
		err := o.base.ReadFloats(t.From, x, first)
		c.floats = o.ordered(t, x, width)
		return c, err
	}
	codes, scales, err := o.readCodes(t.From, first, n)
	if err != nil || !t.interleaved {
		c.codes, c.scales = codes, scales
		return c, err
	}
	c.codes, c.scales = make([]int8, len(codes)), make([]uint16, len(scales))
	interleave(c.codes, codes, o.config.HeadDim, width)
	interleave(c.scales, scales, o.config.HeadDim, width/kernels.Group)
	return c, nil
}

// ordered returns x in the order of the file.
func (o *inputs) ordered(t Tensor, x []float32, width int) []float32 {
	if !t.interleaved {
		return x
	}
	y := make([]float32, len(x))
	interleave(y, x, o.config.HeadDim, width)
	return y
}

// readCodes returns n codes of a tensor from the first on, in the order of the checkpoint.
func (o *inputs) readCodes(name string, first, n int64) ([]int8, []uint16, error) {
	packed := make([]byte, n/4)
	if err := o.readAt(name+codesSuffix, packed, first/4); err != nil {
		return nil, nil, err
	}
	half := make([]byte, n/kernels.Group*2)
	if err := o.readAt(name+scalesSuffix, half, first/kernels.Group*2); err != nil {
		return nil, nil, err
	}
	codes, scales := make([]int8, n), make([]uint16, n/kernels.Group)
	kernels.UnpackCodes(codes, packed)
	for i := range scales {
		scales[i] = uint16(half[2*i]) | uint16(half[2*i+1])<<8
	}
	return codes, scales, nil
}

// readAt reads bytes of a tensor of the files of codes.
func (o *inputs) readAt(name string, b []byte, offset int64) error {
	f, err := o.codes.File(name)
	if err != nil {
		return err
	}
	s, err := f.Section(name)
	if err != nil {
		return err
	}
	if n, err := s.ReadAt(b, offset); n < len(b) {
		return fmt.Errorf("%s: read tensor %s: %w", f.Name(), name, err)
	}
	return nil
}
