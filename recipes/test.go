package recipes

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"bonsai/rules"
)

// TestSuffix is that of the names of files that test the recipe of their folder.
const TestSuffix = ".hcltest"

// An Outcome is how one run block of a test went.
type Outcome struct {
	Name     string
	Range    hcl.Range
	Failures hcl.Diagnostics // none: it passed
}

var (
	testSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "run", LabelNames: []string{"name"}}}}
	runSchema  = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "expect_failures"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "variables"}, {Type: "assert"}},
	}
)

// Test reads a recipe once for each run block of its tests, with the values of the
// block's variables, and checks its assertions. Nothing runs: plan holds what would. It
// returns the outcomes in the order of the source, the files that diagnostics are about,
// and the mistakes of the tests themselves.
func Test(tests, files []File, opt Options) (outcomes []Outcome, sources map[string]*hcl.File, diags hcl.Diagnostics) {
	parser := newLoader(opt)
	for _, t := range tests {
		body := parser.parseFile(t)
		if body == nil {
			continue
		}
		content, wrong := body.Content(testSchema)
		parser.add(wrong...)
		for _, b := range content.Blocks {
			r := &run{file: t, block: b, parser: parser}
			outcomes = append(outcomes, Outcome{Name: b.Labels[0], Range: b.DefRange, Failures: r.test(files, opt)})
		}
	}
	slices.SortStableFunc(outcomes, func(a, b Outcome) int { return compareRanges(a.Range, b.Range) })
	_, diags = parser.finish()
	return outcomes, parser.recipe.Files, diags
}

// A run is one run block of a test.
type run struct {
	file   File
	block  *hcl.Block
	parser *loader // of the tests
}

// test returns what fails.
func (r *run) test(files []File, opt Options) hcl.Diagnostics {
	content, wrong := r.block.Body.Content(runSchema)
	r.parser.add(wrong...)
	for _, b := range content.Blocks.OfType("variables") {
		opt.VarFiles = append(slices.Clip(opt.VarFiles), r.valuesOf(b))
	}
	l := load(files, opt)
	for name, f := range l.recipe.Files {
		if name != r.file.Name {
			r.parser.recipe.Files[name] = f
		}
	}
	if a := content.Attributes["expect_failures"]; a != nil {
		return r.expect(a, l)
	}
	if _, diags := l.finish(); diags.HasErrors() {
		return diags
	}
	l.diags, l.reported = nil, map[string]bool{}
	l.declarePlan()
	for _, b := range content.Blocks.OfType("assert") {
		l.assert(b)
	}
	return l.diags
}

// valuesOf returns a variables block as a file of values, with the lines where they are.
func (r *run) valuesOf(b *hcl.Block) File {
	body, ok := b.Body.(*hclsyntax.Body)
	if !ok {
		return File{Name: r.file.Name}
	}
	open, end := b.DefRange.End.Byte, body.Range().End.Byte
	open += bytes.IndexByte(r.file.Bytes[open:], '{') + 1
	if r.file.Bytes[end-1] == '}' {
		end--
	}
	text := bytes.Clone(r.file.Bytes[:end])
	for i := range open {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
	return File{Name: r.file.Name, Bytes: text}
}

// expect returns what fails of a run that the recipe should refuse: every mistake must have
// one of the texts in it, and every text be in a mistake.
func (r *run) expect(a *hcl.Attribute, l *loader) (failures hcl.Diagnostics) {
	v, diags := a.Expr.Value(nil)
	r.parser.add(diags...)
	if diags.HasErrors() {
		return nil
	}
	var texts []string
	for _, element := range elementsOf(v) {
		if element.Type() != cty.String || element.IsNull() {
			r.parser.add(rules.Mistake(a.Expr.Range(), "Text expected", "Failures that are expected are a list of texts, parts of what the recipe says."))
			return nil
		}
		texts = append(texts, element.AsString())
	}
	met := map[string]bool{}
	for _, d := range l.diags {
		i := slices.IndexFunc(texts, func(t string) bool { return strings.Contains(d.Summary+": "+d.Detail, t) })
		if i < 0 {
			failures = append(failures, d)
			continue
		}
		met[texts[i]] = true
	}
	for _, t := range texts {
		if !met[t] {
			failures = append(failures, rules.Mistake(a.Expr.Range(), "Failure expected", "The recipe says nothing with %s in it.", quote(t)))
		}
	}
	return failures
}

// elementsOf returns the elements of a list, a tuple or a set, none of anything else.
func elementsOf(v cty.Value) (list []cty.Value) {
	if v.IsNull() || !v.CanIterateElements() {
		return []cty.Value{v}
	}
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		list = append(list, element)
	}
	return list
}

