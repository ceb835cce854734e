package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"bonsai/recipes"
)

// unusedVariables leaves out recipes in which an include in JSON may give a variable on.
func unusedVariables(s *search) {
	if !s.inJSON {
		s.unused("var", "variable")
	}
}

func unusedLocals(s *search) { s.unused("local", "local") }

// unused finds the names under a root that nothing but themselves refers to.
func (s *search) unused(root, what string) {
	used := map[string]bool{}
	for _, d := range s.survey.Declared {
		for _, u := range d.Uses {
			if u.Address != d.Address() {
				used[u.Address] = true
			}
		}
	}
	s.expressions(func(b *hclsyntax.Block, e hclsyntax.Expression) {
		if t, ok := e.(*hclsyntax.ScopeTraversalExpr); ok && b.Type == "include" { // sets variables
			used[addressOf(t.Traversal)] = true
		}
	})
	for _, d := range s.survey.Declared {
		if d.Root == root && !d.Included && !used[d.Address()] {
			s.add(d.Range, fmt.Sprintf("Nothing refers to the %s %s.", what, d.Address()))
		}
	}
}

// unusedFunctions finds the functions that no expression of the recipe calls, if all can be
// looked into.
func unusedFunctions(s *search) {
	if s.inJSON {
		return
	}
	used := map[string]bool{}
	s.expressions(func(_ *hclsyntax.Block, e hclsyntax.Expression) {
		if call, ok := e.(*hclsyntax.FunctionCallExpr); ok {
			used[call.Name] = true
		}
	})
	for _, body := range s.bodies {
		for _, b := range body.Blocks {
			if b.Type == "function" && !used[b.Labels[0]] {
				s.add(b.DefRange(), fmt.Sprintf("Nothing calls the function %s.", b.Labels[0]))
			}
		}
	}
}

// addressOf returns the first two words of a reference.
func addressOf(t hcl.Traversal) string {
	if len(t) > 1 {
		if a, ok := t[1].(hcl.TraverseAttr); ok {
			return t.RootName() + "." + a.Name
		}
	}
	return t.RootName()
}

// unreachedSteps finds the steps that no declared target needs.
func unreachedSteps(s *search) {
	byAddress := map[string]*recipes.Declaration{}
	var open []*recipes.Declaration
	for _, d := range s.survey.Declared {
		byAddress[d.Address()] = d
		if d.Target {
			open = append(open, d)
		}
	}
	if len(open) == 0 {
		return
	}
	reached := map[*recipes.Declaration]bool{}
	for len(open) > 0 {
		d := open[len(open)-1]
		open = open[:len(open)-1]
		for _, u := range d.Uses {
			if to := byAddress[u.Address]; to != nil && !reached[to] {
				reached[to] = true
				open = append(open, to)
			}
		}
	}
	for _, d := range s.survey.Declared {
		if d.Step && !d.Included && !reached[d] {
			s.add(d.Range, fmt.Sprintf("No target needs %s.", d.Address()))
		}
	}
}

// redundantTemplates finds "${x}".
func redundantTemplates(s *search) {
	s.expressions(func(_ *hclsyntax.Block, e hclsyntax.Expression) {
		t, ok := e.(*hclsyntax.TemplateWrapExpr)
		if !ok {
			return
		}
		inner := t.Wrapped.Range().SliceBytes(s.survey.Files[t.SrcRange.Filename].Bytes)
		if !strings.HasPrefix(string(t.SrcRange.SliceBytes(s.survey.Files[t.SrcRange.Filename].Bytes)), `"`) {
			return // in a heredoc
		}
		f := s.add(t.SrcRange, fmt.Sprintf("Write %s without quotes.", inner))
		if !strings.Contains(string(inner), "\n") {
			f.Fix = &Edit{t.SrcRange, string(inner)}
		}
	})
}

// shadowedNames finds for expressions whose names are those of references.
func shadowedNames(s *search) {
	roots := map[string]bool{"each": true}
	for _, d := range s.survey.Declared {
		roots[d.Root] = roots[d.Root] || !d.Target
	}
	s.expressions(func(_ *hclsyntax.Block, e hclsyntax.Expression) {
		f, ok := e.(*hclsyntax.ForExpr)
		if !ok {
			return
		}
		for _, name := range []string{f.KeyVar, f.ValVar} {
			if roots[name] {
				s.add(f.OpenRange, fmt.Sprintf("In this for, %s is its element: %s.… refers to something else.", name, name))
			}
		}
	})
}

