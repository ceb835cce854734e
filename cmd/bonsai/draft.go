package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"bonsai/cmd/bonsai/view"
	"bonsai/ops/prism"
	"bonsai/ops/quantize"
	"bonsai/ops/tokenizer"
)

//go:embed init/recipe.hcl.tmpl
var drafts embed.FS

const (
	usualLength  = 2048    // tokens of a calibration block
	fewestBlocks = 32      // however short the weights' rows
	sampleBytes  = 1 << 20 // of a text that are read, to tell what it is and how many tokens
)

// A draft is a recipe to be: what its template says.
type draft struct {
	Description, Requires, Name string
	Model, Text                 string // paths from the recipe's folder; no text: it is given later
	Kind, Field, Separator      string
	Articles                    bool
	Length, Blocks              int
	PerColumn, Widest           int
	Tied                        bool
	Context                     int

	Warnings   []string
	checkpoint *view.Checkpoint
	tokens     int64 // about how many the text has, 0 if that is not known
	size       int64 // of the text, bytes
}

// draftOf chooses what a recipe for a checkpoint says.
func draftOf(c *view.Checkpoint, dir, out, text string) (*draft, error) {
	widths := c.Config.Widths()
	base := filepath.Base(absolute(dir))
	d := &draft{
		checkpoint: c, Description: base + ", ternary", Requires: ">= " + version, Name: strings.TrimLeft(base, "."),
		Model: relativeTo(out, dir), Kind: "text", Length: min(usualLength, c.Config.Context),
		Widest: widths[len(widths)-1], Tied: c.Config.Tied, Context: c.Config.Context,
	}
	if text != "" {
		d.Text = relativeTo(out, text)
		if err := d.look(text); err != nil {
			return nil, err
		}
	}
	return d, d.chooseBlocks()
}

// chooseBlocks takes as many tokens as the widest weights need or, if the text has fewer,
// what there is.
func (d *draft) chooseBlocks() error {
	if d.size > 0 && d.tokens > 0 && d.tokens < int64(fewestBlocks*d.Length) {
		d.Length = max(64, int(d.tokens)/fewestBlocks/16*16) // short texts make short blocks
	}
	needed := max(fewestBlocks, (quantize.WarnRatio*d.Widest+d.Length-1)/d.Length)
	d.Blocks = needed
	if there := int(d.tokens) / d.Length; d.tokens > 0 && there < needed {
		d.Blocks = there
		least := (quantize.MinRatio*d.Widest + d.Length - 1) / d.Length
		perToken := float64(d.size) / float64(d.tokens)
		want := view.Bytes(int64(perToken * float64(needed*d.Length)))
		if there < least {
			return fmt.Errorf("%s is too short to calibrate on: it has about %d tokens, the widest weights have %d columns, "+
				"and at least %d tokens a column are needed; %s of such text are usual", d.Text, d.tokens, d.Widest, quantize.MinRatio, want)
		}
		d.Warnings = append(d.Warnings, fmt.Sprintf("the text is short: %d tokens a column are usual, which is %s of such text",
			quantize.WarnRatio, want))
	}
	d.PerColumn = d.Blocks * d.Length / d.Widest
	return nil
}

// look finds out what a text is and about how many tokens it has.
func (d *draft) look(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	if stat.IsDir() {
		return fmt.Errorf("text= is a file, and %s is a folder", path)
	}
	sample := make([]byte, min(stat.Size(), sampleBytes))
	if _, err := f.ReadAt(sample, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !d.recognize(path, sample) {
		return nil // compressed, or columns: only reading all of it tells
	}
	t, err := d.tokenizer()
	if err != nil {
		return err
	}
	ids := t.Encode(strings.ToValidUTF8(string(sample), ""))
	d.size = stat.Size()
	whole := float64(len(ids)) * float64(d.size) / float64(max(len(sample), 1))
	d.tokens = int64(0.9 * whole) // documents leave something over, and markup is no text
	return nil
}

func (d *draft) tokenizer() (*tokenizer.Tokenizer, error) {
	text, err := os.ReadFile(filepath.Join(d.checkpoint.Dir, prism.TokenizerFile))
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(d.checkpoint.Dir, prism.TokenizerConfigFile))
	if err != nil {
		return nil, err
	}
	return tokenizer.Parse(text, config)
}

// text returns the recipe in the one layout.
func (d *draft) text() ([]byte, error) {
	t, err := template.New("recipe.hcl.tmpl").Funcs(template.FuncMap{"quote": quoteHCL}).ParseFS(drafts, "init/recipe.hcl.tmpl")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return nil, err
	}
	return format("recipe.hcl", b.Bytes())
}

// choices says what was chosen and why.
func (d *draft) choices() []view.Choice {
	c := d.checkpoint.Config
	list := []view.Choice{
		{Name: "model", What: fmt.Sprintf("%s, %d layers, input widths %v, context %d", c.Type, c.Layers, c.Widths(), c.Context), Why: "as its config.json says"},
		{Name: "calibration", What: fmt.Sprintf("%d blocks of %d tokens", d.Blocks, d.Length), Why: fmt.Sprintf("%d tokens for each of the %d columns of the widest weights; %d are usual", d.PerColumn, d.Widest, quantize.WarnRatio)},
	}
	if d.Text != "" {
		list = append(list, view.Choice{Name: "text", What: d.Text + " as " + d.Kind, Why: d.whyKind()})
	}
	if d.Tied {
		list = append(list, view.Choice{Name: "endpoints", What: "none", Why: "the head is the embedding, which stays BF16"})
	} else {
		list = append(list, view.Choice{Name: "endpoints", What: "ternary too", Why: "the head and the embedding are tables of their own"})
	}
	template, why := "none", "no chat_template in the folder: the file will have none"
	if d.hasTemplate() {
		template, why = "copied", "the folder has one"
	}
	return append(list, view.Choice{Name: "chat template", What: template, Why: why})
}

// hasTemplate says whether the checkpoint has a chat template, in a file or in another.
func (d *draft) hasTemplate() bool {
	config, err := os.ReadFile(filepath.Join(d.checkpoint.Dir, prism.TokenizerConfigFile))
	return exists(filepath.Join(d.checkpoint.Dir, prism.TemplateFile)) || err == nil && bytes.Contains(config, []byte(`"chat_template"`))
}

// relativeTo returns a path as a recipe in the file out says it: relative if it was given so.
func relativeTo(out, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	relative, err := filepath.Rel(absolute(filepath.Dir(out)), absolute(path))
	if err != nil {
		return absolute(path)
	}
	return filepath.ToSlash(relative)
}

func absolute(path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return full
}
