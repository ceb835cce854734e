package main

import (
	"bytes"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	lsp "github.com/tliron/glsp/protocol_3_16"
)

// positionOf returns the line, from 0, and the column in UTF-16 units, from 0, of a byte.
func positionOf(text []byte, at int) lsp.Position {
	at = min(max(at, 0), len(text))
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	column := 0
	for rest := text[start:at]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		column += max(utf16.RuneLen(r), 1)
		rest = rest[n:]
	}
	return lsp.Position{Line: uint32(bytes.Count(text[:start], []byte{'\n'})), Character: uint32(column)}
}

// byteOf returns the byte at a position; the end of the line or the text if it is beyond.
func byteOf(text []byte, p lsp.Position) int {
	at := 0
	for range p.Line {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	for column := 0; column < int(p.Character) && at < len(text) && text[at] != '\n' && text[at] != '\r'; {
		r, n := utf8.DecodeRune(text[at:])
		column += max(utf16.RuneLen(r), 1)
		at += n
	}
	return at
}

// pathOf returns the path of a file by its URI. It answers false if it is no file.
func pathOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return "", false
	}
	path := u.Path
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // of Windows: /C:/…
		path = path[1:]
	}
	return filepath.Clean(filepath.FromSlash(path)), true
}

// uriOf returns the URI of a file.
func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
