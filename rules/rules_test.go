package rules_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"bonsai/rules"
)

func TestReferenceKeepsTheValue(t *testing.T) {
	type weights struct{ layers int }
	want := &weights{layers: 2}
	got, ok := rules.Value(rules.Reference(want))
	if !ok || got != any(want) {
		t.Errorf("Value(Reference(%p)) = %v, %v", want, got, ok)
	}
}

func TestReferenceToNothingIsStillAReference(t *testing.T) {
	if got, ok := rules.Value(rules.Reference(nil)); got != nil || !ok {
		t.Errorf("Value(Reference(nil)) = %v, %v; want nil, true", got, ok)
	}
}

func TestReferencesFitInOneCollection(t *testing.T) {
	m := cty.MapVal(map[string]cty.Value{
		"a": rules.Reference(1), "b": rules.Reference("two"), "failed": rules.Unknown(),
	})
	if got, ok := rules.Value(m.Index(cty.StringVal("b"))); got != "two" || !ok {
		t.Errorf(`Value(m["b"]) = %v, %v; want two, true`, got, ok)
	}
}

func TestValueRefusesWhatIsNoReference(t *testing.T) {
	for name, v := range map[string]cty.Value{
		"a failed step":   rules.Unknown(),
		"an unknown":      cty.DynamicVal,
		"nothing":         cty.NilVal,
		"null":            cty.NullVal(cty.DynamicPseudoType),
		"a null step":     cty.NullVal(rules.Unknown().Type()),
		"a string":        cty.StringVal("codes.body"),
		"a marked step":   rules.Reference(1).Mark("secret"),
		"a list of steps": cty.ListVal([]cty.Value{rules.Reference(1)}),
	} {
		if got, ok := rules.Value(v); ok {
			t.Errorf("Value(%s) = %v, true; want false", name, got)
		}
	}
}
