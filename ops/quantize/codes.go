package quantize

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"bonsai/kernels"
	"bonsai/ops"
	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// The methods of Codes.
const (
	GPTQ = "gptq" // each column corrected for the errors of those before it
	RTN  = "rtn"  // each group fitted by itself, as if the Hessian were a multiple of 1
)

// Tokens per column of the Hessian. With fewer than MinRatio it is noise: layers that look
// good alone make a model that is not, so Codes refuses; below WarnRatio, where the error on
// other tokens is some per cent above that of many, the note says so.
const (
	MinRatio  = 2
	WarnRatio = 16
)

// Codes quantizes the tensors that share one Hessian to −1, 0, 1 times a scale for each
// 128 rotated inputs.
//
// Inputs: 0 the Hessian; 1 the rotation; from 2 on the shards of the checkpoint that hold
// the tensors.
//
// Its output is a safetensors file with, for each tensor NAME, "NAME.codes", U8 [rows,
// cols/4] (2-bit fields, low bits first, each code+1), and "NAME.scales", F16 [rows,
// cols/128], both in the rotated basis. Its metadata: "method"; "damping" as used, which is
// more than asked for if the factor failed at first; "precision" of the factor, f32 or f64;
// "tokens" of the Hessian; "rotation", see Signs.Name; "error.NAME", the relative output
// error sqrt(tr(ΔHΔᵀ)/tr(WHWᵀ)) with the undamped H; and "zeros.NAME", the share of zeros.
//
// It returns a *FactorError rather than codes that GPTQ did not make.
type Codes struct {
	Tensors   []model.Tensor // each [rows, width], width a multiple of 128; in this order in the output
	Method    string         // GPTQ or RTN
	Damping   float64        // λ over the mean of the Hessian's diagonal; 0.01 is usual
	FewTokens bool           // accept a Hessian of fewer than MinRatio tokens a column

	on machine
}

// On returns c computing on that many threads, GOMAXPROCS if 0.
func (c Codes) On(threads int) Codes {
	c.on.threads = threads
	return c
}

// AppendText implements engine.Op.
func (c Codes) AppendText(b []byte) ([]byte, error) { return ops.AppendManifest(b, "codes", 1, c) }

// Run implements engine.Op.
func (c Codes) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := c.check(in); err != nil {
		return err
	}
	h, err := readHessian(in[0], c.width())
	if err != nil {
		return err
	}
	weights, signs, err := openRotated(in[1], in[2:])
	if err != nil {
		return err
	}
	defer weights.Close()
	q, err := c.quantizer(h, signs)
	if err != nil {
		return err
	}
	done, all := 0, c.rows()
	for _, t := range c.Tensors {
		err := q.tensor(ctx, weights, t, func(rows int) { report(float64(done+rows)/float64(all+1), "") })
		if err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		done += int(t.Shape[0])
	}
	if err := q.write(out[0], c.Method, h.tokens); err != nil {
		return err
	}
	report(1, q.note(c.Damping, h))
	return nil
}

func (c Codes) check(in []*io.SectionReader) error {
	if c.Method != GPTQ && c.Method != RTN {
		return fmt.Errorf("method %q is neither %s nor %s", c.Method, GPTQ, RTN)
	}
	if !(c.Damping >= 0 && c.Damping <= 100) {
		return fmt.Errorf("damping %g is not between 0 and 100", c.Damping)
	}
	if len(c.Tensors) == 0 {
		return fmt.Errorf("no tensors")
	}
	for _, t := range c.Tensors {
		switch {
		case len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1:
			return fmt.Errorf("tensor %s: shape %v is not a matrix", t.Name, t.Shape)
		case t.Shape[1]%kernels.Group != 0:
			return fmt.Errorf("tensor %s: width %d is not a multiple of %d", t.Name, t.Shape[1], kernels.Group)
		case int(t.Shape[1]) != c.width():
			return fmt.Errorf("tensor %s: width %d, but %s has %d", t.Name, t.Shape[1], c.Tensors[0].Name, c.width())
		}
	}
	return wantInputs(in, 3, "Hessian, rotation, weights")
}

