package recipes_test

import (
	"fmt"
	"strings"
	"testing"

	"bonsai/recipes"
)

func TestFunctionsThatCallFunctionsAreEvaluatedOnce(t *testing.T) {
	var b strings.Builder
	b.WriteString("function \"f0\" {\n  params = [x]\n  result = x\n}\n")
	for i := range 60 { // doubled at each of these, this would take years
		fmt.Fprintf(&b, "function \"f%d\" {\n  params = [x]\n  result = f%d(x)\n}\n", i+1, i)
	}
	b.WriteString("locals {\n  a = f60(1)\n}\n")
	if _, diags := recipes.Load([]recipes.File{{Name: "a.hcl", Bytes: []byte(b.String())}}, recipes.Options{}); diags.HasErrors() {
		t.Errorf("Load gives %v, want no mistakes", diags)
	}
}

func TestClosingBracketsInACommentHideNoDepth(t *testing.T) {
	text := "# " + strings.Repeat(")", 2000) + "\nlocals {\n  a = " + strings.Repeat("(", 1500) + "1" + strings.Repeat(")", 1500) + "\n}\n"
	_, diags := recipes.Load([]recipes.File{{Name: "a.hcl", Bytes: []byte(text)}}, recipes.Options{})
	if len(diags) != 1 || diags[0].Summary != "File too deep" {
		t.Errorf("Load gives %v, want one that the file is too deep", diags)
	}
}
