package recipes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Check is the op of a postcondition: it fails if what a step made does not meet a
// condition. Its inputs are artifacts of the step; its output is a line that says what the
// values were.
type Check struct {
	Condition, Message string   // expressions, as in the source
	JSON               bool     // they are in the JSON syntax
	Files              []string // what each input is called in self
	Values             []Named  // of the names in the expressions other than self
	Calls              []Named  // of what depends on more than arguments, such as env("HOME")
	Functions          []Definition

	at hcl.Range // of the condition
}

// A Named is a value with what it is the value of.
type Named struct{ Name, Value string } // Value is JSON with the type

// AppendText implements engine.Op.
func (c Check) AppendText(b []byte) ([]byte, error) {
	b = fmt.Appendf(b, "op postcondition v1\nset Condition %q\nset Message %q\nset JSON %t\n", c.Condition, c.Message, c.JSON)
	for i, f := range c.Files {
		b = fmt.Appendf(b, "set Files[%d] %q\n", i, f)
	}
	for _, v := range c.Values {
		b = fmt.Appendf(b, "set Values[%q] %s\n", v.Name, v.Value)
	}
	for _, v := range c.Calls {
		b = fmt.Appendf(b, "set Calls[%q] %s\n", v.Name, v.Value)
	}
	for _, f := range c.Functions {
		b = fmt.Appendf(b, "set Functions[%q] params %q, variadic %q, JSON %t: %q\n", f.Name, f.Params, f.Variadic, f.JSON, f.Result)
	}
	return b, nil
}

// Run implements engine.Op.
func (c Check) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, _ func(float64, string)) error {
	self, err := c.self(ctx, in)
	if err != nil {
		return err
	}
	values, err := c.context(self)
	if err != nil {
		return err
	}
	condition, err := c.parse(c.Condition, c.JSON)
	if err != nil {
		return err
	}
	v, diags := condition.Value(values)
	if diags.HasErrors() {
		return c.failure(diags)
	}
	shown := valuesIn(values, condition)
	met, isBool := truth(v)
	switch {
	case !isBool:
		return fmt.Errorf("the condition at %s is %s, not true or false", c.at, v.Type().FriendlyName())
	case !met:
		return fmt.Errorf("the postcondition at %s is not met: %s\n%s", c.at, c.message(values), shown)
	}
	_, err = fmt.Fprintf(out[0], "met: %s\n", shown)
	return err
}

// message returns what the recipe says of a condition that is not met.
func (c Check) message(values *hcl.EvalContext) string {
	e, err := c.parse(c.Message, c.JSON)
	if err != nil {
		return err.Error()
	}
	v, diags := e.Value(values)
	if diags.HasErrors() {
		return c.failure(diags).Error()
	}
	if v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return valueText(v, nil)
	}
	return v.AsString()
}

// parse reads an expression.
func (c Check) parse(text string, inJSON bool) (hcl.Expression, error) {
	parse := func(b []byte, name string) (hcl.Expression, hcl.Diagnostics) {
		return hclsyntax.ParseExpression(b, name, c.at.Start)
	}
	if inJSON {
		parse = hcljson.ParseExpression
	}
	e, diags := parse([]byte(text), c.at.Filename)
	if diags.HasErrors() {
		return nil, c.failure(diags)
	}
	return e, nil
}

// failure words why an expression has no value, and what the values in it are.
func (c Check) failure(diags hcl.Diagnostics) error {
	d := withValues(diags[0])
	return fmt.Errorf("the postcondition at %s: %s: %s", c.at, d.Summary, d.Detail)
}

// context returns what the expressions refer to.
func (c Check) context(self cty.Value) (*hcl.EvalContext, error) {
	roots := map[string]map[string]cty.Value{}
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"self": self}, Functions: recorded(c.Calls)}
	for _, f := range c.Functions {
		result, err := c.parse(f.Result, f.JSON)
		if err != nil {
			return nil, err
		}
		ctx.Functions[f.Name] = f.over(ctx.Functions, result)
	}
	for _, n := range c.Values {
		v, err := ctyjson.Unmarshal([]byte(n.Value), cty.DynamicPseudoType)
		if err != nil {
			return nil, fmt.Errorf("value of %s: %w", n.Name, err)
		}
		root, name, _ := strings.Cut(n.Name, ".")
		if roots[root] == nil {
			roots[root] = map[string]cty.Value{}
		}
		roots[root][name] = v
	}
	for root, names := range roots {
		ctx.Variables[root] = cty.ObjectVal(names)
	}
	return ctx, nil
}

// maxReport is the most bytes of an artifact that is read as JSON.
const maxReport = 16 << 20

