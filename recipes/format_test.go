package recipes_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"bonsai/recipes"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"a level is two columns", "a \"b\" {\nc=1\n    d {\ne=2\n}\n}\n", "a \"b\" {\n  c = 1\n  d {\n    e = 2\n  }\n}\n"},
		{"equal signs are aligned", "a {\n  b = 1\n  cde = 2\n}\n", "a {\n  b   = 1\n  cde = 2\n}\n"},
		{"a blank line ends the alignment", "a {\n  b = 1\n\n  cde = 2\n}\n", "a {\n  b = 1\n\n  cde = 2\n}\n"},
		{"comments stay", "# one\na { # two\nb = 1 // three\n/* four */ }\n", "# one\na {     # two\n  b = 1 // three\n/* four */ }\n"},
		{"the last line gets an end", "a = 1", "a = 1\n"},
		{"also if it is a comment", "a=1 # b", "a = 1 # b\n"},
		{"line ends of other systems stay", "a {\r\nb=1\r\n}", "a {\r\n  b = 1\r\n}\r\n"},
		{"a byte order mark goes", "\xef\xbb\xbfa=1\n", "a = 1\n"},
		{"blanks at the end of a line go", "a = 1  \t\n", "a = 1\n"},
		{"a heredoc stays", "a = <<X\n  b\n c\nX\n", "a = <<X\n  b\n c\nX\n"},
		{"an indented heredoc stays", "a {\nb = <<-X\n      c\n    d ${ 1+1 }\n  X\n}\n", "a {\n  b = <<-X\n      c\n    d ${1 + 1}\n  X\n}\n"},
		{"lists are indented", "a = [\n1,\n{\nb=2\nccc=3\n}\n]\n", "a = [\n  1,\n  {\n    b   = 2\n    ccc = 3\n  }\n]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, diags := recipes.Format(recipes.File{Name: "a.hcl", Bytes: []byte(c.in)})
			if diags.HasErrors() || string(got) != c.want {
				t.Errorf("Format(%q) = %q, %v; want %q", c.in, got, diags, c.want)
			}
		})
	}
}

func TestFormatRefuses(t *testing.T) {
	for _, in := range []string{"a = ", "a {", "a \"b\n{}", "a=\xd4", strings.Repeat("[", 2000)} {
		if got, diags := recipes.Format(recipes.File{Name: "a.hcl", Bytes: []byte(in)}); got != nil || !diags.HasErrors() {
			t.Errorf("Format(%.20q) = %q, %v; want a diagnostic", in, got, diags)
		}
	}
}

// FuzzFormat checks that what Format returns formats to itself and means what was given.
func FuzzFormat(f *testing.F) {
	for _, seed := range []string{
		"a \"b\" {\nc=1\n}\n", "a = <<-X\n  b ${c}\nX\n", "a={b=1,c=[1,2\n]}\r\n", "# a\nb { c = 1 } // d", "\xef\xbb\xbfa=!b?-c:d[*].e",
		"a = \"%{if b}c%{else}d%{endif}\"\n", "a = [for b in c : b if b>1]\n", "a=f(b...)\n/* c\n */ d=1\n", "a=b.0.c[1]\n", "a {\n\n\n}\n\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, diags := recipes.Format(recipes.File{Name: "a.hcl", Bytes: in})
		if diags.HasErrors() {
			if diags[0].Summary == "File that cannot be formatted" {
				t.Logf("refused: %q", in)
			}
			return
		}
		if whole := hclwrite.Format(hclwrite.Format(append(bytes.Clone(got), '\n'))); !bytes.Equal(bytes.TrimSpace(whole), bytes.TrimSpace(got)) {
			t.Fatalf("Format(%q) = %q, and hclwrite makes of that %q", in, got, whole)
		}
		again, diags := recipes.Format(recipes.File{Name: "a.hcl", Bytes: got})
		if diags.HasErrors() || !bytes.Equal(got, again) {
			t.Fatalf("Format(%q) = %q, and formatted again that is %q, %v", in, got, again, diags)
		}
		if before, after := meaning(in), meaning(got); before != after {
			t.Fatalf("Format(%q) = %q, which means\n%s\nand not\n%s", in, got, after, before)
		}
	})
}

// meaning returns the tree of a file without its places.
func meaning(b []byte) string {
	f, _ := hclsyntax.ParseConfig(b, "", hcl.InitialPos)
	var tree strings.Builder
	writeBody(&tree, f.Body.(*hclsyntax.Body))
	return tree.String()
}

func writeBody(tree *strings.Builder, body *hclsyntax.Body) {
	for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
		fmt.Fprintln(tree, name)
		_ = hclsyntax.VisitAll(body.Attributes[name].Expr, func(n hclsyntax.Node) hcl.Diagnostics {
			fmt.Fprintf(tree, "%T", n)
			switch n := n.(type) {
			case *hclsyntax.LiteralValueExpr:
				fmt.Fprintf(tree, "%#v", n.Val)
			case *hclsyntax.ScopeTraversalExpr:
				fmt.Fprint(tree, len(n.Traversal), n.Traversal.RootName())
			case *hclsyntax.FunctionCallExpr:
				fmt.Fprint(tree, n.Name)
			}
			tree.WriteByte('\n')
			return nil
		})
	}
	for _, b := range body.Blocks {
		fmt.Fprintln(tree, b.Type, b.Labels, "{")
		writeBody(tree, b.Body)
		fmt.Fprintln(tree, "}")
	}
}

// BenchmarkFormat formats ten thousand blocks.
func BenchmarkFormat(b *testing.B) {
	var text bytes.Buffer
	for i := range 10000 {
		fmt.Fprintf(&text, "mix \"a%d\" {\n  of = [file.in, mix.a%d]\n  text  = \"salt %d\" # c\n  bytes = 4096\n}\n\n", i, i-1, i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, diags := recipes.Format(recipes.File{Name: "a.hcl", Bytes: text.Bytes()}); diags.HasErrors() {
			b.Fatal(diags)
		}
	}
}
