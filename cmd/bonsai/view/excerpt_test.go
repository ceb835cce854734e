package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"bonsai/cmd/bonsai/view"
)

// The mark stands under what it marks also where a line is too long to be shown.
func TestLongLines(t *testing.T) {
	for _, at := range []int{0, 50, 150, 500, 995, 997} {
		line := strings.Repeat("ä", at) + "bad" + strings.Repeat("ö", 997-at)
		m := &view.MistakesError{
			Files: map[string]*hcl.File{"a.hcl": {Bytes: []byte(line), Body: hcl.EmptyBody()}},
			Diagnostics: hcl.Diagnostics{{Summary: "Bad", Subject: &hcl.Range{
				Filename: "a.hcl", Start: hcl.Pos{Line: 1, Column: at + 1, Byte: 2 * at}, End: hcl.Pos{Line: 1, Column: at + 4, Byte: 2*at + 3},
			}}},
		}
		var b bytes.Buffer
		m.Write(&b, view.Style{Width: view.Unlimited})
		lines := strings.Split(b.String(), "\n")
		if len(lines) < 4 {
			t.Fatalf("at %d it says\n%s", at, &b)
		}
		shown, mark := []rune(lines[2]), []rune(lines[3])
		from := strings.Index(lines[3], "^")
		if len(shown) > 220 || from < 0 || string(shown[from:from+3]) != "bad" || string(mark[from:]) != "^^^" {
			t.Errorf("at %d it says\n%s", at, &b)
		}
	}
}