// A planned is what would run of a step, or of all.
type planned struct {
	Actions int     `cty:"actions"`
	Seconds float64 `cty:"seconds"` // estimated
	Peak    int64   `cty:"peak"`    // bytes of memory of the largest action
	Bytes   int64   `cty:"bytes"`   // of all outputs, estimated
}

func (p *planned) add(seconds float64, peak, bytes int64) {
	p.Actions++
	p.Seconds += seconds
	p.Peak = max(p.Peak, peak)
	p.Bytes += bytes
}

// declarePlan declares plan: what a build of everything from nothing would run.
func (l *loader) declarePlan() {
	var all planned
	steps := map[string]planned{}
	for a := range l.recipe.Graph.Actions() {
		bytes := int64(0)
		for _, o := range a.Outputs {
			bytes += o.Size
		}
		one := steps[a.Step]
		one.add(a.Cost, a.Peak, bytes)
		all.add(a.Cost, a.Peak, bytes)
		steps[a.Step] = one
	}
	for _, s := range l.recipe.Steps {
		steps[s.Address] = cmp.Or(steps[s.Address], planned{}) // those without actions too
	}
	of := cty.Object(map[string]cty.Type{"actions": cty.Number, "seconds": cty.Number, "peak": cty.Number, "bytes": cty.Number})
	l.roots["plan"] = true
	for name, v := range map[string]any{"actions": all.Actions, "seconds": all.Seconds, "peak": all.Peak, "bytes": all.Bytes} {
		value, err := gocty.ToCtyValue(v, cty.Number)
		l.declareValue(name, value, err)
	}
	value, err := gocty.ToCtyValue(steps, cty.Map(of))
	l.declareValue("steps", value, err)
}

func (l *loader) declareValue(name string, v cty.Value, err error) {
	if err != nil {
		panic(err) // the types are those above
	}
	l.named["plan."+name] = &decl{root: "plan", name: name, value: v, part: l.root}
}

// assert reports an assertion that is not met.
func (l *loader) assert(b *hcl.Block) {
	content, diags := b.Body.Content(conditionSchema)
	l.add(diags...)
	if diags.HasErrors() {
		return
	}
	condition, message := content.Attributes["condition"], content.Attributes["error_message"]
	v, ok := l.valueIn(condition)
	text, okText := l.valueIn(message)
	if !ok || !okText {
		return
	}
	said, ok := l.text(message, text)
	if !ok {
		return
	}
	met, isBool := truth(v)
	switch {
	case !isBool:
		l.add(rules.Mistake(condition.Expr.Range(), "true or false expected", "A condition is true or false; this one is %s.", v.Type().FriendlyName()))
	case !met:
		l.add(rules.Mistake(condition.Expr.Range(), "Assertion failed", "%s", said))
	}
}

// valueIn returns the value of an attribute as if it stood in the recipe.
func (l *loader) valueIn(a *hcl.Attribute) (cty.Value, bool) {
	before := len(l.diags)
	d := &decl{root: "assert", name: a.Name, at: a.Range, expr: a.Expr, part: l.root}
	l.link(d)
	l.evaluateLocal(d)
	return d.value, len(l.diags) == before
}
