package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	lsp "github.com/tliron/glsp/protocol_3_16"

	"bonsai/ops/mlx"
	"bonsai/recipes"
	"bonsai/recipes/assist"
	"bonsai/rules"
)

// pause is how long nothing is typed before a recipe is checked.
const pause = 150 * time.Millisecond

// An editor holds the files that an editor has open, and what is known of their recipes.
type editor struct {
	p        *program
	language recipes.Language
	publish  func(uri string, list []lsp.Diagnostic)

	mu        sync.Mutex
	buffers   map[string]string         // by path: texts as they are typed
	known     map[string]*assist.Recipe // by the path of a recipe, until something in it changes
	timers    map[string]*time.Timer    // by the path of a recipe
	published map[string][]string       // by the path of a recipe: URIs that have diagnostics
	closed    bool
}

func (p *program) newEditor() *editor {
	return &editor{
		p: p, language: recipes.Describe(p.catalogue(rules.Settings{})),
		buffers: map[string]string{}, known: map[string]*assist.Recipe{},
		timers: map[string]*time.Timer{}, published: map[string][]string{},
	}
}

// close stops what is to be checked.
func (e *editor) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, t := range e.timers {
		t.Stop()
	}
}

// change takes the text of a file as it is typed.
func (e *editor) change(uri, text string) error {
	path, ok := pathOf(uri)
	if !ok {
		return fmt.Errorf("%s is no file", uri)
	}
	e.mu.Lock()
	e.buffers[path] = text
	e.mu.Unlock()
	return e.touch(uri)
}

// forget takes a file as it is on disk again.
func (e *editor) forget(uri string) error {
	path, ok := pathOf(uri)
	if !ok {
		return fmt.Errorf("%s is no file", uri)
	}
	e.mu.Lock()
	delete(e.buffers, path)
	e.mu.Unlock()
	return e.touch(uri)
}

// touch forgets what is known of all recipes, which may include each other, and has those
// in the folder of a file checked when nothing more is typed for a while.
func (e *editor) touch(uri string) error {
	path, ok := pathOf(uri)
	if !ok {
		return fmt.Errorf("%s is no file", uri)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.known)
	name := e.recipeOf(path)
	if t := e.timers[name]; t != nil {
		t.Stop()
	}
	if !e.closed {
		e.timers[name] = time.AfterFunc(pause, func() { e.check(name) })
	}
	return nil
}

// recipeOf returns the path of the recipe that a file is of: its folder or, if several
// files in that have a recipe block, so that each is a recipe, the file.
func (e *editor) recipeOf(path string) string {
	dir := filepath.Dir(path)
	headed := 0
	for _, f := range e.filesIn(dir) {
		if bytes.HasPrefix(f.Bytes, []byte("recipe {")) || bytes.Contains(f.Bytes, []byte("\nrecipe {")) {
			headed++
		}
	}
	if headed > 1 {
		return path
	}
	return dir
}

