package rules

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/prism"
)

// A GGUF is the value of a gguf step: a file that Prism's llama.cpp fork loads, and the
// report of its verification.
type GGUF struct {
	Weights *Weights
	Layout  *prism.Layout // tensors and sizes, known before anything runs

	name, format string
	file, report *engine.Artifact
}

// Kind says in a diagnostic what this is.
func (*GGUF) Kind() string { return "a GGUF file" }

// Artifacts returns what a target of the step builds: the file, and its verification.
func (g *GGUF) Artifacts() []*engine.Artifact { return []*engine.Artifact{g.file, g.report} }

// FileName is the name of the file in a target's folder.
func (g *GGUF) FileName() string { return g.name + "-" + g.format + ".gguf" }

type ggufBlock struct {
	Weights hcl.Expression `hcl:"weights"`
	Format  string         `hcl:"format,optional"`
	Name    string         `hcl:"name"`
	Context int            `hcl:"context,optional"`
}

// ggufRule writes a GGUF file of Prism's layout, reads it back and compares.
type ggufRule struct{ settings Settings }

// Schema implements Described.
func (ggufRule) Schema() Schema {
	return SchemaOf(ggufBlock{}, "Writes a GGUF file that Prism's llama.cpp fork loads, reads it back and compares.", map[string]Attribute{
		"weights": {Refers: []string{"codes", "endpoints"}, Doc: "What is ternary in the file."},
		"name":    {Doc: "The file's name, to which format and .gguf are added."},
		"format":  {Default: strconv.Quote(prism.Formats()[0]), Values: prism.Formats(), Doc: "How the codes are packed."},
		"context": {Absent: "the model's context", Range: "tokens", Doc: "The context length that the file states."},
	})
}

// Expand implements Rule.
func (r ggufRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := decode[ggufBlock](body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	if block.Format == "" {
		block.Format = prism.Formats()[0]
	}
	w, more := referenceTo[*Weights](block.Weights, ctx, "codes or endpoints")
	diags = append(diags, more...)
	if !slices.Contains(prism.Formats(), block.Format) {
		diags = append(diags, Mistake(attributeRange(body, "format", x.Range), "Unknown format",
			"The formats are %s; this is %q.", strings.Join(prism.Formats(), ", "), block.Format))
	}
	if block.Name == "" || strings.ContainsAny(block.Name, `/\`) || strings.HasPrefix(block.Name, ".") {
		diags = append(diags, Mistake(attributeRange(body, "name", x.Range), "Unusable name",
			"The name becomes that of a file: it must not be empty, begin with a dot or hold a slash."))
	}
	if block.Context < 0 || block.Context > math.MaxUint32 {
		diags = append(diags, Mistake(attributeRange(body, "context", x.Range), "Context out of range",
			"The context is a number of tokens up to %d, or 0 for the model's own; this is %d.", math.MaxUint32, block.Context))
	}
	if diags.HasErrors() {
		return nil, diags
	}
	diags = append(diags, w.Checkpoint.needTokenizer(block.Weights.Range())...)
	layout, err := prism.Plan(w.Checkpoint.Config, block.Format, w.ternaryNames(), block.Context)
	if err != nil {
		diags = append(diags, Mistake(block.Weights.Range(), "Model that the format cannot express",
			"%s. Nothing was run.", capital(err.Error())))
	}
	if diags.HasErrors() {
		return nil, diags
	}
	g := &GGUF{Weights: w, Layout: layout, name: block.Name, format: block.Format}
	g.add(x, r.settings, block.Context)
	return g, diags
}

// add adds the actions that write and verify the file.
func (g *GGUF) add(x *Expansion, s Settings, context int) {
	w := g.Weights
	files, in := w.Checkpoint.metadataFiles()
	op := prism.Write{Format: g.format, Name: g.name, Context: context, Ternary: w.ternaryNames(), Files: files}
	in = append(append(append(in, w.Rotation.signs), w.codes...), w.Checkpoint.shards...)
	g.file = x.add("write", op, work{peak: op.Peak()}, in, engine.Output{Size: g.Layout.Bytes})[0]

	verify := prism.Verify{Write: op}.On(s.Engine)
	peak := verify.Peak(w.Checkpoint.Config)
	in = append([]*engine.Artifact{g.file}, in...)
	g.report = x.add("verify", verify, work{peak: peak}, in, engine.Output{Size: 4096})[0]
}

// ternaryNames returns the names of the tensors with codes.
func (w *Weights) ternaryNames() (names []string) {
	for _, t := range w.Ternary {
		names = append(names, t.Name)
	}
	return names
}
