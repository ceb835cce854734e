// Package rules gives each block type of a recipe its meaning: a rule decodes
// the block and adds the actions it stands for to the graph.
//
// It does not know the syntax of recipes, the order of blocks or how actions are
// scheduled. Start at [Rule].
package rules

import (
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"bonsai/engine"
)

// A Rule gives one block type its meaning.
//
// # References
//
// An attribute that refers to another step holds what [Reference] made; [Value]
// opens it. A value that is unknown comes from something that failed and has been
// reported: Value answers false, and a diagnostic about that attribute, or about
// the whole block, is dropped by the caller. A rule therefore treats an unknown
// value like any wrong one: it says so and returns.
type Rule interface {
	// Expand decodes the body of one block, or of one instance of a block with
	// for_each, and adds its actions to x.Graph. It returns the step's value: what
	// other steps get when they refer to this one. The value is not used when the
	// diagnostics hold an error.
	//
	// Expand is called once a step, after the steps it refers to, and does not keep x.
	// ctx holds the functions of the language and what the block refers to.
	//
	// The value may have two methods that targets use:
	//
	//	Artifacts() []*engine.Artifact  what a target of this step builds
	//	FileName() string               its name in the target's folder
	Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics)
}

// An Expansion is the place where a rule is expanded.
type Expansion struct {
	Graph *engine.Graph // gets the step's actions
	Step  string        // the step's address, such as codes.body or codes.body["a"]
	Dir   string        // folder of the recipe, which relative paths start from
	Range hcl.Range     // the block's header, for diagnostics about the whole block
	Read  func(Read)    // to be told whatever the rule looks at outside the recipe; never nil
}

// A Catalogue names the rule of each block type. Every block has one label.
type Catalogue map[string]Rule

// stepType is the type of every reference to a step in an expression.
var stepType = cty.Capsule("step", reflect.TypeFor[any]())

// Reference returns the value that an expression gets for a step whose value is v.
// Two references are equal only if they come from the same call.
func Reference(v any) cty.Value { return cty.CapsuleVal(stepType, &v) }

// Unknown returns the reference to a step that failed.
func Unknown() cty.Value { return cty.UnknownVal(stepType) }

// Value returns the value of the step that v refers to. It answers false if v is
// not a reference: null, of another type, or unknown because the step failed.
func Value(v cty.Value) (any, bool) {
	if v == cty.NilVal || v.IsMarked() || !v.IsKnown() || v.IsNull() || !v.Type().Equals(stepType) {
		return nil, false
	}
	return *v.EncapsulatedValue().(*any), true
}
