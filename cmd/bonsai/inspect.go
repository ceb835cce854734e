package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"bonsai/cmd/bonsai/view"
	"bonsai/ops/gguf"
	"bonsai/ops/model"
	"bonsai/ops/prism"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
)

// inspectKeys are the keys of inspect alone.
var inspectKeys = []string{"all", "file"}

// runInspect looks into a folder with a checkpoint, a safetensors or a GGUF file.
func runInspect(_ context.Context, p *program, w *words) (int, error) {
	path := w.text("file", "")
	opt := view.InspectOptions{
		Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w),
		JSON:  w.flag("json"), All: w.flag("all"),
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case path == "":
		return 0, misused("inspect what? file=PATH names a checkpoint's folder, a safetensors or a GGUF file")
	}
	stat, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if stat.IsDir() {
		c, err := inspectCheckpoint(path)
		return exitBuilt, errors.Join(err, view.WriteCheckpoint(p.stdout, c, opt))
	}
	if !stat.Mode().IsRegular() {
		return 0, &notFileError{path}
	}
	return exitBuilt, inspectFile(path, stat.Size(), p.stdout, opt)
}

// inspectFile looks into a file, whose format its first bytes tell.
func inspectFile(path string, size int64, w io.Writer, opt view.InspectOptions) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var magic [4]byte
	if _, err := f.ReadAt(magic[:], 0); err == nil && string(magic[:]) == "GGUF" || filepath.Ext(path) == ".gguf" {
		g, err := gguf.Open(f, size, path)
		if err != nil {
			return err
		}
		report, err := inspectGGUF(g, size)
		return errors.Join(err, view.WriteGGUF(w, report, opt))
	}
	s, err := safetensors.Open(f, size, path)
	if err != nil {
		return err
	}
	return view.WriteTensors(w, view.Tensors{
		File: path, Size: size, Metadata: s.Metadata(), Tensors: tensorRows(s.Tensors()),
	}, opt)
}

func tensorRows(tensors []safetensors.Tensor) (rows []view.Tensor) {
	for _, t := range tensors {
		rows = append(rows, view.Tensor{Name: t.Name, Type: string(t.DType), Shape: t.Shape, Bytes: t.Size()})
	}
	return rows
}

// inspectCheckpoint reads the config and the heads of the weights of a folder. What is
// wrong with them is in the report as well as an error, so that the rest is seen.
func inspectCheckpoint(dir string) (*view.Checkpoint, error) {
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, fmt.Errorf("no checkpoint: %w", err)
	}
	c, err := model.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	tensors := set.Tensors()
	have := map[string][]int64{}
	for _, t := range tensors {
		have[t.Name] = t.Shape
	}
	report := &view.Checkpoint{
		Dir: dir, Config: *c, Files: set.Shards(), Tensors: tensorRows(tensors), Tokenizer: hasTokenizer(dir),
	}
	planTernary(report, c)
	if err := c.CheckTensors(have); err != nil {
		return report, fmt.Errorf("%s: %w", dir, err)
	}
	return report, nil
}

func hasTokenizer(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, prism.TokenizerFile))
	return err == nil
}

// planTernary adds what the checkpoint would be as a PTQ1_0 file, all weights ternary
// that can be, or why it cannot.
func planTernary(report *view.Checkpoint, c *model.Config) {
	if err := c.CheckTernary(); err != nil {
		report.Refused = err.Error()
		return
	}
	var names []string
	for _, t := range c.Tensors() {
		tied := c.Tied && t.Name == model.EmbedName
		if t.Group != "" && !tied {
			names = append(names, t.Name)
		}
	}
	block, err := quantize.DefaultBlock(c.Widths()...)
	if err != nil {
		report.Refused = err.Error()
		return
	}
	layout, err := prism.Plan(c, prism.Formats()[0], names, 0)
	if err != nil {
		report.Refused = err.Error()
		return
	}
	report.Planned = &view.Planned{
		Format: prism.Formats()[0], Architecture: layout.Arch, Ternary: names, Block: block, Widths: c.Widths(),
		Bytes: layout.Bytes, BitsPerWeight: layout.BitsPerWeight(),
	}
}

// inspectGGUF reads the head of a GGUF file. A rotation that Prism's loader refuses is
// in the report as well as an error.
func inspectGGUF(f *gguf.File, size int64) (*view.GGUF, error) {
	report := &view.GGUF{File: f.Name(), Size: size, Container: f.Version(), Metadata: f.Meta()}
	var weights, bytes int64
	for _, t := range f.Tensors() {
		report.Tensors = append(report.Tensors, view.Tensor{
			Name: t.Name, Type: t.Type.String(), Shape: t.Shape, Bytes: t.Size(), Ternary: t.Type.IsTernary(),
		})
		weights += t.Len()
		bytes += t.Size()
	}
	if weights > 0 {
		report.BitsPerWeight = 8 * float64(bytes) / float64(weights)
	}
	report.Architecture, _ = gguf.Get[string](f, "general.architecture")
	report.Name, _ = gguf.Get[string](f, "general.name")
	r, err := prism.ReadRotation(f)
	if err != nil || r == nil {
		return report, err
	}
	report.Rotation = &view.Rotation{Version: r.Version, Block: r.Block, Tensors: r.Tensors, Inverse: r.Inverse}
	for width := range r.Signs {
		report.Rotation.Widths = append(report.Rotation.Widths, width)
	}
	return report, nil
}
