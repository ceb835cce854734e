package recipes_test

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"

	"bonsai/recipes"
)

// TestCheck tries conditions on what a step made.
func TestCheck(t *testing.T) {
	inputs := map[string]string{"write": "file", "report": `{"perplexity": 12.5, "texts": [{"nan": 0}]}`, "list": "[1, 2]", "odd": "{no JSON"}
	number := recipes.Named{Name: "var.most", Value: `{"value":20,"type":"number"}`}
	for _, c := range []struct {
		name, condition string
		json            bool
		want            string // of the error, "" for none
	}{
		{"bytes", "self.bytes == 4", false, ""},
		{"a digest", `self.sha256 == "3b9c358f36f0a31b6ad3e14f309c7cf198ac9246e8316f9ce543d5b19ac02b80"`, false, ""},
		{"a report", "self.report.report.perplexity < var.most && self.report.list[1] == 2", false, ""},
		{"no NaN", "length([for t in self.report.report.texts : t if t.nan > 0]) == 0", false, ""},
		{"what is not JSON is no report", `can(self.report.odd)`, false, "is not met: 12.5 of 20"},
		{"not met", "self.report.report.perplexity > var.most", false, "self.report.report.perplexity is 12.5; var.most is 20."},
		{"the JSON syntax", `"${self.report.report.perplexity > var.most}"`, true, "is not met: 12.5 of 20"},
		{"a name that is not there", "self.report.report.perplexty > 1", false, `does not have an attribute named "perplexty"`},
		{"a number for a condition", "self.bytes", false, "is number, not true or false"},
		{"a call that is known", `env("LIMIT") == "x"`, false, ""},
		{"a function of the recipe", `within(self.bytes, 4) && !within(self.bytes, 3)`, false, ""},
		{"a function that fails", `within(self.bytes, "x")`, false, "Call to function \"within\" failed"},
		{"a call that is not", `env("OTHER") == "x"`, false, `env("OTHER") was not known`},
	} {
		t.Run(c.name, func(t *testing.T) {
			op := recipes.Check{
				Condition: c.condition, JSON: c.json, Values: []recipes.Named{number},
				Message: `"${self.report.report.perplexity} of ${var.most}"`,
				Calls:   []recipes.Named{{Name: `env("LIMIT")`, Value: `{"value":"x","type":"string"}`}},
				Functions: []recipes.Definition{
					{Name: "atmost", Params: []string{"n", "most"}, Result: "n <= most"},
					{Name: "within", Params: []string{"n"}, Variadic: "rest", Result: `"${atmost(n, rest[0])}"`, JSON: true},
				},
			}
			var in []*io.SectionReader
			for _, name := range []string{"write", "report", "list", "odd"} {
				op.Files = append(op.Files, name)
				in = append(in, io.NewSectionReader(strings.NewReader(inputs[name]), 0, int64(len(inputs[name]))))
			}
			var out bytes.Buffer
			err := op.Run(t.Context(), in, []io.Writer{&out}, nil)
			if c.want == "" && (err != nil || out.Len() == 0) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Run of %s gives %q, %v; want an error with %q", c.condition, out.String(), err, c.want)
			}
		})
	}
}

// TestCheckText holds that every exported field of a Check is in its text.
func TestCheckText(t *testing.T) {
	text := func(c recipes.Check) string {
		b, err := c.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	named := []recipes.Named{{Name: "a", Value: "1"}}
	changes := map[string]any{
		"Condition": "c", "Message": "m", "JSON": true, "Files": []string{"f"}, "Values": named, "Calls": named,
		"Functions": []recipes.Definition{{Name: "f", Params: []string{"a"}, Result: "a"}},
	}
	for i := range reflect.TypeFor[recipes.Check]().NumField() {
		f := reflect.TypeFor[recipes.Check]().Field(i)
		if !f.IsExported() {
			continue
		}
		var changed recipes.Check
		reflect.ValueOf(&changed).Elem().Field(i).Set(reflect.ValueOf(changes[f.Name]))
		if text(changed) == text(recipes.Check{}) {
			t.Errorf("field %s is not in the text\n%s", f.Name, text(changed))
		}
	}
}
