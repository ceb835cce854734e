package view

import (
	"encoding/json"
	"io"
	"strings"

	"bonsai/recipes"
	"bonsai/rules"
)

// jsonSchema is a JSON Schema, or a part of one.
type jsonSchema map[string]any

// WriteJSONSchema writes a JSON Schema, draft 2020-12, of recipes in JSON: files *.hcl.json.
func WriteJSONSchema(w io.Writer, l recipes.Language) error {
	properties := jsonSchema{"//": jsonSchema{"description": "A comment."}}
	for _, b := range l.Blocks {
		body := objectOf(b.Schema)
		if b.Step {
			extend(body, objectOf(l.Steps))
		}
		if b.Unnamed {
			delete(body, "additionalProperties")
		}
		properties[b.Type] = blocksOf(body, b.Label != "", true)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(jsonSchema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "bonsai recipe",
		"type": "object", "properties": properties, "additionalProperties": false,
	})
}

// objectOf returns the schema of a block's body.
func objectOf(s rules.Schema) jsonSchema {
	properties := jsonSchema{"//": jsonSchema{"description": "A comment."}}
	required := []string{}
	for _, a := range s.Attributes {
		properties[a.Name] = valueOf(a)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	for _, n := range s.Blocks {
		properties[n.Type] = nestedOf(n)
		if n.Required {
			required = append(required, n.Type)
		}
	}
	return jsonSchema{
		"type": "object", "description": s.Doc, "properties": properties, "required": required,
		"additionalProperties": false,
	}
}

// nestedOf returns the schema of the nested blocks of one type. One that tells of nothing
// holds what another block or a recipe says.
func nestedOf(n rules.Nested) jsonSchema {
	body := objectOf(n.Schema)
	if len(n.Attributes)+len(n.Blocks) == 0 {
		delete(body, "additionalProperties")
	}
	if !strings.Contains(n.Label, " and ") {
		return blocksOf(body, n.Label != "", n.Several)
	}
	return jsonSchema{"type": "object", "additionalProperties": blocksOf(body, true, n.Several)}
}

// extend adds the properties of another body, none of which is required.
func extend(body, other jsonSchema) {
	for name, p := range other["properties"].(jsonSchema) {
		body["properties"].(jsonSchema)[name] = p
	}
}

// blocksOf returns the schema of all blocks of a type: under their names if they have any,
// and as a list if there are several of one name.
func blocksOf(body jsonSchema, labelled, several bool) jsonSchema {
	one := body
	if several {
		one = jsonSchema{"anyOf": []jsonSchema{body, {"type": "array", "items": body}}}
	}
	if !labelled {
		return one
	}
	return jsonSchema{"type": "object", "additionalProperties": one}
}

// valueOf returns the schema of an attribute. Any may be an expression in a text.
func valueOf(a rules.Attribute) jsonSchema {
	s := jsonSchema{"description": a.Explain()}
	if a.Default != "" {
		s["default"] = json.RawMessage(a.Default) // literals of the language are JSON
	}
	expression := jsonSchema{"type": "string", "pattern": `[$%]\{`}
	switch {
	case len(a.Values) > 0:
		s["anyOf"] = []jsonSchema{{"enum": a.Values}, expression}
	case a.Type == "reference":
		s["type"] = "string"
		s["pattern"] = `[$%]\{`
	case strings.HasPrefix(a.Type, "list("):
		s["anyOf"] = []jsonSchema{{"type": "array"}, expression}
	case a.Type == "number" || a.Type == "integer":
		s["anyOf"] = []jsonSchema{{"type": a.Type}, expression}
	case a.Type == "bool":
		s["anyOf"] = []jsonSchema{{"type": "boolean"}, expression}
	case a.Type == "string" || a.Type == "type":
		s["type"] = "string"
	}
	return s
}
