package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bonsai/cmd/bonsai/view"
)

// form returns the schema of what is written as JSON, with all objects closed, so that
// what it does not tell of is found.
func form(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	var text bytes.Buffer
	if err := view.WriteFormSchema(&text, name); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(&text)
	if err != nil {
		t.Fatal(err)
	}
	shut(doc)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shut refuses unknown properties in every object of a schema.
func shut(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, object := v["properties"]; object && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, part := range v {
			shut(part)
		}
	case []any:
		for _, part := range v {
			shut(part)
		}
	}
}

// fits checks every line of a text against a schema.
func fits(t *testing.T, s *jsonschema.Schema, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%v in %q", err, line)
		}
	}
}

func TestPlanFitsItsSchema(t *testing.T) {
	s := form(t, "plan")
	fits(t, s, drawPlan(t, aPlan(), view.PlanOptions{JSON: true}))
	for _, wrong := range []string{
		`{}`, `{"version":1,"type":"plan"}`,
		`{"version":1,"type":"plan","entries":[{"step":"a.b","status":"run","cause":false,"reasons":[],"bytes":0,"peak_bytes":0,` +
			`"seconds":0}],"totals":{"run":{"actions":1,"bytes":0,"peak_bytes":0,"seconds":0},"maybe":{"actions":0,"bytes":0,` +
			`"peak_bytes":0,"seconds":0},"hit":{"actions":0,"bytes":0,"peak_bytes":0,"seconds":0}},"causes":0,"followers":1,"critical_s":0,"disk_needed_bytes":0,` +
			`"memory_bytes":0,"disk_bytes":0,"sources":[]}`, // a run without a root
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(wrong))
		if err != nil {
			t.Fatal(err)
		}
		if s.Validate(v) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}

func TestEventsFitTheirSchema(t *testing.T) {
	fits(t, form(t, "events"), draw(t, view.BuildOptions{JSON: true}))
}
