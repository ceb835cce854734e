package main_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport is the layout of bonsai as policy: which of its folders each folder
// may import. Change it only with a decision in engine/adr.
var mayImport = map[string]string{
	"kernels": "",
	"cache":   "",
	"engine":  "cache",
	"ops":     "kernels",
	"rules":   "engine ops kernels",
	"recipes": "rules engine",
	"cmd":     "recipes rules engine ops cache kernels",
}

// onlyIn lists what some folders keep to themselves: a prefix of import paths and
// the folders, or single packages, that may import them.
var onlyIn = map[string]string{
	"github.com/hashicorp/hcl":      "recipes rules cmd",
	"github.com/zclconf/go-cty":     "recipes rules",
	"github.com/dominikbraun/graph": "engine recipes",
	"github.com/gomlx":              "ops/mlx",
	"github.com/charmbracelet":      "cmd",
	"os/signal":                     "cmd",
	"log":                           "",
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "bonsai/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		from, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		for imported := range strings.FieldsSeq(imports) {
			checkImport(t, strings.TrimPrefix(from, "bonsai/"), imported)
		}
	}
}

func checkImport(t *testing.T, from, imported string) {
	t.Helper()
	folder, _, _ := strings.Cut(from, "/")
	if inner, ours := strings.CutPrefix(imported, "bonsai/"); ours {
		to, _, _ := strings.Cut(inner, "/")
		allowed, known := mayImport[folder]
		if !known {
			t.Errorf("%s is in no folder of the layout", from)
		} else if to != folder && !slices.Contains(strings.Fields(allowed), to) {
			t.Errorf("%s imports %s: %s may import only %q", from, inner, folder, allowed)
		}
		return
	}
	for prefix, places := range onlyIn {
		if imported != prefix && !strings.HasPrefix(imported, prefix+"/") {
			continue
		}
		if p := strings.Fields(places); !slices.Contains(p, folder) && !slices.Contains(p, from) {
			t.Errorf("%s imports %s: only %q may", from, imported, places)
		}
	}
}
