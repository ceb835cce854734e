package rules

import (
	"io"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/evaluate"
	"bonsai/ops/gguf"
	"bonsai/ops/model"
	"bonsai/ops/prism"
)

// A File is the value of a checkpoint step whose model is a GGUF file.
type File struct {
	Config *model.Config

	bytes int64
	file  *engine.Artifact
}

// Kind says in a diagnostic what this is.
func (*File) Kind() string { return "a GGUF file" }

// Artifacts returns what a target of the step builds.
func (f *File) Artifacts() []*engine.Artifact { return []*engine.Artifact{f.file} }

// openFile reads the head of a GGUF file.
func openFile(x *Expansion, path string, at hcl.Range) (*File, hcl.Diagnostics) {
	size, d := fileSize(x, path, at)
	if d != nil {
		return nil, hcl.Diagnostics{d}
	}
	f, err := x.open(path)
	if err != nil {
		return nil, hcl.Diagnostics{Mistake(at, "Unusable file", "%v.", err)}
	}
	defer f.Close()
	c, err := readConfig(f, size, path)
	if err != nil {
		return nil, hcl.Diagnostics{Mistake(at, "Unusable checkpoint", "%v.", err)}
	}
	return &File{Config: c, bytes: size, file: x.Graph.Source(path)}, nil
}

func readConfig(r io.ReaderAt, size int64, path string) (*model.Config, error) {
	head, err := gguf.Open(r, size, path)
	if err != nil {
		return nil, err
	}
	c, _, err := prism.Load(head)
	return c, err
}

// openGGUF opens a model in one file, for the ops of evaluate.
func openGGUF(in []*io.SectionReader) (*model.Config, model.Source, error) {
	f, err := gguf.Open(in[0], in[0].Size(), "model")
	if err != nil {
		return nil, nil, err
	}
	return prism.Load(f)
}

// A scored is a step's value that an evaluation can run: with all its files, or with
// those alone that hold its head.
type scored interface {
	scored() (evaluate.Model, []*engine.Artifact)
	head() (evaluate.Model, []*engine.Artifact)
	settings() *model.Config
}

func (f *File) scored() (evaluate.Model, []*engine.Artifact) {
	return evaluate.File("gguf", openGGUF), []*engine.Artifact{f.file}
}
func (f *File) head() (evaluate.Model, []*engine.Artifact) { return f.scored() }
func (f *File) settings() *model.Config                    { return f.Config }

func (g *GGUF) scored() (evaluate.Model, []*engine.Artifact) {
	return evaluate.File("gguf", openGGUF), []*engine.Artifact{g.file}
}
func (g *GGUF) head() (evaluate.Model, []*engine.Artifact) { return g.scored() }
func (g *GGUF) settings() *model.Config                    { return g.Weights.Checkpoint.Config }

func (w *Weights) scored() (evaluate.Model, []*engine.Artifact) {
	in := append([]*engine.Artifact{w.Rotation.signs}, w.codes...)
	in = append(in, w.Checkpoint.shards...)
	return evaluate.Checkpoint(*w.settings(), len(in)), in
}
func (w *Weights) head() (evaluate.Model, []*engine.Artifact) { return w.scored() }
func (w *Weights) settings() *model.Config                    { return w.Checkpoint.Config }

func (c *Checkpoint) scored() (evaluate.Model, []*engine.Artifact) {
	return evaluate.Checkpoint(*c.Config, len(c.shards)), c.shards
}

func (c *Checkpoint) head() (evaluate.Model, []*engine.Artifact) {
	in := c.shardsOf(c.Config.HeadName())
	return evaluate.Checkpoint(*c.Config, len(in)), in
}
func (c *Checkpoint) settings() *model.Config { return c.Config }
