package view_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"

	"bonsai/cmd/bonsai/view"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// golden compares what was drawn with the file of this name in testdata. Colours are
// written as \e so that the files are text.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", `\e`)
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("drawn:\n%s\nwant, by %s:\n%s", got, path, want)
	}
}

// looks are the ways a view is looked at, by the names of their files.
func looks() map[string]view.Style {
	return map[string]view.Style{
		"pipe": {Width: view.Unlimited}, "80": {Terminal: true, Width: 80}, "40": {Terminal: true, Width: 40},
		"color": {Terminal: true, Color: true, Width: 80},
	}
}

// inLooks draws in every look and compares each.
func inLooks(t *testing.T, name string, draw func(t *testing.T, s view.Style) string) {
	for look, style := range looks() {
		t.Run(look, func(t *testing.T) {
			got := draw(t, style)
			if !style.Color && strings.ContainsAny(got, "\x1b\r\b\a") {
				t.Errorf("control characters in %q", got)
			}
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				if strings.HasPrefix(line, "         ") {
					continue // the text of a manifest is not cut
				}
				if style.Terminal && lipgloss.Width(line) > style.Width && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("a line of %d columns on a terminal of %d: %q", lipgloss.Width(line), style.Width, line)
				}
			}
			golden(t, name+"_"+look+".txt", got)
		})
	}
}
