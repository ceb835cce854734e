package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonLines are the rows of a file with an object in each line.
type jsonLines struct {
	*file
	lines *lines
	field string
}

func newJSONLines(f *file, field string) *jsonLines {
	return &jsonLines{f, newLines(f), field}
}

func (j *jsonLines) next() (row, error) {
	b, err := j.lines.next()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	var r row
	if err == nil {
		r, err = rowOf(b, j.field)
	}
	if err != nil {
		return row{}, fmt.Errorf("line %d: %w", j.lines.n, err)
	}
	return r, nil
}

// A jsonArray is the rows of a file that is one array.
type jsonArray struct {
	*file
	dec   *json.Decoder
	ends  *lineEnds
	field string
	rows  int
	line  int // where the row begins, from 1
}

func newJSONArray(f *file, field string) *jsonArray {
	ends := &lineEnds{r: f}
	return &jsonArray{file: f, dec: json.NewDecoder(ends), ends: ends, field: field}
}

func (j *jsonArray) next() (row, error) {
	r, err := j.read()
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("row %d, line %d: %w", j.rows, j.line, err)
	}
	if err == nil {
		j.rows++
	}
	return r, err
}

func (j *jsonArray) read() (row, error) {
	if j.rows == 0 {
		t, err := j.dec.Token()
		if err != nil {
			return row{}, noEOF(err)
		}
		if t != json.Delim('[') {
			return row{}, errors.New("the file is not a JSON array")
		}
	}
	more := j.dec.More()
	j.line = j.ends.line(j.begin())
	if !more {
		return row{}, j.end()
	}
	var b json.RawMessage
	if err := j.dec.Decode(&b); err != nil {
		return row{}, noEOF(err)
	}
	if len(b) > 0 && b[0] != '{' {
		return textOf(b)
	}
	return rowOf(b, j.field)
}

// begin returns the offset of the next row or of the array's end.
func (j *jsonArray) begin() int64 {
	offset := j.dec.InputOffset()
	ahead := j.dec.Buffered()
	for b := []byte{0}; ; offset++ {
		if n, _ := ahead.Read(b); n == 0 || !bytes.ContainsAny(b, " \t\r\n,") {
			return offset
		}
	}
}

// end reads the end of the array and returns io.EOF if it is the file's.
func (j *jsonArray) end() error {
	if _, err := j.dec.Token(); err != nil {
		return noEOF(err)
	}
	_, err := j.dec.Token()
	if err == nil {
		return errors.New("something follows the array")
	}
	return err
}

// noEOF tells an end that comes too early from the end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lineEnds knows the lines of what has been read through it.
type lineEnds struct {
	r    io.Reader
	read int64
	ends []int64 // offsets of line ends not yet passed
	n    int     // of those passed
}

func (l *lineEnds) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// line returns the line of an offset, from 1, which is not before that of the last call.
func (l *lineEnds) line(offset int64) int {
	i, _ := slices.BinarySearch(l.ends, offset)
	l.n += i
	l.ends = l.ends[i:]
	return l.n + 1
}

// rowOf returns the text in a field of a JSON object.
func rowOf(b []byte, field string) (row, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return row{}, fmt.Errorf("a JSON %s, not an object", wrong.Value)
		}
		return row{}, err
	}
	v, ok := fields[field]
	if !ok {
		return row{}, missing("field", field, slices.Sorted(maps.Keys(fields)))
	}
	return textOf(v)
}

// textOf returns the text of a JSON string; other values are no text.
func textOf(b []byte) (row, error) {
	if len(b) == 0 || b[0] != '"' {
		return row{}, nil
	}
	if !utf8.Valid(b) {
		return row{}, fmt.Errorf("%.40q is not UTF-8", b)
	}
	var s string
	err := json.Unmarshal(b, &s)
	return row{s, true}, err
}

// missing is the error for rows that do not have the field or column of the text. Rows that
// hold a chat are named as such: they take a model's template to become text.
func missing(what, field string, have []string) error {
	const limit = 12
	shown := have[:min(len(have), limit)]
	s := fmt.Sprintf("no %s %q among %q", what, field, shown)
	if len(have) > limit {
		s += fmt.Sprintf(" and %d more", len(have)-limit)
	}
	has := func(name string) bool { return slices.Contains(have, name) }
	switch {
	case has("messages") || has("conversations"):
		s += "; these rows are chats, which need a model's chat template to become text"
	case has("question") && has("answer"), has("prompt") && has("completion"), has("instruction") && has("output"):
		s += "; these rows are questions and answers, which need a model's chat template to become text"
	}
	return errors.New(strings.ToValidUTF8(s, "\ufffd"))
}
