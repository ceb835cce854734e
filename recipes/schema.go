package recipes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"bonsai/rules"
)

// A Language says what a recipe may hold.
type Language struct {
	Blocks    []BlockType       `json:"blocks"`   // the language's own first, then those of rules, each in order
	Steps     rules.Schema      `json:"step"`     // what the block of any step may hold beside
	Variables []rules.Attribute `json:"variable"` // what stands for a value in a block with for_each
	Functions []Function        `json:"functions"`
}

// A BlockType is a type of the blocks that a recipe is made of.
type BlockType struct {
	Type    string `json:"type"`
	Label   string `json:"label,omitempty"` // what its label is, "" if it has none
	Step    bool   `json:"step"`            // a block of it is a step, others can refer to it
	Unnamed bool   `json:"unnamed"`         // its attributes have any names
	rules.Schema
}

// A Function is one that expressions can call.
type Function struct {
	Name      string `json:"name"`
	Signature string `json:"signature"` // as in join(separator string, lists list(string)…) string
	Doc       string `json:"doc"`
}

// Describe returns what recipes may hold whose steps have the rules of a catalogue. A rule
// that does not describe itself has an empty schema.
func Describe(catalogue rules.Catalogue) Language {
	l := Language{Steps: stepLanguage(), Functions: describeFunctions()}
	l.Variables = []rules.Attribute{
		{Name: "each.key", Type: "string", Doc: "The key of the element of for_each, or the element itself in a set."},
		{Name: "each.value", Type: "any", Doc: "The element of for_each."},
	}
	l.Blocks = ownBlocks()
	for _, name := range sortedKeys(catalogue) {
		b := BlockType{Type: name, Label: "name", Step: true}
		if d, ok := catalogue[name].(rules.Described); ok {
			b.Schema = d.Schema()
		}
		l.Blocks = append(l.Blocks, b)
	}
	return l
}

// Block returns the block type of this name, or nil.
func (l Language) Block(name string) *BlockType {
	for i := range l.Blocks {
		if l.Blocks[i].Type == name {
			return &l.Blocks[i]
		}
	}
	return nil
}

// Function returns the function of this name, or nil.
func (l Language) Function(name string) *Function {
	for i := range l.Functions {
		if l.Functions[i].Name == name {
			return &l.Functions[i]
		}
	}
	return nil
}

// docs say of each name in a body's schema what the schema does not.
type docs map[string]rules.Attribute

func stepLanguage() rules.Schema {
	s := describe("", stepSchema, docs{
		"for_each": {Type: "any", Doc: "A map, an object or a set of texts: the block makes one step for each element."},
	})
	condition := func(doc, about string) rules.Schema {
		return describe(doc, conditionSchema, docs{
			"condition":     {Type: "bool", Doc: about},
			"error_message": {Type: "string", Doc: "What to say when it is not."},
		})
	}
	s.Blocks = []rules.Nested{
		{Type: "precondition", Several: true, Schema: condition("Refuses the recipe unless a condition is met.",
			"What must be true before anything runs; facts(checkpoint.base) is what is known of a step then.")},
		{Type: "postcondition", Several: true, Schema: condition("Fails the build unless what the step made meets a condition.",
			"What must be true of self: bytes, sha256, files and report.")},
		{Type: "resources", Schema: describe("Says what the actions of the step get; no result depends on it.", resourcesSchema, docs{
			"timeout": {Type: "string", Absent: "none", Doc: "The time after which an action is given up, such as \"2h\"."},
			"memory":  {Type: "string", Absent: "what the rule estimates", Doc: "The memory that an action needs at most, such as \"8GiB\"."},
			"retries": {Type: "integer", Default: "0", Range: "0 to 100", Doc: "How often an action is tried again after a temporary failure."},
		})},
	}
	return s
}

// ownBlocks are the blocks that are the language's, not a rule's.
func ownBlocks() []BlockType {
	validation := describe("Refuses values that do not meet a condition.", conditionSchema, docs{
		"condition":     {Type: "bool", Doc: "What must be true; it refers to variables."},
		"error_message": {Type: "string", Doc: "What to say when it is not."},
	})
	variable := describe("Declares a value that is given from outside: var.NAME.", variableSchema, docs{
		"description": {Type: "string", Doc: "What the value means, for those who give it."},
		"type":        {Type: "type", Absent: "that of the default, or string without one", Doc: "What values it takes: string, number, bool, list(t), set(t), map(t), object({…}), tuple([…]) or any."},
		"default":     {Type: "any", Absent: "a value has to be given", Doc: "The value that it has if none is given."},
		"nullable":    {Type: "bool", Default: "true", Doc: "Whether it may be null."},
	})
	variable.Blocks = []rules.Nested{{Type: "validation", Several: true, Schema: validation}}
	include := describe("Takes in the blocks of another recipe, under the addresses that they have there.", includeSchema, docs{
		"from": {Type: "string", Absent: "the name of the block", Doc: "A file, a folder or the name of a built-in recipe."},
	})
	include.Blocks = []rules.Nested{
		{Type: "variables", Several: true, Schema: rules.Schema{
			Doc: "Gives values to its variables, in the place of their defaults.", Attributes: []rules.Attribute{},
		}},
		{Type: "override", Label: "type and name", Several: true, Schema: rules.Schema{
			Doc: "Replaces attributes and blocks of one of its blocks; null takes an attribute away.", Attributes: []rules.Attribute{},
		}},
	}
	return []BlockType{
		{Type: "include", Label: "name", Schema: include},
		{Type: "recipe", Schema: describe("Says what the recipe is for, and which bonsai reads it.", headerSchema, docs{
			"description": {Type: "string", Doc: "What the recipe makes."},
			"requires":    {Type: "string", Absent: "any version", Doc: "The versions of bonsai that read it, such as \">= 0.1, < 2\"."},
			"numerics": {
				Type: "string", Default: quote("shared"), Values: []string{"shared", "strict"},
				Doc: "Whether results of other backends and versions count as the same: strict keeps them apart.",
			},
		})},
		{Type: "variable", Label: "name", Schema: variable},
		{Type: "locals", Unnamed: true, Schema: rules.Schema{
			Doc: "Gives names to expressions: local.NAME.", Attributes: []rules.Attribute{},
		}},
		{Type: "target", Label: "name", Schema: describe("Names steps that can be asked for together.", targetSchema, docs{
			"steps":       {Type: "list(reference)", Doc: "The steps that it builds."},
			"out":         {Type: "string", Absent: "results stay in the cache", Doc: "The folder in which the files of the steps are placed."},
			"description": {Type: "string", Doc: "What it builds, for those who ask for it."},
		})},
		{Type: "function", Label: "name", Schema: describe("Defines a function that expressions of the recipe can call.", functionSchema, docs{
			"params":         {Type: "list of names", Doc: "The names of its parameters."},
			"variadic_param": {Type: "name", Absent: "no more arguments than params", Doc: "The name for all further arguments together."},
			"result":         {Type: "any", Doc: "Its value: an expression that sees the parameters alone."},
		})},
	}
}