func (c Codes) width() int { return int(c.Tensors[0].Shape[1]) }

// rows returns the rows of all tensors together.
func (c Codes) rows() (n int) {
	for _, t := range c.Tensors {
		n += int(t.Shape[0])
	}
	return n
}

func (c Codes) names() (names []string) {
	for _, t := range c.Tensors {
		names = append(names, t.Name)
	}
	return names
}

// quantizer factors the Hessian and returns what quantizes against it.
func (c Codes) quantizer(h *hessian, signs *Signs) (*quantizer, error) {
	if h.tokens > 0 && h.tokens < MinRatio*h.width && !c.FewTokens {
		return nil, fmt.Errorf("Hessian of %s: %d tokens for %d columns, at least %d a column are needed",
			list(c.names()), h.tokens, h.width, MinRatio)
	}
	s, err := signs.Of(h.width)
	if err != nil {
		return nil, err
	}
	q := &quantizer{h: h.values, width: h.width, signs: s, block: signs.Block, threads: c.on.threads}
	if q.rotation, err = signs.Name(h.width); err != nil || c.Method == RTN {
		return q, err
	}
	f, column, err := factorize(h.values, h.width, c.Damping, c.on.threads)
	if err != nil {
		return nil, &FactorError{Tensors: c.names(), Tokens: h.tokens, Width: h.width, Column: column, Damping: f.damping}
	}
	q.factor, q.gptq = f, kernels.NewGPTQ(f.r, h.width)
	return q, nil
}

// A quantizer quantizes rows against one Hessian.
type quantizer struct {
	h        []float32 // [width, width], undamped
	width    int
	signs    []int8
	block    int
	rotation string
	threads  int
	factor   *factor       // nil for RTN
	gptq     *kernels.GPTQ // nil for RTN

	made []quantized
}

// quantized is one tensor's codes.
type quantized struct {
	tensor       model.Tensor
	codes        []byte // [rows, width/4]
	scales       []byte // [rows, width/128] binary16, little-endian
	loss, energy float64
	zeros        int
}

// chunkRows is how many rows are quantized at a time.
const chunkRows = 1024

// tensor quantizes one tensor, some rows at a time.
func (q *quantizer) tensor(ctx context.Context, w *Weights, t model.Tensor, progress func(rows int)) error {
	rows := int(t.Shape[0])
	made := quantized{
		tensor: t,
		codes:  make([]byte, 0, rows*q.width/4),
		scales: make([]byte, 0, rows*q.width/kernels.Group*2),
	}
	for at := 0; at < rows; at += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := make([]float32, min(chunkRows, rows-at)*q.width)
		if err := w.ReadFloats(t.Name, x, int64(at)*int64(q.width)); err != nil {
			return err
		}
		kernels.Rotate(x, q.signs, q.block)
		if err := q.chunk(&made, x); err != nil {
			return fmt.Errorf("rows from %d: %w", at, err)
		}
		progress(at + len(x)/q.width)
	}
	q.made = append(q.made, made)
	return nil
}

// chunk quantizes some rows of rotated weights, which it overwrites.
func (q *quantizer) chunk(made *quantized, w []float32) error {
	codes, scales := make([]int8, len(w)), make([]uint16, len(w)/kernels.Group)
	made.energy += kernels.Energy(w, q.h, len(w)/q.width, q.width, q.threads)
	loss, err := q.fit(codes, scales, w)
	if err != nil {
		return err
	}
	made.loss += loss
	for _, c := range codes {
		if c == 0 {
			made.zeros++
		}
	}
	packed := make([]byte, len(codes)/4)
	kernels.PackCodes(packed, codes)
	made.codes = append(made.codes, packed...)
	for _, s := range scales {
		made.scales = binary.LittleEndian.AppendUint16(made.scales, s)
	}
	return nil
}

