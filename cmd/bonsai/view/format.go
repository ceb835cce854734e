package view

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rogpeppe/go-internal/diff"
)

// FormatOptions says how formatted files are shown.
type FormatOptions struct {
	Style Style
	JSON  bool
	Diff  bool // with the lines that differ
}

// A Formatted is a file before and after it was formatted.
type Formatted struct {
	File          string
	Before, After []byte
}

// Changed says whether formatting changes the file.
func (f Formatted) Changed() bool { return !bytes.Equal(f.Before, f.After) }

// diff returns what differs, in the unified form.
func (f Formatted) diff() []byte { return diff.Diff("old/"+f.File, f.Before, "new/"+f.File, f.After) }

// WriteFormatted writes the names of the files that formatting changes, and what it changes
// if that is asked for. As JSON it writes of all files whether they change.
func WriteFormatted(w io.Writer, list []Formatted, opt FormatOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"fmt", struct {
			Files []formattedJSON `json:"files"`
		}{formattedFiles(list, opt.Diff)}})
	}
	for _, f := range list {
		if !f.Changed() {
			continue
		}
		if _, err := fmt.Fprintln(w, printable(f.File)); err != nil {
			return err
		}
		if opt.Diff {
			if _, err := io.WriteString(w, coloured(f.diff(), opt.Style.palette())); err != nil {
				return err
			}
		}
	}
	return nil
}

type formattedJSON struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"`
	Diff    string `json:"diff,omitempty"`
}

func formattedFiles(list []Formatted, diffs bool) []formattedJSON {
	files := []formattedJSON{}
	for _, f := range list {
		j := formattedJSON{File: f.File, Changed: f.Changed()}
		if diffs && j.Changed {
			j.Diff = string(f.diff())
		}
		files = append(files, j)
	}
	return files
}

// coloured returns a diff in colour, with nothing in it that moves the cursor.
func coloured(text []byte, p palette) string {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		s := printable(string(bytes.TrimRight(line, "\r\n")))
		switch {
		case bytes.HasPrefix(line, []byte("+")):
			s = p.good.Render(s)
		case bytes.HasPrefix(line, []byte("-")):
			s = p.bad.Render(s)
		case bytes.HasPrefix(line, []byte("@@")):
			s = p.faint.Render(s)
		}
		b.WriteString(s + "\n")
	}
	return b.String()
}