// singleForEach finds for_each over something constant with one element or none.
func singleForEach(s *search) {
	for _, b := range s.blocks("") {
		a := b.Body.Attributes["for_each"]
		if a == nil || len(a.Expr.Variables()) > 0 {
			continue
		}
		count := -1
		switch e := a.Expr.(type) {
		case *hclsyntax.ObjectConsExpr:
			count = len(e.Items)
		case *hclsyntax.FunctionCallExpr:
			if list, ok := firstArgument(e, "toset").(*hclsyntax.TupleConsExpr); ok {
				count = len(list.Exprs)
			}
		}
		switch count {
		case 0:
			s.add(a.NameRange, "This for_each makes no step at all.")
		case 1:
			s.add(a.NameRange, "This for_each makes one step.")
		}
	}
}

func firstArgument(call *hclsyntax.FunctionCallExpr, name string) hclsyntax.Expression {
	if call.Name != name || len(call.Args) == 0 {
		return nil
	}
	return call.Args[0]
}

func undescribedTargets(s *search) {
	for _, b := range s.blocks("target") {
		if b.Body.Attributes["description"] == nil && len(b.Labels) > 0 {
			s.add(b.DefRange(), fmt.Sprintf("The target %s has no description.", b.Labels[0]))
		}
	}
}

// absolutePaths finds constant texts that begin at the root of a machine, where paths stand.
func absolutePaths(s *search) {
	for _, b := range s.blocks("") {
		for _, name := range []string{"from", "path", "out"} {
			a := b.Body.Attributes[name]
			if a == nil || len(a.Expr.Variables()) > 0 {
				continue
			}
			v, diags := a.Expr.Value(nil)
			if !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() && isAbsolute(v.AsString()) {
				s.add(a.Expr.Range(), fmt.Sprintf("%q is a path of this machine.", v.AsString()))
			}
		}
	}
}

// isAbsolute says whether a path is absolute on any system, or begins at someone's home.
func isAbsolute(path string) bool {
	drive := len(path) > 2 && path[1] == ':' && strings.ContainsAny(path[2:3], `/\`)
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, "~") || strings.HasPrefix(path, `\\`) || drive
}

// environmentValues finds calls of env outside the defaults of variables.
func environmentValues(s *search) {
	s.expressions(func(b *hclsyntax.Block, e hclsyntax.Expression) {
		call, ok := e.(*hclsyntax.FunctionCallExpr)
		if ok && call.Name == "env" && b.Type != "variable" {
			s.add(call.Range(), "This value is that of the machine which reads the recipe.")
		}
	})
}

func unknownChecks(s *search) {
	var known []string
	for _, r := range Rules() {
		known = append(known, r.ID)
	}
	for _, c := range s.comments {
		for _, name := range c.checks {
			if !slices.Contains(known, name) {
				s.add(c.at, fmt.Sprintf("There is no check %q; there are %s.", name, strings.Join(known, ", ")))
			}
		}
	}
}

// blocks returns the blocks of a type at the top of the recipe's own files, of all types if
// kind is empty.
func (s *search) blocks(kind string) (list []*hclsyntax.Block) {
	for _, body := range s.bodies {
		for _, b := range body.Blocks {
			if kind == "" || b.Type == kind {
				list = append(list, b)
			}
		}
	}
	return list
}

// expressions calls f with every expression of the recipe's own files and the outermost
// block that it is in, in the order of the source within an attribute.
func (s *search) expressions(f func(in *hclsyntax.Block, e hclsyntax.Expression)) {
	for _, b := range s.blocks("") {
		eachExpression(b.Body, func(e hclsyntax.Expression) { f(b, e) })
	}
}

func eachExpression(body *hclsyntax.Body, f func(hclsyntax.Expression)) {
	for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
		_ = hclsyntax.VisitAll(body.Attributes[name].Expr, func(n hclsyntax.Node) hcl.Diagnostics {
			if e, ok := n.(hclsyntax.Expression); ok {
				f(e)
			}
			return nil
		})
	}
	for _, b := range body.Blocks {
		eachExpression(b.Body, f)
	}
}
