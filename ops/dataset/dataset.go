// Package dataset turns files of text into documents: JSON lines, each an object whose "text"
// is one document.
//
// It knows files as people have them: plain text, WikiText, JSON, JSON lines and Parquet, as
// they are or compressed by gzip or bzip2. It does not know tokens, nor how a chat becomes
// text. Text stays as it is but for two things: a line ends in LF, and a byte order mark at
// the beginning of a file is gone.
//
// Start at Documents; Read reads what it writes.
package dataset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"bonsai/ops"
)

// The kinds of files.
const (
	Text     = "text"     // one document, or as many as there are between separators
	WikiText = "wikitext" // one document, or as many as there are articles
	JSON     = "json"     // an array of strings, or of objects with a field
	JSONL    = "jsonl"    // an object with a field in each line
	Parquet  = "parquet"  // a column of strings
)

// Documents is the op that reads one file and writes its documents, in the order of the file.
//
// A row is what the file has for each document: what lies between two separators, an
// article, an element, a line that is not blank, a row. Rows whose text is empty or white
// space alone, and those that have something else than text, are dropped and counted.
type Documents struct {
	Kind      string
	Field     string // of json, jsonl and parquet: where the text is; "" is "text"
	Separator string // of text: what stands between documents; "" makes the file one
	Articles  bool   // of wikitext: each heading " = Title = " begins a document
	Trim      bool   // white space at both ends of a document goes
	From      int    // rows to skip
	N         int    // rows to take, fewer are an error; 0 takes all
}

// AppendText implements engine.Op.
func (d Documents) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "documents", 1, d)
}

// A row is one of a file's, not yet looked at.
type row struct {
	text   string
	isText bool
}

// A source gives a file's rows, then io.EOF.
type source interface {
	next() (row, error)
	done() float64 // how much of the file has been read, in [0, 1]
}

// Run implements engine.Op. It reads in[0] and writes JSON lines to out[0].
//
// Errors name the file, if it is one, and the line, from 1, or the row, from 0.
func (d Documents) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := d.Check(); err != nil {
		return err
	}
	name := fileName(in[0])
	src, err := d.open(in[0])
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w := bufio.NewWriterSize(out[0], 1<<16)
	t := tally{}
	if err := d.copy(ctx, w, src, &t, report); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if t.documents == 0 {
		return fmt.Errorf("%s: no documents: %s", name, t.note())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	report(1, t.note())
	return nil
}

// Check returns an error for settings that the kind does not have.
func (d Documents) Check() error {
	field := d.Kind == JSON || d.Kind == JSONL || d.Kind == Parquet
	switch {
	case !field && d.Kind != Text && d.Kind != WikiText:
		return fmt.Errorf("dataset kind %q is none of text, wikitext, json, jsonl, parquet", d.Kind)
	case d.Field != "" && !field:
		return fmt.Errorf("a dataset of kind %s has no field %q", d.Kind, d.Field)
	case d.Separator != "" && d.Kind != Text:
		return fmt.Errorf("a dataset of kind %s has no separator %q", d.Kind, d.Separator)
	case d.Articles && d.Kind != WikiText:
		return fmt.Errorf("a dataset of kind %s has no articles", d.Kind)
	case d.From < 0 || d.N < 0 || d.From > math.MaxInt-d.N:
		return fmt.Errorf("%d rows from row %d on", d.N, d.From)
	}
	return nil
}

// open returns the rows of a file.
func (d Documents) open(in *io.SectionReader) (source, error) {
	field := d.Field
	if field == "" {
		field = "text"
	}
	if d.Kind == Parquet {
		return openParquet(in, field)
	}
	f, err := decompress(in)
	if err != nil {
		return nil, err
	}
	switch d.Kind {
	case JSON:
		return newJSONArray(f, field), nil
	case JSONL:
		return newJSONLines(f, field), nil
	default:
		return &textFile{file: f, cut: d.cut}, nil
	}
}

