package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLinks holds that what a document of the repository links to is there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, document := range []string{"README.md", ".github/CONTRIBUTING.md"} {
		links := link.FindAllStringSubmatch(read(t, document), -1)
		if len(links) == 0 {
			t.Errorf("%s has no links", document)
		}
		for _, m := range links {
			path := filepath.Join(root, filepath.Dir(document), m[1])
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", document, m[1], err)
			}
		}
	}
}

// TestDependencies holds that each direct dependency has a line of reason, and that
// each line is about one.
func TestDependencies(t *testing.T) {
	reasons := read(t, "engine/adr/0006-direct-dependencies.md")
	out, err := exec.Command("go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9.-]+\\.[a-z]+/[^`]+)`").FindAllStringSubmatch(reasons, -1) {
		named[m[1]] = true
	}
	for _, module := range strings.Fields(string(out)) {
		found := false
		for path := range named {
			if path == module || strings.HasPrefix(path, module+"/") {
				found = true
				delete(named, path)
			}
		}
		if !found {
			t.Errorf("go.mod requires %s, and adr/0006 has no reason for it", module)
		}
	}
	for path := range named {
		t.Errorf("adr/0006 has a reason for %s, and go.mod does not require it", path)
	}
}