// describe returns the schema of a body whose attributes HCL knows by s.
func describe(doc string, s *hcl.BodySchema, docs docs) rules.Schema {
	schema := rules.Schema{Doc: doc, Attributes: []rules.Attribute{}}
	for _, known := range s.Attributes {
		a := docs[known.Name]
		a.Name, a.Required = known.Name, known.Required
		schema.Attributes = append(schema.Attributes, a)
	}
	slices.SortStableFunc(schema.Attributes, func(a, b rules.Attribute) int {
		return cmp.Compare(optionality(a), optionality(b))
	})
	return schema
}

func optionality(a rules.Attribute) int {
	if a.Required {
		return 0
	}
	return 1
}

// describeFunctions returns the functions in the order of their names.
func describeFunctions() (list []Function) {
	all := functions("", nil, func(rules.Read) {})
	for _, name := range sortedKeys(all) {
		f := all[name]
		doc, ok := functionDocs()[name]
		if !ok {
			doc = strings.ReplaceAll(f.Description(), "`", "")
		}
		list = append(list, Function{Name: name, Signature: signature(name, f), Doc: doc})
	}
	return list
}

// signature returns how a function is called and, where that is always the same, the type
// of what it returns.
func signature(name string, f function.Function) string {
	var params []string
	var types []cty.Type
	for _, p := range f.Params() {
		params = append(params, p.Name+" "+typeText(p.Type))
		types = append(types, p.Type)
	}
	if p := f.VarParam(); p != nil {
		params = append(params, p.Name+" "+typeText(p.Type)+"…")
	}
	text := name + "(" + strings.Join(params, ", ") + ")"
	if result, err := f.ReturnType(types); err == nil && result != cty.DynamicPseudoType {
		text += " " + typeText(result)
	}
	return text
}

// typeText returns a type as a variable block states it; a closure is an expression that the
// function evaluates itself.
func typeText(t cty.Type) string {
	switch {
	case t.IsCapsuleType():
		return "expression"
	case t.IsCollectionType():
		kind, _, _ := strings.Cut(t.FriendlyName(), " ")
		return kind + "(" + typeText(t.ElementType()) + ")"
	case t == cty.DynamicPseudoType:
		return "any"
	}
	return t.FriendlyName()
}

// functionDocs says what those functions do that do not say it themselves, or say it of
// another language.
func functionDocs() map[string]string {
	return map[string]string{
		"abspath":     "Returns an absolute path, given one that is relative to the recipe's folder.",
		"basename":    "Returns the last part of a path.",
		"can":         "Returns whether an expression has a value.",
		"dirname":     "Returns a path without its last part.",
		"endswith":    "Returns whether a text ends with another.",
		"jsondecode":  "Returns the value that a JSON text is.",
		"tonumber":    "Returns a number, given it or its text.",
		"facts":       "Returns what is known of a step before anything runs.",
		"env":         "Returns the value of an environment variable or, if that is not set, the default.",
		"file":        "Returns the text of a file, whose path is relative to the recipe's folder.",
		"fileexists":  "Returns whether there is a file or folder at a path.",
		"format":      "Puts values in the places of a text that verbs such as %s, %d and %q mark.",
		"formatlist":  "Does what format does, once for each element of the lists among its arguments.",
		"jsonencode":  "Returns a value as JSON.",
		"length":      "Returns the number of elements of a collection, or of characters of a text.",
		"log":         "Returns the logarithm of a number x to base y.",
		"pow":         "Returns a number x to the power of y.",
		"tolist":      "Converts a value to a list, or fails.",
		"tomap":       "Converts a value to a map, or fails.",
		"toset":       "Converts a value to a set, or fails.",
		"startswith":  "Returns whether a text starts with another.",
		"strcontains": "Returns whether a text holds another.",
		"try":         "Returns the value of the first expression that has one.",
	}
}

// Names returns the names of the block types and of the functions.
func (l Language) Names() (names []string) {
	for _, b := range l.Blocks {
		names = append(names, b.Type)
	}
	for _, f := range l.Functions {
		names = append(names, f.Name)
	}
	return names
}
