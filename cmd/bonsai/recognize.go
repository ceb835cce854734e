package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"bonsai/ops/dataset"
)

// endOfText is what stands between documents in many collections.
const endOfText = "<|endoftext|>"

// recognize chooses the kind of a file of text and what goes with it, by its name and
// how it begins. It answers false if its bytes are not those of its text.
func (d *draft) recognize(path string, sample []byte) bool {
	name := strings.ToLower(filepath.Base(path))
	plain := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".bz2")
	switch filepath.Ext(plain) {
	case ".parquet":
		d.Kind = dataset.Parquet
		return false
	case ".jsonl", ".ndjson":
		d.Kind = dataset.JSONL
		d.Field = fieldOf(sample)
	case ".json":
		d.Kind = dataset.JSON
		d.Field = fieldOf(bytes.TrimLeft(sample, "[ \t\r\n"))
	default:
		d.recognizeText(sample)
	}
	return plain == name
}

func (d *draft) recognizeText(sample []byte) {
	switch first := string(bytes.TrimSpace(firstLine(sample))); {
	case strings.HasPrefix(first, "= ") && strings.HasSuffix(first, " ="):
		d.Kind, d.Articles = dataset.WikiText, true
	case bytes.Contains(sample, []byte(endOfText)):
		d.Separator = endOfText
	}
}

// firstLine returns the first line that is not blank.
func firstLine(sample []byte) []byte {
	for line := range bytes.Lines(sample) {
		if len(bytes.TrimSpace(line)) > 0 {
			return line
		}
	}
	return nil
}

// fieldOf returns the field of the first object in which the longest text is, "" if that
// is the usual one.
func fieldOf(sample []byte) string {
	var first map[string]any
	if json.NewDecoder(bytes.NewReader(sample)).Decode(&first) != nil {
		return ""
	}
	best, length := "", 0
	for name, v := range first {
		if s, ok := v.(string); ok && (len(s) > length || len(s) == length && name < best) {
			best, length = name, len(s)
		}
	}
	if _, usual := first["text"].(string); usual {
		return ""
	}
	return best
}

// whyKind says what the kind of the text was chosen by.
func (d *draft) whyKind() string {
	switch {
	case d.Separator != "":
		return "it has " + d.Separator + " between documents"
	case d.Articles:
		return "it begins with a heading = Title ="
	case d.Field != "":
		return "the longest text of its first object is in the field " + d.Field
	case d.Kind == dataset.Text:
		return "nothing says otherwise"
	}
	return "by its name"
}
