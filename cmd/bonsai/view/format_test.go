package view_test

import (
	"bytes"
	"testing"

	"bonsai/cmd/bonsai/view"
)

func TestWriteFormatted(t *testing.T) {
	list := []view.Formatted{
		{File: "same.hcl", Before: []byte("a = 1\n"), After: []byte("a = 1\n")},
		{File: "other.hcl", Before: []byte("a=1\nb=2\x1b\n"), After: []byte("a = 1\nb=2\x1b\n")},
	}
	const diff = "diff old/other.hcl new/other.hcl\n--- old/other.hcl\n+++ new/other.hcl\n@@ -1,2 +1,2 @@\n"
	for _, c := range []struct {
		opt  view.FormatOptions
		want string
	}{
		{view.FormatOptions{}, "other.hcl\n"},
		{view.FormatOptions{Diff: true}, "other.hcl\n" + diff + "-a=1\n+a = 1\n b=2\uFFFD\n"},
		{view.FormatOptions{JSON: true}, `{"version":1,"type":"fmt","files":[{"file":"same.hcl","changed":false},{"file":"other.hcl","changed":true}]}` + "\n"},
	} {
		var b bytes.Buffer
		if err := view.WriteFormatted(&b, list, c.opt); err != nil || b.String() != c.want {
			t.Errorf("with %+v WriteFormatted wrote, with error %v,\n%q\nwant\n%q", c.opt, err, &b, c.want)
		}
	}
}
