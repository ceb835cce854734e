package dataset

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A textFile gives what cut makes of a whole file, which is in memory.
type textFile struct {
	*file
	cut  func(string) []string
	read bool
	rows []string // not yet given
}

func (t *textFile) next() (row, error) {
	if !t.read {
		b, err := io.ReadAll(t.file)
		if err != nil {
			return row{}, err
		}
		if err := checkUTF8(b); err != nil {
			return row{}, err
		}
		t.rows, t.read = t.cut(strings.ReplaceAll(string(b), "\r\n", "\n")), true
	}
	if len(t.rows) == 0 {
		return row{}, io.EOF
	}
	s := t.rows[0]
	t.rows = t.rows[1:]
	return row{s, true}, nil
}

// checkUTF8 names the line of the first byte that is not UTF-8.
func checkUTF8(b []byte) error {
	if utf8.Valid(b) {
		return nil
	}
	line := 1
	for i := 0; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return fmt.Errorf("line %d: byte 0x%02x is not UTF-8", line, b[i])
		}
		if r == '\n' {
			line++
		}
		i += n
	}
}

// cut returns the documents of a text.
func (d Documents) cut(s string) []string {
	switch {
	case d.Separator != "":
		return strings.Split(s, strings.ReplaceAll(d.Separator, "\r\n", "\n"))
	case d.Articles:
		return articles(s)
	default:
		return []string{s}
	}
}

// heading is the title of an article of WikiText, with the blank line before it. Titles of
// sections have two equal signs or more.
var heading = regexp.MustCompile(`(?m)^ \n = [^=\n](?:[^\n]*[^=\n])? = $`)

// articles cuts WikiText before each title. The documents together are the text.
func articles(s string) (all []string) {
	begin := 0
	for _, m := range heading.FindAllStringIndex(s, -1) {
		if m[0] > begin {
			all = append(all, s[begin:m[0]])
			begin = m[0]
		}
	}
	return append(all, s[begin:])
}
