package view

import (
	"fmt"
	"io"
	"strings"

	"bonsai/recipes"
	"bonsai/rules"
)

// schemaWidth is the width of the pages of a schema, also where lines are not limited:
// they are for reading.
const schemaWidth = 80

// SchemaOptions says how a schema is written.
type SchemaOptions struct {
	Style Style
	JSON  bool
}

// WriteLanguage writes which blocks and functions there are, as JSON with all they may hold.
func WriteLanguage(w io.Writer, l recipes.Language, opt SchemaOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"schema", l})
	}
	p := pageOf(opt)
	p.b.WriteString("Blocks of a recipe; bonsai schema NAME tells all of one.\n\n")
	for _, b := range l.Blocks {
		p.entry(b.Type, 14, b.Doc)
	}
	p.b.WriteString("\nAny step may have beside:\n\n")
	for _, a := range l.Steps.Attributes {
		p.entry(a.Name, 14, a.Doc)
	}
	for _, n := range l.Steps.Blocks {
		p.entry(n.Type, 14, n.Doc)
	}
	p.b.WriteString("\nFunctions; bonsai schema NAME tells what one does.\n\n")
	var names []string
	for _, f := range l.Functions {
		names = append(names, f.Name)
	}
	p.b.WriteString(wrap(strings.Join(names, " "), "  ", p.width))
	return p.flush(w)
}

// WriteBlockType writes what blocks of one type may hold.
func WriteBlockType(w io.Writer, b recipes.BlockType, step rules.Schema, opt SchemaOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"block", struct {
			Block recipes.BlockType `json:"block"`
		}{b}})
	}
	p := pageOf(opt)
	p.b.WriteString(p.colors.strong.Render(b.Type) + labelText(b.Label) + "\n\n" + wrap(b.Doc, "", p.width) + "\n")
	if b.Unnamed {
		p.b.WriteString("  Its attributes have any names, each with an expression.\n")
	}
	p.schema(b.Schema, "  ")
	if b.Step {
		p.b.WriteString("\nAny step may have beside:\n\n")
		p.schema(step, "  ")
	}
	return p.flush(w)
}

// WriteFunction writes what a function does.
func WriteFunction(w io.Writer, f recipes.Function, opt SchemaOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"function", f})
	}
	p := pageOf(opt)
	p.b.WriteString(p.colors.strong.Render(f.Signature) + "\n\n" + wrap(f.Doc, "", p.width))
	return p.flush(w)
}

// A page is text in the making.
type page struct {
	b      strings.Builder
	colors palette
	width  int
}

func pageOf(opt SchemaOptions) *page {
	return &page{colors: opt.Style.palette(), width: min(opt.Style.Width, schemaWidth)}
}

func (p *page) flush(w io.Writer) error {
	_, err := io.WriteString(w, p.b.String())
	return err
}

// entry writes a name in a column and a text beside it.
func (p *page) entry(name string, column int, text string) {
	lines := strings.Split(strings.TrimRight(wrap(text, strings.Repeat(" ", column+2), p.width), "\n"), "\n")
	lines[0] = "  " + p.colors.strong.Render(name) + strings.Repeat(" ", max(column-len(name), 1)) + strings.TrimSpace(lines[0])
	p.b.WriteString(strings.Join(lines, "\n") + "\n")
}

// schema writes the attributes and blocks of a block.
func (p *page) schema(s rules.Schema, indent string) {
	for _, a := range s.Attributes {
		p.b.WriteString(indent + p.colors.strong.Render(a.Name) + "  " + p.colors.faint.Render(a.Takes()) + "\n")
		p.b.WriteString(wrap(a.Explain(), indent+"    ", p.width))
	}
	for _, n := range s.Blocks {
		p.b.WriteString(indent + p.colors.strong.Render(n.Type) + labelText(n.Label) + "  " + p.colors.faint.Render(howOften(n)) + "\n")
		p.b.WriteString(wrap(n.Doc, indent+"    ", p.width))
		p.schema(n.Schema, indent+"    ")
	}
}

func labelText(label string) string {
	if label == "" {
		return ""
	}
	return fmt.Sprintf(" %q", strings.ToUpper(label))
}

func howOften(n rules.Nested) string {
	switch {
	case n.Required && n.Several:
		return "once or more"
	case n.Required:
		return "once"
	case n.Several:
		return "any number"
	}
	return "at most once"
}
