package recipes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"bonsai/engine"
	"bonsai/rules"
)

// admit checks the preconditions of a step. It answers false if one is not met.
func (x *expansion) admit(address string, ctx *hcl.EvalContext) bool {
	all := true
	for _, c := range x.decl.preconditions {
		met, message := x.loader.judge(c, ctx, x.say)
		if !met {
			all = false
			d := rules.Mistake(c.condition.Expr.Range(), "Precondition not met", "%s: %s", address, message)
			d.Expression, d.EvalContext = c.condition.Expr, ctx
			x.say(d)
		}
	}
	return all
}

// say reports what is wrong with a block, once for all instances of it.
func (x *expansion) say(diags ...*hcl.Diagnostic) {
	for _, d := range diags {
		if key := identity(d); !x.reported[key] {
			x.reported[key] = true
			x.loader.add(d)
		}
	}
}

// check adds an action for each postcondition of a step.
func (x *expansion) check(s *Step, ctx *hcl.EvalContext) {
	for i, c := range x.decl.postconditions {
		op, in, ok := x.postcondition(s, c, ctx)
		if !ok {
			x.decl.failed = true
			continue
		}
		name := "postcondition"
		if i > 0 {
			name = fmt.Sprintf("postcondition %d", i+1)
		}
		out := x.loader.recipe.Graph.Add(engine.Action{
			Step: s.Address, Name: name, Op: op, In: in, Outputs: []engine.Output{{Size: 256}},
		})
		for _, a := range s.made() {
			x.loader.recipe.checks[a] = append(x.loader.recipe.checks[a], out[0])
		}
	}
}

// postcondition returns the op that checks a condition, and what it reads.
func (x *expansion) postcondition(s *Step, c *condition, ctx *hcl.EvalContext) (op Check, in []*engine.Artifact, ok bool) {
	if len(s.made()) == 0 {
		x.say(rules.Mistake(c.block.DefRange, "Nothing to check", "%s makes nothing that a condition could be about.", s.Address))
		return op, nil, false
	}
	op = Check{
		Condition: x.loader.sourceText(c.condition), Message: x.loader.sourceText(c.message),
		JSON: strings.HasSuffix(c.condition.Range.Filename, ".json"), at: c.condition.Expr.Range(),
	}
	if !refersToSelf(c) {
		x.say(rules.Mistake(c.condition.Expr.Range(), "Condition about nothing",
			"A postcondition is about self, what the step made. What is known before is checked in a precondition."))
		return op, nil, false
	}
	names := filesOf(s.made())
	for i, a := range s.made() {
		if x.isAsked(c, names, i) {
			op.Files, in = append(op.Files, names[i]), append(in, a)
		}
	}
	if len(in) == 0 {
		return op, nil, false // which isAsked reported
	}
	var err error
	if op.Values, err = x.valuesOf(c, ctx); err == nil {
		op.Calls, ok = x.callsOf(c, ctx)
	}
	op.Functions = reached(x.decl.part.own, slices.Concat(
		callsIn(op.Condition, c.condition.Expr, op.JSON), callsIn(op.Message, c.message.Expr, op.JSON)))
	return op, in, ok && err == nil
}

func refersToSelf(c *condition) bool {
	return slices.ContainsFunc(append(c.condition.Expr.Variables(), c.message.Expr.Variables()...),
		func(t hcl.Traversal) bool { return t.RootName() == "self" })
}

// filesOf returns what artifacts are called in self: a source by its file's name, what an
// action makes by the names of the action and the output, "result" if these are empty.
func filesOf(made []*engine.Artifact) (names []string) {
	for _, a := range made {
		action, ok := a.Action()
		name := strings.TrimSpace(action.Name + " " + a.Output().Name)
		if path, _ := a.Source(); !ok {
			name = filepath.Base(path)
		}
		if name == "" {
			name = "result"
		}
		names = append(names, name)
	}
	return names
}

// isAsked says whether a condition is about an artifact: the first for self.bytes and
// self.sha256, one of a name for self.report and self.files, else all.
func (x *expansion) isAsked(c *condition, names []string, i int) bool {
	asked := false
	for _, t := range append(c.condition.Expr.Variables(), c.message.Expr.Variables()...) {
		if t.RootName() != "self" {
			continue
		}
		kind, _ := attribute(t, 1)
		name, named := attribute(t, 2)
		switch {
		case kind == "bytes" || kind == "sha256":
			asked = asked || i == 0
		case (kind == "report" || kind == "files") && named && !slices.Contains(names, name):
			x.say(rules.Mistake(t.SourceRange(), "Reference to an undeclared name", "The step makes nothing called %s.%s It makes: %s.",
				quote(name), didYouMean(name, names), cut(strings.Join(names, ", "))))
		case (kind == "report" || kind == "files") && named:
			asked = asked || names[i] == name
		case kind == "report" || kind == "files" || kind == "":
			asked = true
		default:
			x.say(rules.Mistake(t.SourceRange(), "Unsupported attribute", "There is no self.%s.%s It has bytes, sha256, files and report.",
				kind, didYouMean(kind, []string{"bytes", "sha256", "files", "report"})))
		}
	}
	return asked
}

// valuesOf returns the values of what a condition refers to, self excepted, each once.
func (x *expansion) valuesOf(c *condition, ctx *hcl.EvalContext) (values []Named, err error) {
	seen := map[string]bool{}
	for _, t := range append(c.condition.Expr.Variables(), c.message.Expr.Variables()...) {
		name := t.RootName()
		if second, ok := attribute(t, 1); ok {
			name += "." + second
		}
		if t.RootName() == "self" || seen[name] {
			continue
		}
		seen[name] = true
		v, diags := t[:2].TraverseAbs(ctx)
		if diags.HasErrors() {
			return nil, diags
		}
		text, err := portable(v, x.loader.addressOf)
		if err != nil {
			return nil, err
		}
		values = append(values, Named{name, text})
	}
	slices.SortFunc(values, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return values, nil
}

// callsOf evaluates a condition without self, to find mistakes in it and the values of
// functions that cannot be called later. It answers false for a mistake, which it reports.
func (x *expansion) callsOf(c *condition, ctx *hcl.EvalContext) (calls []Named, ok bool) {
	seen := map[string]bool{}
	later := ctx.NewChild()
	later.Variables = map[string]cty.Value{"self": cty.DynamicVal}
	later.Functions = withDefinitions(recording(x.decl.part.functions, x.loader.addressOf, func(n Named) {
		if !seen[n.Name] {
			seen[n.Name] = true
			calls = append(calls, n)
		}
	}), x.decl.part.own)
	_, diags := c.condition.Expr.Value(later)
	_, more := c.message.Expr.Value(later)
	diags = append(diags, more...)
	x.say(diags...)
	slices.SortFunc(calls, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return calls, !diags.HasErrors()
}

// addressOf returns the address of the step that a reference holds.
func (l *loader) addressOf(ref any) string {
	if s, ok := l.steps[ref]; ok {
		return s.Address
	}
	return "<step>"
}