// filesIn returns the files of the recipe at a path, a folder or a file, as they are typed.
func (e *editor) filesIn(path string) (list []recipes.File) {
	files, _, err := recipes.Read(path)
	if err != nil {
		files = nil // it may not be saved yet
	}
	have := map[string]string{}
	for _, f := range files {
		have[f.Name] = string(f.Bytes)
	}
	for name, text := range e.buffers {
		isRecipe := strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json")
		if name == path || filepath.Dir(name) == path && isRecipe {
			have[name] = text
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		list = append(list, recipes.File{Name: name, Bytes: []byte(have[name])})
	}
	return list
}

// read returns what is known of a recipe.
func (e *editor) read(name string) (*assist.Recipe, error) {
	if r := e.known[name]; r != nil {
		return r, nil
	}
	files := e.filesIn(name)
	dir := name
	if len(files) == 1 && files[0].Name == name {
		dir = filepath.Dir(name)
	}
	opt, err := e.p.recipeOptions(recipeArgs{}, dir, mlx.New("auto"))
	if err != nil {
		return nil, err
	}
	r := assist.New(files, opt, e.language)
	e.known[name] = r
	return r, nil
}

// recipe returns the recipe that a file is of, and the file's name in it.
func (e *editor) recipe(uri string) (*assist.Recipe, string, error) {
	path, ok := pathOf(uri)
	if !ok {
		return nil, "", fmt.Errorf("%s is no file", uri)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r, err := e.read(e.recipeOf(path))
	return r, path, err
}

// at returns the recipe and the place in it that a position is.
func (e *editor) at(p lsp.TextDocumentPositionParams) (*assist.Recipe, assist.Place, error) {
	r, path, err := e.recipe(p.TextDocument.URI)
	return r, assist.Place{File: path, Byte: byteOf(e.text(path), p.Position)}, err
}

// text returns a file as it is typed or, if it is not open, as it is on disk.
func (e *editor) text(path string) []byte {
	e.mu.Lock()
	text, open := e.buffers[path]
	e.mu.Unlock()
	if open {
		return []byte(text)
	}
	onDisk, _ := os.ReadFile(path) // a file that is gone has no positions
	return onDisk
}

// isFile says whether a name is that of a file, not of something built in or given.
func (e *editor) isFile(name string) bool {
	return filepath.IsAbs(name)
}

// span returns where a range is in the text of its file.
func (e *editor) span(r hcl.Range) lsp.Range {
	return e.between(r.Filename, r.Start.Byte, r.End.Byte)
}

func (e *editor) between(path string, from, to int) lsp.Range {
	text := e.text(path)
	return lsp.Range{Start: positionOf(text, from), End: positionOf(text, to)}
}

// check publishes what is wrong with a recipe, and that nothing is any more with files
// that had mistakes.
func (e *editor) check(name string) {
	e.mu.Lock()
	files := e.filesIn(name)
	r, err := e.read(name)
	if err != nil || e.closed || len(files) == 0 {
		e.mu.Unlock()
		return
	}
	before := e.published[name]
	e.mu.Unlock()

	found := map[string][]lsp.Diagnostic{}
	for _, d := range r.Diagnostics() {
		if d.Summary != "Variable without a value" { // it is given when the recipe is built
			uri, one := e.diagnostic(d, files[0].Name)
			found[uri] = append(found[uri], one)
		}
	}
	for _, f := range r.Findings() {
		uri := uriOf(f.Range.Filename)
		found[uri] = append(found[uri], lsp.Diagnostic{
			Range: e.span(f.Range), Severity: new(lsp.DiagnosticSeverityHint), Source: new("bonsai lint"),
			Code: &lsp.IntegerOrString{Value: f.ID}, Message: f.What + " " + f.Why,
		})
	}
	for _, uri := range before {
		if found[uri] == nil {
			found[uri] = []lsp.Diagnostic{}
		}
	}
	for _, f := range files { // also that there is nothing
		if uri := uriOf(f.Name); found[uri] == nil {
			found[uri] = []lsp.Diagnostic{}
		}
	}
	uris := slices.Sorted(maps.Keys(found))
	for _, uri := range uris {
		e.publish(uri, found[uri])
	}
	e.mu.Lock()
	e.published[name] = uris
	e.mu.Unlock()
}

// diagnostic returns a mistake as an editor takes it. What is not about a file is shown at
// the beginning of another.
func (e *editor) diagnostic(d *hcl.Diagnostic, elsewhere string) (uri string, one lsp.Diagnostic) {
	severity := lsp.DiagnosticSeverityError
	if d.Severity == hcl.DiagWarning {
		severity = lsp.DiagnosticSeverityWarning
	}
	one = lsp.Diagnostic{Severity: &severity, Source: new("bonsai"), Message: d.Summary + ": " + d.Detail}
	if d.Subject == nil {
		return uriOf(elsewhere), one
	}
	if !e.isFile(d.Subject.Filename) {
		one.Message = fmt.Sprintf("%s:%d: %s", d.Subject.Filename, d.Subject.Start.Line, one.Message)
		return uriOf(elsewhere), one
	}
	one.Range = e.span(*d.Subject)
	return uriOf(d.Subject.Filename), one
}
