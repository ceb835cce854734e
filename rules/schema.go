package rules

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// A Schema says what a block may hold: for those who write one, and for what assists them.
type Schema struct {
	Doc        string      `json:"doc"` // one sentence: what the block makes or says
	Attributes []Attribute `json:"attributes"`
	Blocks     []Nested    `json:"blocks,omitempty"`
}

// An Attribute is one that a block may have.
type Attribute struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"` // string, number, integer, bool, list(string), reference, list(reference) or any
	Required bool     `json:"required"`
	Default  string   `json:"default,omitempty"` // an expression with the same meaning as leaving it out
	Absent   string   `json:"absent,omitempty"`  // what leaving it out means, if no expression says it
	Range    string   `json:"range,omitempty"`   // unit and limits, in words
	Values   []string `json:"values,omitempty"`  // the only texts there are
	Refers   []string `json:"refers,omitempty"`  // types of the steps that it may refer to
	Doc      string   `json:"doc"`               // one sentence
}

// A Nested is a type of blocks that stand in another block.
type Nested struct {
	Type     string `json:"type"`
	Label    string `json:"label,omitempty"` // what its label is, "" if it has none
	Required bool   `json:"required"`        // there is at least one
	Several  bool   `json:"several"`         // there may be more than one
	Schema
}

// Described is what a rule may be beside a [Rule]: one that says what its blocks may hold.
type Described interface{ Schema() Schema }

// Attribute returns the attribute with this name, or nil.
func (s Schema) Attribute(name string) *Attribute {
	for i := range s.Attributes {
		if s.Attributes[i].Name == name {
			return &s.Attributes[i]
		}
	}
	return nil
}

// Nested returns the nested block of this type, or nil.
func (s Schema) Nested(kind string) *Nested {
	for i := range s.Blocks {
		if s.Blocks[i].Type == kind {
			return &s.Blocks[i]
		}
	}
	return nil
}

// Takes says in a few words what the attribute may be.
func (a Attribute) Takes() string {
	kind := a.Type
	switch {
	case len(a.Refers) > 0 && strings.HasPrefix(a.Type, "list("):
		kind = "references to " + alternatives(a.Refers)
	case len(a.Refers) > 0:
		kind = "reference to " + alternatives(a.Refers)
	case len(a.Values) > 0:
		var texts []string
		for _, v := range a.Values {
			texts = append(texts, strconv.Quote(v))
		}
		kind = alternatives(texts)
	}
	switch {
	case a.Required:
		return kind + ", required"
	case a.Default != "":
		return kind + ", default " + a.Default
	}
	return kind
}

// Explain says in sentences what the attribute means, with its unit, its limits and what
// holds without it.
func (a Attribute) Explain() string {
	text := a.Doc
	if a.Range != "" {
		text += " " + capital(a.Range) + "."
	}
	if a.Absent != "" {
		text += " Without it: " + a.Absent + "."
	}
	return text
}

// alternatives joins what one of is meant.
func alternatives(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// SchemaOf returns the schema of blocks that decode into a struct like block. Names, types
// and what is required are those of its hcl tags. docs says the rest of each attribute, by
// its name, take.n for one of a nested block, and of each nested block. It panics if docs
// tells of one that there is not.
func SchemaOf(block any, doc string, docs map[string]Attribute) Schema {
	s := schemaOf(reflect.TypeOf(block), doc, "", docs)
	for name := range docs {
		if !s.has(name) {
			panic(fmt.Sprintf("docs of %q, which %T does not have", name, block))
		}
	}
	return s
}

// has says whether there is an attribute or a nested block with a name such as take.n.
func (s Schema) has(name string) bool {
	outer, inner, isIn := strings.Cut(name, ".")
	n := s.Nested(outer)
	if isIn {
		return n != nil && n.has(inner)
	}
	return n != nil || s.Attribute(name) != nil
}

func schemaOf(block reflect.Type, doc, prefix string, docs map[string]Attribute) Schema {
	s := Schema{Doc: doc, Attributes: []Attribute{}}
	var optional []Attribute
	for i := range block.NumField() {
		f := block.Field(i)
		name, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		a := docs[prefix+name]
		switch kind {
		case "":
			a.Required = true
			s.Attributes = append(s.Attributes, a.named(name, f.Type))
		case "optional":
			optional = append(optional, a.named(name, f.Type))
		case "block":
			s.Blocks = append(s.Blocks, nestedOf(name, f.Type, a, prefix, docs))
		}
	}
	s.Attributes = append(s.Attributes, optional...)
	return s
}

// named completes an attribute with what the field of a struct says.
func (a Attribute) named(name string, field reflect.Type) Attribute {
	a.Name = name
	switch {
	case a.Type != "":
	case len(a.Refers) > 0:
		a.Type = "reference"
	default:
		a.Type = typeName(field)
	}
	return a
}

// nestedOf returns the schema of the blocks that a field holds.
func nestedOf(name string, field reflect.Type, a Attribute, prefix string, docs map[string]Attribute) Nested {
	n := Nested{Type: name, Required: a.Required}
	for field.Kind() == reflect.Slice || field.Kind() == reflect.Pointer {
		n.Several = n.Several || field.Kind() == reflect.Slice
		field = field.Elem()
	}
	for i := range field.NumField() {
		if label, kind, _ := strings.Cut(field.Field(i).Tag.Get("hcl"), ","); kind == "label" {
			n.Label = label
		}
	}
	n.Schema = schemaOf(field, a.Doc, prefix+name+".", docs)
	return n
}

// typeName returns the type that values of a field have in the language.
func typeName(field reflect.Type) string {
	if field == reflect.TypeFor[hcl.Expression]() {
		return "any"
	}
	switch field.Kind() {
	case reflect.Pointer:
		return typeName(field.Elem())
	case reflect.Slice:
		return "list(" + typeName(field.Elem()) + ")"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Float32, reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}
