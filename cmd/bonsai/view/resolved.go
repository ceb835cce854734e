package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"bonsai/recipes"
)

// WriteValue writes what an expression came to, as an expression or as JSON.
func WriteValue(w io.Writer, v recipes.Value, asJSON bool) error {
	if asJSON {
		return writeJSON(w, headed{"value", struct {
			Value json.RawMessage `json:"value"`
		}{v.JSON}})
	}
	_, err := fmt.Fprintln(w, v.Text)
	return err
}

// WriteResolved writes a recipe with a value in the place of every expression, in HCL or as
// JSON.
func WriteResolved(w io.Writer, r *recipes.Resolved, asJSON bool) error {
	if asJSON {
		return writeJSON(w, headed{"recipe", resolvedForm(r)})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "recipe {\ndescription = %q\nnumerics = %q\n}\n", r.Description, r.Numerics)
	for _, v := range r.Variables {
		fmt.Fprintf(&b, "\nvariable %q {\nvalue = %s # %s\n}\n", v.Name, v.Text, origin(v))
	}
	if len(r.Locals) > 0 {
		b.WriteString("\nlocals {\n")
		for _, v := range r.Locals {
			fmt.Fprintf(&b, "%s = %s\n", v.Name, v.Text)
		}
		b.WriteString("}\n")
	}
	for i, s := range r.Blocks {
		fmt.Fprintf(&b, "\n# %s, %s:%d\n", r.Steps[i].Address, s.Range.Filename, s.Range.Start.Line)
		writeBlock(&b, s)
	}
	for _, t := range declared(r.Recipe) {
		fmt.Fprintf(&b, "\ntarget %q {\ndescription = %q\nout = %q\nsteps = [%s]\n}\n",
			t.Name, t.Description, t.Out, strings.Join(addresses(t), ", "))
	}
	_, err := w.Write(hclwrite.Format(b.Bytes()))
	return err
}

// origin says where the value of a variable comes from.
func origin(v recipes.Value) string {
	if strings.HasPrefix(v.From, "word ") || strings.HasPrefix(v.From, "environment ") {
		return v.From
	}
	return fmt.Sprintf("%s, %s:%d", v.From, v.Range.Filename, v.Range.Start.Line)
}

// writeBlock writes a block, not yet indented.
func writeBlock(b *bytes.Buffer, r recipes.ResolvedBlock) {
	b.WriteString(r.Type)
	if r.Label != "" {
		fmt.Fprintf(b, " %q", r.Label)
	}
	b.WriteString(" {\n")
	for _, a := range r.Attributes {
		fmt.Fprintf(b, "%s = %s\n", a.Name, a.Text)
	}
	for _, inner := range r.Blocks {
		writeBlock(b, inner)
	}
	b.WriteString("}\n")
}

// declared returns the targets that a recipe declares, in order of name.
func declared(r *recipes.Recipe) (list []*recipes.Target) {
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		if t := r.Targets[name]; t.Declared {
			list = append(list, t)
		}
	}
	return list
}

func addresses(t *recipes.Target) []string {
	list := []string{}
	for _, s := range t.Steps {
		list = append(list, s.Address)
	}
	return list
}

// The JSON form of a resolved recipe. Values are in the JSON syntax of recipes, so a step is
// "${codes.body}".
type (
	resolvedJSON struct {
		Description string                     `json:"description"`
		Numerics    string                     `json:"numerics"`
		Variables   []variableJSON             `json:"variables"`
		Locals      map[string]json.RawMessage `json:"locals"`
		Steps       []stepJSON                 `json:"steps"`
		Targets     []targetJSON               `json:"targets"`
	}
	variableJSON struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
		From  string          `json:"from"`
		File  string          `json:"file"`
		Line  int             `json:"line"`
	}
	blockJSON struct {
		Type       string                     `json:"type"`
		Name       string                     `json:"name,omitempty"`
		Attributes map[string]json.RawMessage `json:"attributes"`
		Blocks     []blockJSON                `json:"blocks,omitempty"`
	}
	stepJSON struct {
		Address string  `json:"address"`
		Key     *string `json:"key,omitempty"`
		File    string  `json:"file"`
		Line    int     `json:"line"`
		blockJSON
	}
	targetJSON struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Out         string   `json:"out"`
		Steps       []string `json:"steps"`
	}
)

func resolvedForm(r *recipes.Resolved) resolvedJSON {
	form := resolvedJSON{
		Description: r.Description, Numerics: r.Numerics, Variables: []variableJSON{},
		Locals: valuesForm(r.Locals), Steps: []stepJSON{}, Targets: []targetJSON{},
	}
	for _, v := range r.Variables {
		form.Variables = append(form.Variables, variableJSON{v.Name, v.JSON, v.From, v.Range.Filename, v.Range.Start.Line})
	}
	for i, b := range r.Blocks {
		s := stepJSON{Address: r.Steps[i].Address, File: b.Range.Filename, Line: b.Range.Start.Line, blockJSON: blockForm(b)}
		if b.Keyed {
			s.Key = &b.Key
		}
		form.Steps = append(form.Steps, s)
	}
	for _, t := range declared(r.Recipe) {
		form.Targets = append(form.Targets, targetJSON{t.Name, t.Description, t.Out, addresses(t)})
	}
	return form
}

func valuesForm(list []recipes.Value) map[string]json.RawMessage {
	form := map[string]json.RawMessage{}
	for _, v := range list {
		form[v.Name] = v.JSON
	}
	return form
}

func blockForm(b recipes.ResolvedBlock) blockJSON {
	form := blockJSON{Type: b.Type, Name: b.Label, Attributes: valuesForm(b.Attributes)}
	for _, inner := range b.Blocks {
		form.Blocks = append(form.Blocks, blockForm(inner))
	}
	return form
}
