package recipes

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// TestCollectionsAreThoseOfHCL holds that the short way gives what the long one gives.
func TestCollectionsAreThoseOfHCL(t *testing.T) {
	a, b, one := cty.StringVal("a"), cty.StringVal("b"), cty.NumberIntVal(1)
	for _, v := range []cty.Value{
		cty.TupleVal([]cty.Value{b, a, b}), cty.TupleVal([]cty.Value{one, one}), cty.TupleVal([]cty.Value{cty.True}),
		cty.TupleVal([]cty.Value{a, one}), cty.EmptyTupleVal, cty.TupleVal([]cty.Value{a, cty.NullVal(cty.String)}),
		cty.TupleVal([]cty.Value{a, cty.UnknownVal(cty.String)}), cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{a})}),
		cty.ListVal([]cty.Value{b, a}), cty.NullVal(cty.DynamicPseudoType), cty.DynamicVal, one,
		cty.TupleVal([]cty.Value{cty.DynamicVal, a}), cty.UnknownVal(cty.Tuple([]cty.Type{cty.String})),
	} {
		for want, name := range map[cty.Type]string{cty.Set(cty.DynamicPseudoType): "toset", cty.List(cty.DynamicPseudoType): "tolist"} {
			long, longErr := stdlib.MakeToFunc(want).Call([]cty.Value{v})
			short, shortErr := functions("", nil, nil)[name].Call([]cty.Value{v})
			if fmt.Sprint(longErr) != fmt.Sprint(shortErr) || longErr == nil && !long.RawEquals(short) {
				t.Errorf("%s(%#v) = %#v, %v; want %#v, %v", name, v, short, shortErr, long, longErr)
			}
		}
	}
}

// TestSetOfManyTakesNoTime holds that the time for a set does not grow with the square of its
// elements: cty's own function takes longer for these than a test may.
func TestSetOfManyTakesNoTime(t *testing.T) {
	elements := make([]cty.Value, 150_000)
	for i := range elements {
		elements[i] = cty.StringVal(fmt.Sprint(i))
	}
	v, err := functions("", nil, nil)["toset"].Call([]cty.Value{cty.TupleVal(elements)})
	if err != nil || v.LengthInt() != len(elements) {
		t.Errorf("a set of %d texts has %d, %v", len(elements), v.LengthInt(), err)
	}
}
