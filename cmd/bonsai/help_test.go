package main

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"bonsai/rules"
)

// Every command and topic has a page, every page is of one, and a page tells of every
// key that the command accepts.
func TestPages(t *testing.T) {
	names := pageNames()
	entries, err := fs.ReadDir(pages, "help")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".txt"); !slices.Contains(names, name) {
			t.Errorf("page %s is of no command and no topic", e.Name())
		}
	}
	for _, name := range names {
		text, err := pages.ReadFile("help/" + name + ".txt")
		if err != nil {
			t.Errorf("%s has no page", name)
			continue
		}
		for line := range strings.Lines(string(text)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("page %s has a line of %d columns: %q", name, n, line)
			}
		}
	}
	for _, c := range commands() {
		text, _ := pages.ReadFile("help/" + c.name + ".txt")
		for _, key := range c.keys {
			want := "\n  " + key
			if !strings.HasSuffix(key, ".") {
				want += "="
			}
			if !strings.Contains(string(text), want) {
				t.Errorf("the page of %s does not tell of %s", c.name, key)
			}
		}
	}
}

// The page on recipes tells of every block type that there is a rule for.
func TestRecipePage(t *testing.T) {
	text, err := pages.ReadFile("help/recipe.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range rules.Standard(rules.Settings{}) {
		if !strings.Contains(string(text), "\n"+name+` "NAME"`) {
			t.Errorf("the page on recipes does not tell of %s", name)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"16GiB": 16 << 30, "1.5 GiB": 3 << 29, "800MB": 800e6, "512": 512, "2kib": 2048, "7B": 7,
		"": 0, "GiB": 0, "-1GiB": 0, "1e30GiB": 0, "12XB": 0, "nan": 0, "inf": 0, "0": 0, "1GG": 0,
	} {
		if got, ok := parseBytes(text); got != want || ok != (want > 0) {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, ok, want)
		}
	}
}
