package main

import "testing"

func TestRecognize(t *testing.T) {
	for _, c := range []struct {
		path, sample                 string
		kind, field, separator, why  string
		articles, bytesAreThoseOfIts bool
	}{
		{"a.txt", "Once upon a time", "text", "", "", "nothing says otherwise", false, true},
		{"a", "one<|endoftext|>two", "text", "", "<|endoftext|>", "it has <|endoftext|> between documents", false, true},
		{"wiki.train.raw", " \n = Robert Boulter = \n \n Robert", "wikitext", "", "", "it begins with a heading = Title =", true, true},
		{"a.jsonl", `{"text": "a", "longer": "abcdef"}`, "jsonl", "", "", "by its name", false, true},
		{"a.JSONL", `{"id": "7", "prompt": "abcdef", "n": 4}`, "jsonl", "prompt", "", "the longest text of its first object is in the field prompt", false, true},
		{"a.json", `["a", "b"]`, "json", "", "", "by its name", false, true},
		{"a.jsonl.gz", "\x1f\x8b", "jsonl", "", "", "by its name", false, false},
		{"a.txt.bz2", "BZh", "text", "", "", "nothing says otherwise", false, false},
		{"a.parquet", "PAR1", "parquet", "", "", "by its name", false, false},
		{"empty.txt", "", "text", "", "", "nothing says otherwise", false, true},
	} {
		d := draft{Kind: "text"}
		whole := d.recognize(c.path, []byte(c.sample))
		if d.Kind != c.kind || d.Field != c.field || d.Separator != c.separator || d.Articles != c.articles || d.whyKind() != c.why || whole != c.bytesAreThoseOfIts {
			t.Errorf("recognize(%q, %q) = %v: %+v, because %s", c.path, c.sample, whole, d, d.whyKind())
		}
	}
}
