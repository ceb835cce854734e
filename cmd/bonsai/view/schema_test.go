package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"bonsai/cmd/bonsai/view"
	"bonsai/recipes"
	"bonsai/rules"
)

// language is a small one, with something of everything.
func language() recipes.Language {
	return recipes.Language{
		Blocks: []recipes.BlockType{{Type: "soup", Label: "name", Step: true, Schema: rules.Schema{
			Doc: "Cooks what other steps cut, slowly, until all of it is soft enough to be eaten with a spoon.",
			Attributes: []rules.Attribute{
				{Name: "of", Type: "list(reference)", Required: true, Refers: []string{"leek", "onion"}, Doc: "What is cooked."},
				{Name: "heat", Type: "string", Default: `"low"`, Values: []string{"low", "high"}, Doc: "How hot."},
				{Name: "hours", Type: "number", Range: "hours, from 1 to 8", Absent: "until it is done", Doc: "How long."},
			},
			Blocks: []rules.Nested{{Type: "spice", Label: "name", Several: true, Schema: rules.Schema{
				Doc:        "Adds a spice.",
				Attributes: []rules.Attribute{{Name: "pinch", Type: "bool", Default: "true", Doc: "Whether it is a pinch."}},
			}}},
		}}},
		Steps:     rules.Schema{Attributes: []rules.Attribute{{Name: "for_each", Type: "any", Doc: "One for each."}}},
		Functions: []recipes.Function{{Name: "stir", Signature: "stir(pot any) any", Doc: "Stirs."}},
	}
}

const soup = `soup "NAME"

Cooks what other steps cut, slowly, until all of it is soft enough to be eaten
with a spoon.

  of  references to leek or onion, required
      What is cooked.
  heat  "low" or "high", default "low"
      How hot.
  hours  number
      How long. Hours, from 1 to 8. Without it: until it is done.
  spice "NAME"  any number
      Adds a spice.
      pinch  bool, default true
          Whether it is a pinch.

Any step may have beside:

  for_each  any
      One for each.
`

func TestWriteBlockType(t *testing.T) {
	var b bytes.Buffer
	l := language()
	if err := view.WriteBlockType(&b, l.Blocks[0], l.Steps, view.SchemaOptions{Style: view.Style{Width: view.Unlimited}}); err != nil || b.String() != soup {
		t.Errorf("WriteBlockType wrote, with error %v,\n%s\nwant\n%s", err, &b, soup)
	}
}

func TestWriteLanguage(t *testing.T) {
	const want = `Blocks of a recipe; bonsai schema NAME tells all of one.

  soup          Cooks what other steps cut, slowly, until all of it is soft
                enough to be eaten with a spoon.

Any step may have beside:

  for_each      One for each.

Functions; bonsai schema NAME tells what one does.

  stir
`
	var b bytes.Buffer
	if err := view.WriteLanguage(&b, language(), view.SchemaOptions{Style: view.Style{Width: 80}}); err != nil || b.String() != want {
		t.Errorf("WriteLanguage wrote, with error %v,\n%s\nwant\n%s", err, &b, want)
	}
	b.Reset()
	if err := view.WriteLanguage(&b, language(), view.SchemaOptions{JSON: true}); err != nil ||
		!strings.HasPrefix(b.String(), `{"version":1,"type":"schema","blocks":[{"type":"soup"`) {
		t.Errorf("as JSON WriteLanguage wrote, with error %v,\n%s", err, &b)
	}
}

func TestWriteJSONSchema(t *testing.T) {
	var b bytes.Buffer
	if err := view.WriteJSONSchema(&b, language()); err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	var s struct {
		Properties map[string]struct {
			AdditionalProperties struct{ AnyOf []schema }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatalf("%v in\n%s", err, &b)
	}
	body := s.Properties["soup"].AdditionalProperties.AnyOf[0]
	if strings.Join(body.Required, " ") != "of" || len(body.Properties) != 6 {
		t.Errorf("the schema of soup is %+v", body)
	}
	if heat := string(body.Properties["heat"]); !strings.Contains(heat, `"low",`) || !strings.Contains(heat, `"default"`) {
		t.Errorf("the schema of heat is %s", heat)
	}
}
