package view

import (
	"fmt"
	"io"
	"strings"
)

// A Choice is one that was made for a recipe.
type Choice struct {
	Name string `json:"name"`
	What string `json:"what"`
	Why  string `json:"why"`
}

// An Init is a recipe that was written, with what it will take and give.
type Init struct {
	File      string   `json:"file"`
	Choices   []Choice `json:"choices"`
	NeedsText bool     `json:"needs_text"` // the text to calibrate on has to be given
	Warnings  []string `json:"warnings"`
	Bytes     int64    `json:"bytes"`     // of the model file
	Seconds   float64  `json:"seconds"`   // of a whole build, estimated
	Peak      int64    `json:"peak"`      // bytes of memory at most
	Available int64    `json:"available"` // bytes of memory, 0 if not known
}

// WriteInit writes what a new recipe does and why.
func WriteInit(w io.Writer, i Init, asJSON bool) error {
	if i.Warnings == nil {
		i.Warnings = []string{}
	}
	if i.Available > 0 && i.Peak > i.Available {
		i.Warnings = append(i.Warnings, fmt.Sprintf("a build needs %s of memory, and %s are available here", Bytes(i.Peak), Bytes(i.Available)))
	}
	if asJSON {
		return writeJSON(w, headed{"init", i})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s\n\n", printable(i.File))
	for _, c := range i.Choices {
		fmt.Fprintf(&b, "  %-14s %s\n", c.Name, printable(c.What))
		b.WriteString(wrap("("+printable(c.Why)+")", strings.Repeat(" ", 17), schemaWidth))
	}
	fmt.Fprintf(&b, "\n  A build makes a file of %s, takes about %s and %s of memory at most.\n", Bytes(i.Bytes), seconds(i.Seconds), Bytes(i.Peak))
	for _, text := range i.Warnings {
		b.WriteString(wrap("warning: "+text, "  ", schemaWidth))
	}
	next := "bonsai plan target=gguf"
	if i.File != "recipe.hcl" {
		next += " recipe=" + i.File
	}
	if i.NeedsText {
		next += " var.text=FILE"
		b.WriteString("\n  FILE is the text to calibrate on: of the kind that the model will see.")
	}
	fmt.Fprintf(&b, "\nnext: %s\n", next)
	_, err := io.WriteString(w, b.String())
	return err
}
