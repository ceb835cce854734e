package recipes

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// toCollection returns the function that makes a list or a set of a value. For
// elements that are all of one simple type it goes without cty's search for a type that suits all
// of them, which takes time with the square of their number.
func toCollection(want cty.Type, make func([]cty.Value) cty.Value) function.Function {
	general := stdlib.MakeToFunc(want)
	return function.New(&function.Spec{
		Params: general.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if t, ok := simpleElements(args[0]); ok {
				return make([]cty.Value{cty.UnknownVal(t)}).Type(), nil
			}
			return general.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if _, ok := simpleElements(args[0]); ok {
				return make(args[0].AsValueSlice()), nil
			}
			return general.Call(args)
		},
	})
}

// simpleElements returns the type of the elements of a tuple, if there are some and all have
// the same one, of numbers, texts or bools.
func simpleElements(v cty.Value) (t cty.Type, ok bool) {
	if !v.Type().IsTupleType() || !v.IsKnown() || v.IsNull() {
		return cty.NilType, false
	}
	types := v.Type().TupleElementTypes()
	for _, e := range types {
		if !e.IsPrimitiveType() || !e.Equals(types[0]) {
			return cty.NilType, false
		}
	}
	if len(types) == 0 {
		return cty.NilType, false
	}
	return types[0], true
}