// copy writes the documents of the rows asked for.
func (d Documents) copy(ctx context.Context, w *bufio.Writer, src source, t *tally, report func(float64, string)) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := 0; d.N == 0 || i < d.From+d.N; i++ {
		if i%256 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			report(min(src.done(), 0.99), "")
		}
		r, err := src.next()
		if errors.Is(err, io.EOF) {
			return d.checkRows(i)
		}
		if err != nil {
			return err
		}
		if i < d.From || !t.count(r) {
			continue
		}
		if err := enc.Encode(document{Text: d.clean(r.text, t)}); err != nil {
			return err
		}
	}
	return nil
}

// checkRows refuses a file that has fewer rows than are asked for.
func (d Documents) checkRows(have int) error {
	if have < d.From+d.N || have <= d.From && d.From > 0 {
		want := "all"
		if d.N > 0 {
			want = fmt.Sprint(d.N)
		}
		return fmt.Errorf("the file has %d rows; asked for %s from row %d on", have, want, d.From)
	}
	return nil
}

// clean returns a row's text as it is kept, and counts its bytes.
func (d Documents) clean(s string, t *tally) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if d.Trim {
		s = strings.TrimSpace(s)
	}
	if t.documents == 1 || len(s) < t.shortest {
		t.shortest = len(s)
	}
	t.longest = max(t.longest, len(s))
	t.bytes += len(s)
	return s
}

// A tally is what became of the rows.
type tally struct {
	documents, empty, notText int
	bytes, shortest, longest  int
}

// count adds a row and reports whether it is a document.
func (t *tally) count(r row) bool {
	switch {
	case !r.isText:
		t.notText++
	case strings.TrimSpace(r.text) == "":
		t.empty++
	default:
		t.documents++
		return true
	}
	return false
}

// note says it in a line.
func (t *tally) note() string {
	s := fmt.Sprintf("%d documents of %d rows", t.documents, t.documents+t.empty+t.notText)
	if t.empty > 0 {
		s += fmt.Sprintf(", dropped %d empty", t.empty)
	}
	if t.notText > 0 {
		s += fmt.Sprintf(", dropped %d that are not text", t.notText)
	}
	if t.documents > 0 {
		s += fmt.Sprintf("; %d bytes, %d to %d a document", t.bytes, t.shortest, t.longest)
	}
	return s
}

// fileName names an input in errors.
func fileName(in *io.SectionReader) string {
	r, _, _ := in.Outer()
	if f, ok := r.(interface{ Name() string }); ok {
		return f.Name()
	}
	return "input"
}

// A document is a line of what Documents writes.
type document struct {
	Text string `json:"text"`
}

// Read returns the texts of documents that Documents wrote, one at a time. It ends with the
// first error, which names the line.
func Read(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines := newLines(r)
		for {
			b, err := lines.next()
			if errors.Is(err, io.EOF) {
				return
			}
			var d struct{ Text *string }
			if err == nil {
				err = json.Unmarshal(b, &d)
			}
			if err == nil && d.Text == nil {
				err = errors.New(`no "text"`)
			}
			if err != nil {
				yield("", fmt.Errorf("documents, line %d: %w", lines.n, err))
				return
			}
			if !yield(*d.Text, nil) {
				return
			}
		}
	}
}

// maxLine bounds the memory that a file without line ends can take.
const maxLine = 1 << 28

// lines are the lines of a file that are not blank.
type lines struct {
	s *bufio.Scanner
	n int // the number of the last line, from 1
}

func newLines(r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1<<16), maxLine)
	return &lines{s: s}
}

// next returns the next line, valid until the following call, or io.EOF.
func (l *lines) next() ([]byte, error) {
	for l.s.Scan() {
		l.n++
		if b := bytes.TrimSpace(l.s.Bytes()); len(b) > 0 {
			return b, nil
		}
	}
	if err := l.s.Err(); err != nil {
		l.n++
		return nil, err
	}
	return nil, io.EOF
}
