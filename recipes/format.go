package recipes

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"bonsai/rules"
)

// byteOrderMark is what some editors begin a file with.
const byteOrderMark = "\xef\xbb\xbf"

// Format returns a file of a recipe or of values in the one layout that there is: two columns
// for a level, equal signs of neighbouring lines aligned, a line end at the end. Comments,
// blank lines and the kind of line ends stay; a byte order mark goes. What it returns
// formats to itself, and means what f means. It returns the mistakes of a file that cannot
// be parsed.
func Format(f File) ([]byte, hcl.Diagnostics) {
	text := withLineEnd(bytes.TrimPrefix(f.Bytes, []byte(byteOrderMark)))
	start := hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: hcl.InitialPos}
	if !utf8.Valid(text) {
		return nil, hcl.Diagnostics{rules.Mistake(start, "Text that is not UTF-8",
			"Recipes are written in UTF-8; this file is not, and it is left as it is.")}
	}
	l := newLoader(Options{})
	body := l.parseFile(File{Name: f.Name, Bytes: text})
	if body == nil {
		return nil, l.diags
	}
	formatted := make([]byte, 0, len(text)+len(text)/8)
	for _, part := range parts(text, body) {
		after := formatPart(part)
		if !sameTokens(part, after) {
			return nil, hcl.Diagnostics{rules.Mistake(start, "File that cannot be formatted",
				"With another layout this file would mean something else. It is left as it is.")}
		}
		formatted = append(formatted, after...)
	}
	return formatted, nil
}

// parts cuts a file after every block with a blank line behind it: layout does not reach
// across, and many small parts take a third of the time that one large one takes.
func parts(text []byte, body hcl.Body) (list [][]byte) {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return [][]byte{text}
	}
	from := 0
	for _, b := range native.Blocks { // in the order of the source
		end := b.CloseBraceRange.End.Byte
		for _, blank := range []string{"\n\n", "\r\n\r\n"} {
			if bytes.HasPrefix(text[end:], []byte(blank)) {
				cut := end + len(blank)/2
				list, from = append(list, text[from:cut]), cut
			}
		}
	}
	return append(list, text[from:])
}

// formatPart formats until nothing changes any more.
func formatPart(text []byte) []byte {
	for range 3 { // a second time is rare
		again := hclwrite.Format(text)
		if bytes.Equal(again, text) {
			break
		}
		text = again
	}
	return text
}

// withLineEnd returns text with a line end after its last line, of the kind that it has. It
// leaves a heredoc alone, which may be ended by that.
func withLineEnd(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == '\n' || bytes.Contains(text, []byte("<<")) {
		return text
	}
	end := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		end = "\r\n"
	}
	return append(slices.Clip(text), end...)
}

// sameTokens says whether two texts differ in nothing but the spaces between tokens.
func sameTokens(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	before, _ := hclsyntax.LexConfig(a, "", hcl.InitialPos)
	after, _ := hclsyntax.LexConfig(b, "", hcl.InitialPos)
	return slices.EqualFunc(before, after, func(x, y hclsyntax.Token) bool {
		return x.Type == y.Type && bytes.Equal(x.Bytes, y.Bytes)
	})
}
