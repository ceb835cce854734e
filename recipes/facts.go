package recipes

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"bonsai/rules"
)

// factsFunc returns what is known of a step before anything runs: what the value that its
// rule made says of itself.
func factsFunc() function.Function {
	facts := func(args []cty.Value) (cty.Value, error) {
		step, isStep := rules.Value(args[0])
		if !isStep {
			return cty.NilVal, function.NewArgErrorf(0, "a step is required, such as checkpoint.base")
		}
		f, ok := step.(rules.Factual)
		if !ok {
			return cty.NilVal, function.NewArgErrorf(0, "there are no facts of a step of this type")
		}
		return cty.ObjectVal(f.Facts()), nil
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "step", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !args[0].IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			v, err := facts(args)
			if err != nil {
				return cty.NilType, err
			}
			return v.Type(), nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return facts(args) },
	})
}
