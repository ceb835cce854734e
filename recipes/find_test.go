package recipes_test

import (
	"fmt"
	"testing"

	"bonsai/recipes"
	"bonsai/rules/rulestest"
)

func TestFind(t *testing.T) {
	text := `mix "a" {
  text  = "x"
  bytes = 7
}

mix "many" {
  for_each = toset(["u"])
  of       = [mix.a]
}
`
	r, diags := recipes.Load([]recipes.File{{Name: "r.hcl", Bytes: []byte(text)}}, recipes.Options{Catalogue: rulestest.Catalogue()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, c := range []struct{ address, setting, want string }{
		{"mix.a", "text", "r.hcl:2"},
		{"mix.a", "settings[3].bytes", "r.hcl:3"},
		{"mix.a", "bytes[0].n", "r.hcl:3"},
		{"mix.a", "no such setting", "r.hcl:1"},
		{"mix.a", "", "r.hcl:1"},
		{`mix.many["u"]`, "of", "r.hcl:8"},
		{"mix.none", "text", ""},
	} {
		got := ""
		if at, ok := r.Find(c.address, c.setting); ok {
			got = fmt.Sprintf("%s:%d", at.Filename, at.Start.Line)
		}
		if got != c.want {
			t.Errorf("Find(%q, %q) = %q, want %q", c.address, c.setting, got, c.want)
		}
	}
}
