package rules

import (
	"errors"
	"io/fs"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/dataset"
)

// A Dataset is the value of a dataset step: documents of text.
type Dataset struct {
	bytes     int64 // of the file of text
	documents *engine.Artifact
}

// Kind says in a diagnostic what this is.
func (*Dataset) Kind() string { return "a dataset" }

// Artifacts returns what a target of the step builds.
func (d *Dataset) Artifacts() []*engine.Artifact { return []*engine.Artifact{d.documents} }

type datasetBlock struct {
	Kind      string `hcl:"kind"`
	Path      string `hcl:"path"`
	Field     string `hcl:"field,optional"`
	Separator string `hcl:"separator,optional"`
	Articles  bool   `hcl:"articles,optional"`
	Trim      bool   `hcl:"trim,optional"`
	From      int    `hcl:"from,optional"`
	N         int    `hcl:"n,optional"`
}

// datasetRule reads one file of text.
type datasetRule struct{}

// Schema implements Described.
func (datasetRule) Schema() Schema {
	return SchemaOf(datasetBlock{}, "Reads one file of text, plain or compressed, as documents.", map[string]Attribute{
		"kind": {
			Values: []string{dataset.Text, dataset.WikiText, dataset.JSON, dataset.JSONL, dataset.Parquet},
			Doc:    "What the file is.",
		},
		"path":      {Doc: "The file, relative to the recipe's folder or absolute."},
		"field":     {Absent: "\"text\"", Doc: "Where the text is in an element of json, a line of jsonl or a row of parquet."},
		"separator": {Absent: "the file is one document", Doc: "What stands between the documents of a text."},
		"articles":  {Default: "false", Doc: "Makes each article of a wikitext a document."},
		"trim":      {Default: "false", Doc: "Removes white space at both ends of a document."},
		"from":      {Default: "0", Range: "rows, from 0", Doc: "How many rows to skip: documents, elements, lines or rows."},
		"n":         {Default: "0", Range: "rows, from 0; 0 takes all", Doc: "How many rows to take; fewer in the file are an error."},
	})
}

// Expand implements Rule.
func (datasetRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := decode[datasetBlock](body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	op := dataset.Documents{
		Kind: block.Kind, Field: block.Field, Separator: block.Separator,
		Articles: block.Articles, Trim: block.Trim, From: block.From, N: block.N,
	}
	if err := op.Check(); err != nil {
		diags = append(diags, Mistake(attributeRange(body, "kind", x.Range), "Settings that do not fit", "%s.", capital(err.Error())))
	}
	path := resolve(x.Dir, block.Path)
	size, d := fileSize(x, path, attributeRange(body, "path", x.Range))
	if d != nil {
		diags = append(diags, d)
	}
	if diags.HasErrors() {
		return nil, diags
	}
	in := []*engine.Artifact{x.Graph.Source(path)}
	return &Dataset{bytes: size, documents: x.add("", op, work{}, in, engine.Output{Size: size})[0]}, diags
}

// fileSize returns the size of a file in bytes, or what is wrong with its path.
func fileSize(x *Expansion, path string, at hcl.Range) (int64, *hcl.Diagnostic) {
	s, err := x.stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, Mistake(at, "File not found",
			"There is no file %s. Paths are relative to the recipe's folder, or absolute.", path)
	case err != nil:
		return 0, Mistake(at, "Unusable file", "%v.", err)
	case s.IsDir():
		return 0, Mistake(at, "File expected", "%s is a folder. Give the path of a file.", path)
	}
	return s.Size(), nil
}
