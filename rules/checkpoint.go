package rules

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// A Checkpoint is the value of a checkpoint step: a model in a folder of the Hugging
// Face layout, as its author saved it. A checkpoint that is a GGUF file is a *File.
type Checkpoint struct {
	Config *model.Config
	Dir    string

	bytes int64 // of the weights

	config, generation         *engine.Artifact // generation may be nil
	tokenizer, tokenizerConfig *engine.Artifact // either may be nil
	template                   *engine.Artifact // chat_template.jinja, or nil
	shards                     []*engine.Artifact
	shardOf                    map[string]*engine.Artifact
}

// Kind says in a diagnostic what this is.
func (*Checkpoint) Kind() string { return "a checkpoint" }

// Artifacts returns the checkpoint's files: building it checks that they can be read.
func (c *Checkpoint) Artifacts() []*engine.Artifact {
	return append([]*engine.Artifact{c.config}, c.shards...)
}

// shardsOf returns the files that hold the named tensors, each once, in their order.
func (c *Checkpoint) shardsOf(names ...string) []*engine.Artifact {
	wanted := map[*engine.Artifact]bool{}
	for _, n := range names {
		wanted[c.shardOf[n]] = true
	}
	var files []*engine.Artifact
	for _, s := range c.shards {
		if wanted[s] {
			files = append(files, s)
		}
	}
	return files
}

// layerNames returns the names of all tensors of one layer.
func (c *Checkpoint) layerNames(layer int) (names []string) {
	for _, t := range c.Config.LayerTensors(layer) {
		names = append(names, t.Name)
	}
	return names
}

type checkpointBlock struct {
	From string `hcl:"from"`
}

// checkpointRule reads a folder's config and the heads of its safetensors files while
// the recipe is read, so that what does not fit is known before anything runs.
type checkpointRule struct{}

// Schema implements Described.
func (checkpointRule) Schema() Schema {
	return SchemaOf(checkpointBlock{}, "Names a model that there is, as its author saved it.", map[string]Attribute{
		"from": {Doc: "A folder with config.json, safetensors files and a tokenizer or, to evaluate only, a GGUF file."},
	})
}

// Expand implements Rule.
func (checkpointRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := decode[checkpointBlock](body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	at := attributeRange(body, "from", x.Range)
	dir := resolve(x.Dir, block.From)
	if filepath.Ext(dir) == ".gguf" {
		f, d := openFile(x, dir, at)
		return f, append(diags, d...)
	}
	names, err := x.list(dir)
	if d := checkFolder(dir, block.From, names, err, at); d != nil {
		return nil, append(diags, d)
	}
	x.sawShards(dir, names)
	c, err := openCheckpoint(x, dir)
	if err != nil {
		return nil, append(diags, Mistake(at, "Unusable checkpoint", "%s: %v.", block.From, err))
	}
	return c, diags
}

// checkFolder returns what is wrong with a checkpoint's folder, given the names in it or
// why it could not be listed, before any file is read.
func checkFolder(dir, from string, names []string, err error, at hcl.Range) *hcl.Diagnostic {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Mistake(at, "Checkpoint not found",
			"There is no folder %s. Give the path of a folder with config.json and safetensors files, "+
				"relative to the recipe's folder or absolute.", dir)
	case err != nil:
		return Mistake(at, "Checkpoint not found", "%v. Give the path of a folder with config.json and safetensors files.", err)
	}
	if err := model.CheckFiles(names); err != nil {
		return Mistake(at, "Unusable checkpoint", "%s: %v.", from, err)
	}
	return nil
}

func openCheckpoint(x *Expansion, dir string) (*Checkpoint, error) {
	text, err := x.readFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Dir: dir, config: x.Graph.Source(filepath.Join(dir, "config.json"))}
	if c.Config, err = model.ParseConfig(text); err != nil {
		return nil, err
	}
	if err := c.openShards(x.Graph); err != nil {
		return nil, err
	}
	c.generation = optionalSource(x, dir, "generation_config.json")
	c.template = optionalSource(x, dir, "chat_template.jinja")
	c.tokenizerConfig = optionalSource(x, dir, "tokenizer_config.json")
	c.tokenizer = optionalSource(x, dir, "tokenizer.json")
	return c, nil
}

// openShards reads the heads of the safetensors files and compares them with the config.
func (c *Checkpoint) openShards(g *engine.Graph) error {
	set, err := safetensors.OpenDir(c.Dir)
	if err != nil {
		return err
	}
	defer set.Close()
	have := map[string][]int64{}
	for _, t := range set.Tensors() {
		have[t.Name] = t.Shape
		size, err := safetensors.Spec{Name: t.Name, DType: t.DType, Shape: t.Shape}.Size()
		if err != nil {
			return err
		}
		c.bytes += size
		if _, err := set.File(t.Name); err != nil {
			return err
		}
	}
	if err := c.Config.CheckTensors(have); err != nil {
		return err
	}
	c.shardOf = map[string]*engine.Artifact{}
	sources := map[string]*engine.Artifact{}
	for _, name := range set.Shards() {
		s := g.Source(filepath.Join(c.Dir, name))
		c.shards, sources[name] = append(c.shards, s), s
	}
	for name := range have {
		f, err := set.File(name)
		if err != nil {
			return err
		}
		c.shardOf[name] = sources[filepath.Base(f.Name())]
	}
	return nil
}

// optionalSource returns a file of a folder as a source, or nil if it is not there.
func optionalSource(x *Expansion, dir, name string) *engine.Artifact {
	path := filepath.Join(dir, name)
	if _, err := x.stat(path); err != nil {
		return nil
	}
	return x.Graph.Source(path)
}

// needTokenizer returns a diagnostic if the checkpoint has no tokenizer.
func (c *Checkpoint) needTokenizer(at hcl.Range) hcl.Diagnostics {
	missing := "tokenizer.json"
	if c.tokenizer != nil {
		missing = "tokenizer_config.json"
	}
	if len(c.tokenizerFiles()) == 2 {
		return nil
	}
	return hcl.Diagnostics{Mistake(at, "Checkpoint without a tokenizer",
		"%s has no %s. Text becomes tokens with the checkpoint's own tokenizer: save it beside the weights.",
		c.Dir, missing)}
}

// tokenizerFiles returns tokenizer.json and tokenizer_config.json, those that there are.
func (c *Checkpoint) tokenizerFiles() []*engine.Artifact {
	return present(c.tokenizer, c.tokenizerConfig)
}

// metadataFiles returns the files beside the weights that a GGUF's metadata is made of,
// and their names.
func (c *Checkpoint) metadataFiles() (names []string, files []*engine.Artifact) {
	files = present(c.config, c.tokenizer, c.tokenizerConfig, c.generation, c.template)
	for _, f := range files {
		path, _ := f.Source()
		names = append(names, filepath.Base(path))
	}
	return names, files
}

// present returns the artifacts that are not nil.
func present(all ...*engine.Artifact) (files []*engine.Artifact) {
	for _, a := range all {
		if a != nil {
			files = append(files, a)
		}
	}
	return files
}
