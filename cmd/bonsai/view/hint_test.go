package view_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
)

// root is the top of the module.
const root = "../../.."

// Every exported error of the module has its place in hint.go, so that whoever adds one
// says what its user can do.
func TestHintsAreComplete(t *testing.T) {
	text, err := os.ReadFile("hint.go")
	if err != nil {
		t.Fatal(err)
	}
	known := selectors(t, string(text))
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if strings.HasPrefix(path, filepath.Join(root, "cmd")) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range exportedErrors(file) {
			if full := file.Name.Name + "." + name; !known[full] {
				t.Errorf("hint.go does not know %s (%s)", full, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What the operating system refuses has advice too, whatever it is wrapped in.
func TestHintsOfTheSystem(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ENOTDIR: "file where a folder", syscall.EISDIR: "A folder is there", syscall.ENAMETOOLONG: "shorten it", syscall.EMFILE: "ulimit -n",
		syscall.EIO: "check it first", syscall.EDQUOT: "quota", syscall.EROFS: "read-only", syscall.EACCES: "who owns",
		errors.New("odd"): "the next build goes on",
	} {
		var b bytes.Buffer
		wrapped := &engine.ActionError{Step: "a.b", Err: &fs.PathError{Op: "open", Path: "x", Err: err}}
		view.Error(&b, wrapped, view.Style{Width: 200})
		if !strings.Contains(b.String(), want) {
			t.Errorf("of %v it says %q, not %q", err, b.String(), want)
		}
	}
}

// exportedErrors returns the names of the exported variables Err… and types …Error that
// a file declares.
func exportedErrors(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if decl.Tok == token.VAR && strings.HasPrefix(n.Name, "Err") {
						names = append(names, n.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() && strings.HasSuffix(s.Name.Name, "Error") {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

// selectors returns all expressions package.Name in a source text.
func selectors(t *testing.T, text string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "hint.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				found[x.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	return found
}
