package engine_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A decision is superseded by number, so no two have the same one, none is left out, and
// the title of each says it.
func TestDecisionsAreNumbered(t *testing.T) {
	files, err := filepath.Glob("adr/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no decisions in adr: %v", err)
	}
	for i, file := range files {
		digits, _, _ := strings.Cut(filepath.Base(file), "-")
		if n, err := strconv.Atoi(digits); err != nil || n != i+1 {
			t.Errorf("%s is in place %d: %v", file, i+1, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if title := "# " + strconv.Itoa(i+1) + ". "; !strings.HasPrefix(string(text), title) {
			t.Errorf("%s does not begin with %q", file, title)
		}
	}
}
