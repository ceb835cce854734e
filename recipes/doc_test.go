package recipes_test

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"bonsai/engine"
	"bonsai/recipes"
	"bonsai/rules"
)

// anything is a rule for blocks of which only the language is tried.
type anything struct{}

func (anything) Expand(x *rules.Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	attrs, _ := body.JustAttributes()
	var diags hcl.Diagnostics
	for name, a := range attrs {
		if name != "for_each" {
			_, more := a.Expr.Value(ctx)
			diags = append(diags, more...)
		}
	}
	made := x.Graph.Add(engine.Action{Step: x.Step, Name: "stories", Op: wordOp{}, Outputs: []engine.Output{{}}})
	return known{toy{artifact: made[0]}}, diags
}

// known is a toy with the facts that samples ask for.
type known struct{ toy }

func (known) Facts() map[string]cty.Value {
	return map[string]cty.Value{"context": cty.NumberIntVal(4096)}
}

// anyOf returns a catalogue with the block types of c and no meaning.
func anyOf(c rules.Catalogue) rules.Catalogue {
	types := rules.Catalogue{}
	for name := range c {
		types[name] = anything{}
	}
	return types
}

// The samples of the reference are recipes, of blocks of types that exist.
func TestDocSamples(t *testing.T) {
	text := packageComment(t)
	opt := recipes.Options{Catalogue: anyOf(rules.Standard(rules.Settings{})), Version: "0.1.0"}
	var samples int
	for _, block := range new(comment.Parser).Parse(text).Content {
		code, ok := block.(*comment.Code)
		if !ok {
			continue
		}
		samples++
		files := []recipes.File{{Name: "sample.hcl", Bytes: []byte(code.Text)}}
		if r, diags := recipes.Load(files, opt); len(diags) > 0 {
			t.Errorf("Load of the sample\n%s\n%s", code.Text, diagnosticText(r, diags))
		}
	}
	if samples < 6 {
		t.Errorf("doc.go has %d samples; were they read?", samples)
	}
}

// The reference names every function that there is.
func TestDocFunctions(t *testing.T) {
	_, list, _ := strings.Cut(packageComment(t), "# Expressions")
	list, _, _ = strings.Cut(list, "# Mistakes")
	names := functionNames(t)
	if len(names) < 50 {
		t.Fatalf("funcs.go has %d functions; were they read?", len(names))
	}
	for _, name := range names {
		if !containsWord(list, name) {
			t.Errorf("doc.go does not name the function %s", name)
		}
	}
}

func containsWord(text, word string) bool {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if w == word {
			return true
		}
	}
	return false
}

func packageComment(t *testing.T) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f.Doc.Text()
}

// functionNames returns the keys of the literal in funcs.go.
func functionNames(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "funcs.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.BasicLit); ok {
				names = append(names, strings.Trim(key.Value, `"`))
			}
		}
		return true
	})
	return names
}