// fit writes codes and scales and returns tr(ΔHΔᵀ). It overwrites w with Δ.
func (q *quantizer) fit(codes []int8, scales []uint16, w []float32) (loss float64, err error) {
	if q.gptq == nil {
		for g := range scales {
			at := g * kernels.Group
			if scales[g], err = kernels.FitGroup(codes[at:at+kernels.Group], w[at:at+kernels.Group]); err != nil {
				return 0, fmt.Errorf("group %d: %w", g, err)
			}
		}
		subtract(w, codes, scales)
		return kernels.Energy(w, q.h, len(w)/q.width, q.width, q.threads), nil
	}
	damped, err := q.gptq.Quantize(codes, scales, w, q.threads)
	if err != nil {
		return 0, err
	}
	var square float64
	subtract(w, codes, scales)
	for _, d := range w {
		square += float64(d) * float64(d)
	}
	return max(0, damped-q.factor.lambda*square), nil
}

// subtract takes from w what its codes stand for.
func subtract(w []float32, codes []int8, scales []uint16) {
	x := make([]float32, len(w))
	kernels.Dequantize(x, codes, scales)
	for i, v := range x {
		w[i] -= v
	}
}

// write writes all tensors that were quantized.
func (q *quantizer) write(out io.Writer, method string, tokens int) error {
	metadata := map[string]string{"method": method, "rotation": q.rotation, "tokens": strconv.Itoa(tokens)}
	if q.factor != nil {
		metadata["damping"] = strconv.FormatFloat(q.factor.damping, 'g', -1, 64)
		metadata["precision"] = q.factor.precision()
	}
	var specs []safetensors.Spec
	for _, m := range q.made {
		name, rows := m.tensor.Name, m.tensor.Shape[0]
		metadata["error."+name] = strconv.FormatFloat(ratio(m.loss, m.energy), 'g', 6, 64)
		metadata["zeros."+name] = strconv.FormatFloat(float64(m.zeros)/float64(m.tensor.Size()), 'g', 6, 64)
		specs = append(specs,
			safetensors.Spec{Name: name + codesSuffix, DType: safetensors.U8, Shape: []int64{rows, int64(q.width) / 4}},
			safetensors.Spec{Name: name + scalesSuffix, DType: safetensors.F16, Shape: []int64{rows, int64(q.width) / kernels.Group}})
	}
	f, err := safetensors.NewWriter(out, specs, metadata)
	if err != nil {
		return err
	}
	for _, m := range q.made {
		if err := f.Write(m.tensor.Name+codesSuffix, m.codes); err != nil {
			return err
		}
		if err := f.Write(m.tensor.Name+scalesSuffix, m.scales); err != nil {
			return err
		}
	}
	return f.Close()
}

// note returns what is kept with the result: the error of all tensors together, the share
// of zeros, and whatever is not as it should be.
func (q *quantizer) note(asked float64, h *hessian) string {
	var loss, energy float64
	var zeros, size int64
	for _, m := range q.made {
		loss, energy = loss+m.loss, energy+m.energy
		zeros, size = zeros+int64(m.zeros), size+m.tensor.Size()
	}
	s := fmt.Sprintf("relative error %.3f, %.1f %% zeros", ratio(loss, energy), 100*float64(zeros)/float64(size))
	if q.factor != nil && q.factor.damping != asked {
		s += fmt.Sprintf(", damping %g because %g was too little", q.factor.damping, asked)
	}
	if h.tokens > 0 && h.tokens < WarnRatio*h.width {
		s += fmt.Sprintf(", only %.1f tokens a column", float64(h.tokens)/float64(h.width))
	}
	return s
}

// ratio returns the relative error of a loss against an energy, 0 if there was nothing to
// get wrong.
func ratio(loss, energy float64) float64 {
	if !(energy > 0) || !(loss > 0) {
		return 0
	}
	return math.Sqrt(loss / energy)
}

// list joins names; of more than three it counts the rest.
func list(names []string) string {
	if n := len(names); n > 3 {
		return fmt.Sprintf("%s and %d more", names[0], n-1)
	}
	return strings.Join(names, ", ")
}
