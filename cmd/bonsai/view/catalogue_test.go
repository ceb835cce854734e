package view_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A message is a text of the source that a user can get.
type message struct {
	pos     token.Pos
	at      string // file and line
	folder  string
	kind    string // error, usage, summary or detail
	text    string
	dynamic bool // part of it is not in the source as a constant
}

// talkers are the folders whose messages reach users.
func talkers() []string {
	return []string{"cache", "cmd", "engine", "kernels", "ops", "recipes", "rules"}
}

// messages returns every message in the source: what is passed to fmt.Errorf, errors.New
// and the functions that make mistakes of them, what the methods Error of types say, and
// what is in a diagnostic.
func messages(t *testing.T) (list []message) {
	t.Helper()
	files := token.NewFileSet()
	for _, folder := range talkers() {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || isForTests(path) {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, m := range messagesOf(file) {
				m.folder = filepath.ToSlash(filepath.Dir(name))
				m.at = fmt.Sprintf("%s:%d", filepath.ToSlash(name), files.Position(m.pos).Line)
				list = append(list, m)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// isForTests reports whether a package serves tests alone.
func isForTests(path string) bool {
	dir := filepath.Base(filepath.Dir(path))
	return strings.HasSuffix(dir, "test") && dir != "test"
}

func messagesOf(file *ast.File) (list []message) {
	add := func(kind string, e ast.Expr) {
		if text, constant := textOf(e); text != "" {
			list = append(list, message{pos: e.Pos(), kind: kind, text: text, dynamic: !constant})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			places := argumentsOf(n)
			for i, kind := range places {
				if i < len(n.Args) {
					add(kind, n.Args[i])
				}
			}
		case *ast.CompositeLit:
			if of, ok := n.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Diagnostic" {
				addFields(n, add)
			}
		case *ast.FuncDecl:
			if n.Name.Name == "Error" && n.Recv != nil && n.Body != nil {
				list = append(list, said(n.Body)...)
			}
		}
		return true
	})
	return list
}

// addFields adds the texts of a diagnostic.
func addFields(diagnostic *ast.CompositeLit, add func(kind string, e ast.Expr)) {
	for _, field := range diagnostic.Elts {
		pair, ok := field.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch key, _ := pair.Key.(*ast.Ident); key.Name {
		case "Summary":
			add("summary", pair.Value)
		case "Detail":
			add("detail", pair.Value)
		}
	}
}

// argumentsOf returns which arguments of a call are messages, of which kind.
func argumentsOf(call *ast.CallExpr) map[int]string {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok {
			name = x.Name + "." + name
		}
	}
	switch name {
	case "fmt.Errorf", "errors.New":
		return map[int]string{0: "error"}
	case "misused", "w.fail":
		return map[int]string{0: "usage"}
	case "Mistake", "rules.Mistake":
		return map[int]string{1: "summary", 2: "detail"}
	default:
		return nil
	}
}

// said returns the texts of a method Error.
func said(body *ast.BlockStmt) (list []message) {
	ast.Inspect(body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.ContainsFunc(text, unicode.IsLetter) {
				list = append(list, message{pos: lit.Pos(), kind: "part", text: text})
			}
		}
		return true
	})
	return list
}

// textOf returns the constant text of an expression, with … for what is not constant.
func textOf(e ast.Expr) (text string, constant bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ = strconv.Unquote(e.Value)
		return text, true
	case *ast.BinaryExpr:
		x, okX := textOf(e.X)
		y, okY := textOf(e.Y)
		if x+y == "" {
			return "", false
		}
		if !okX && x == "" {
			x = "…"
		}
		if !okY && y == "" {
			y = "…"
		}
		return x + y, okX && okY
	case *ast.ParenExpr:
		return textOf(e.X)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" && len(e.Args) > 0 {
			return textOf(e.Args[0])
		}
	}
	return "", false
}