// self returns the facts of what the step made: bytes and sha256 of the first input, and by
// name the same of all (files) and the values of those that are JSON (report).
func (c Check) self(ctx context.Context, in []*io.SectionReader) (cty.Value, error) {
	files, reports := map[string]cty.Value{}, map[string]cty.Value{}
	for i, r := range in {
		facts := map[string]cty.Value{"bytes": cty.NumberIntVal(r.Size())}
		if strings.Contains(c.Condition+c.Message, "sha256") {
			digest, err := digestOf(ctx, r)
			if err != nil {
				return cty.NilVal, err
			}
			facts["sha256"] = cty.StringVal(digest)
		}
		report, ok, err := reportIn(r)
		if err != nil {
			return cty.NilVal, err
		}
		if ok {
			reports[c.Files[i]] = report
		}
		files[c.Files[i]] = cty.ObjectVal(facts)
	}
	self := files[c.Files[0]].AsValueMap()
	self["files"], self["report"] = cty.ObjectVal(files), cty.ObjectVal(reports)
	return cty.ObjectVal(self), nil
}

// digestOf returns the SHA-256 of an input in hexadecimal.
func digestOf(ctx context.Context, r *io.SectionReader) (string, error) {
	h := sha256.New()
	b := make([]byte, 1<<20)
	for at := int64(0); at < r.Size(); {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.ReadAt(b, at)
		if n == 0 && err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		h.Write(b[:n])
		at += int64(n)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// reportIn returns the value of an input that is JSON. ok is false if it is not.
func reportIn(r *io.SectionReader) (v cty.Value, ok bool, err error) {
	var first [1]byte
	if r.Size() == 0 || r.Size() > maxReport {
		return cty.NilVal, false, nil
	}
	if _, err := r.ReadAt(first[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return cty.NilVal, false, err
	}
	if first[0] != '{' && first[0] != '[' {
		return cty.NilVal, false, nil
	}
	text := make([]byte, r.Size())
	if _, err := r.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return cty.NilVal, false, err
	}
	t, err := ctyjson.ImpliedType(text)
	if err != nil || hugeNumber.Match(bytes.ToLower(text)) {
		return cty.NilVal, false, nil //nolint:nilerr // what is not JSON is no report, whatever it begins with
	}
	v, err = ctyjson.Unmarshal(text, t)
	return v, err == nil, nil
}

// impure are the functions whose results depend on more than their arguments.
func impure() []string { return []string{"abspath", "env", "facts", "file", "fileexists"} }

// recording returns functions whose calls of impure ones are told to call, in the form
// that recorded answers.
func recording(all map[string]function.Function, address func(any) string, call func(Named)) map[string]function.Function {
	return replaceImpure(all, func(name string, f function.Function) function.ImplFunc {
		return func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err != nil || !v.IsKnown() {
				return v, err
			}
			text, err := portable(v, address)
			call(Named{callText(name, args, address), text})
			return v, err
		}
	})
}

// recorded returns functions of which the impure ones only answer calls that are among
// those given.
func recorded(calls []Named) map[string]function.Function {
	known := map[string]string{}
	for _, c := range calls {
		known[c.Name] = c.Value
	}
	pure := functions("", func(string) (string, bool) { return "", false }, nil)
	return replaceImpure(pure, func(name string, _ function.Function) function.ImplFunc {
		return func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			call := callText(name, args, nil)
			text, ok := known[call]
			if !ok {
				return cty.NilVal, fmt.Errorf("the value of %s was not known when the recipe was read: its arguments may not depend on self", call)
			}
			return ctyjson.Unmarshal([]byte(text), cty.DynamicPseudoType)
		}
	})
}

// replaceImpure returns the functions with others in the place of the impure ones.
func replaceImpure(all map[string]function.Function, impl func(string, function.Function) function.ImplFunc) map[string]function.Function {
	replaced := map[string]function.Function{}
	for name, f := range all {
		replaced[name] = f
	}
	for _, name := range impure() {
		any := function.Parameter{Name: "argument", Type: cty.DynamicPseudoType}
		replaced[name] = function.New(&function.Spec{
			VarParam: &any, Type: function.StaticReturnType(cty.DynamicPseudoType), Impl: impl(name, all[name]),
		})
	}
	return replaced
}

// callText writes a call as an expression does.
func callText(name string, args []cty.Value, address func(any) string) string {
	var texts []string
	for _, a := range args {
		if standsForStep(a) {
			texts = append(texts, strings.TrimPrefix(a.AsString(), stepMark))
		} else {
			texts = append(texts, valueText(a, address))
		}
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

// stepMark begins the text that stands for a step in a value that is kept.
const stepMark = "\x00step "

// portable returns a value with its type as JSON; a step in it is its address.
func portable(v cty.Value, address func(any) string) (string, error) {
	plain, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.Type().IsCapsuleType() {
			return cty.StringVal(stepMark + address(v.EncapsulatedValue())), nil
		}
		return v, nil
	})
	if err != nil {
		return "", err
	}
	b, err := ctyjson.Marshal(plain, cty.DynamicPseudoType)
	return string(b), err
}