// Every message that a user can get is in testdata/messages.txt, so that each is read when
// it is new, and reads as those beside it.
func TestCatalogueOfMessages(t *testing.T) {
	list := messages(t)
	kinds := map[string]int{}
	for _, m := range list {
		kinds[m.kind]++
	}
	for kind, least := range map[string]int{"error": 200, "usage": 30, "summary": 60, "detail": 60, "part": 30} {
		if kinds[kind] < least {
			t.Errorf("there are %d messages that are a %s: some are not found", kinds[kind], kind)
		}
	}
	var lines []string
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("%-22s %-8s %q", m.folder, m.kind, m.text))
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	path := filepath.Join("testdata", "messages.txt")
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		if _, found := slices.BinarySearch(known, line); !found {
			t.Errorf("new, so read it and run this test with -update: %s", line)
		}
	}
	for _, line := range known {
		if _, found := slices.BinarySearch(lines, line); !found {
			t.Errorf("gone, so run this test with -update: %s", line)
		}
	}
}

// The rules find what they are there to find.
func TestFaultsOfMessages(t *testing.T) {
	for _, m := range []message{
		{kind: "error", text: "Open the file"},
		{kind: "error", text: "no room."},
		{kind: "error", text: "failed to open %s"},
		{kind: "error", text: "no room: run bonsai cache gc", folder: "cache"},
		{kind: "usage", text: "What?!"},
		{kind: "summary", text: "bad bits"},
		{kind: "summary", text: "Bad bits."},
		{kind: "summary", text: "Bad %s"},
		{kind: "detail", text: "there is none."},
		{kind: "detail", text: "There is none"},
	} {
		if faultOf(m) == "" {
			t.Errorf("nothing is wrong with the %s %q", m.kind, m.text)
		}
	}
	for _, m := range []message{
		{kind: "error", text: "GGUF version %d"},
		{kind: "error", text: "Hessian is zero"},
		{kind: "usage", text: "as in bonsai build %s", folder: "cmd/bonsai"},
		{kind: "summary", text: "Unsupported block type"},
		{kind: "detail", text: "There are no blocks of type %s."},
		{kind: "detail", text: "%s is none.", dynamic: true},
	} {
		if why := faultOf(m); why != "" {
			t.Errorf("the %s %q %s", m.kind, m.text, why)
		}
	}
}

// Messages read as they should: an error begins small and ends without a stop, a
// diagnostic is a kind of problem and a sentence or more, and advice that names commands
// is in hint.go alone.
func TestMessagesReadWell(t *testing.T) {
	for _, m := range messages(t) {
		if why := faultOf(m); why != "" {
			t.Errorf("%s: the %s %q %s", m.at, m.kind, m.text, why)
		}
	}
}

var (
	commandName = regexp.MustCompile(`\bbonsai (build|plan|cache|validate|inspect|eval|why|log|runs|fmt|init|help)\b`)
	lastVerb    = regexp.MustCompile(`%[a-z+]+"?$`)
)

// literal reports whether a text begins with a word that is written in one way only: a
// name of a person, or a word of the language of recipes.
func literal(text string) bool {
	word := strings.TrimRight(strings.Fields(text + " .")[0], ":,")
	return slices.Contains([]string{
		"Hessian", "for_each", "requires", "self", "each.key", "nullable", "take", "true",
	}, word)
}

// faultOf says what is wrong with a message, "" if nothing is.
func faultOf(m message) string {
	text := m.text
	first, size := utf8.DecodeRuneInString(text)
	second, _ := utf8.DecodeRuneInString(text[size:])
	switch {
	case strings.Contains(strings.ToLower(text), "failed to"), strings.Contains(text, "unable to"):
		return "says that something failed: say what did"
	case strings.HasSuffix(text, "!"):
		return "shouts"
	case commandName.MatchString(text) && !strings.HasPrefix(m.folder, "cmd"):
		return "names a command: advice is in hint.go"
	}
	switch m.kind {
	case "error", "usage":
		switch {
		case unicode.IsUpper(first) && unicode.IsLower(second) && !literal(text):
			return "begins with a capital"
		case strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "…"):
			return "ends with a stop"
		}
	case "summary":
		switch {
		case !unicode.IsUpper(first) && !m.dynamic && !literal(text):
			return "does not begin with a capital"
		case strings.HasSuffix(text, "."):
			return "ends with a stop"
		case strings.Contains(text, "%"):
			return "holds a name: a summary is a kind of problem"
		}
	case "detail":
		switch {
		case unicode.IsLower(first) && !m.dynamic && !literal(text):
			return "does not begin with a capital"
		case !m.dynamic && !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") && !lastVerb.MatchString(text):
			return "does not end with a stop"
		}
	}
	return ""
}
