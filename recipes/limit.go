package recipes

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"bonsai/rules"
)

// HCL's parser and its evaluation call themselves for every bracket and every operator,
// and a stack that overflows cannot be caught: 1 GB holds a million calls for !. These
// limits are a tenth of what fits, and far beyond what is written by people or programs.
const (
	maxDepth     = 1000
	maxOperators = 100_000
)

// A number with a large exponent takes minutes to become a text, or a whole number.
const maxExponent = 4 // digits

var hugeNumber = regexp.MustCompile(`[0-9.][eE][+-]?0*[1-9][0-9]{4,}`)

// What a function may be asked to make at once: beyond that a short expression, half typed
// perhaps, takes all memory there is.
const (
	maxIndent  = 1000    // spaces
	maxProduct = 100_000 // elements
)

// limited makes f refuse arguments that tooMuch returns an error for. Some may be unknown
// or null then.
func limited(f function.Function, tooMuch func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Description: f.Description(), Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := tooMuch(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// wideIndent is for indent(spaces, text).
func wideIndent(args []cty.Value) error {
	if v := args[0]; v.IsKnown() && !v.IsNull() && v.Type() == cty.Number {
		if n, _ := v.AsBigFloat().Float64(); n < 0 || n > maxIndent {
			return function.NewArgErrorf(0, "a text is indented by 0 to %d spaces", maxIndent)
		}
	}
	return nil
}

// largeProduct is for setproduct(sets...).
func largeProduct(args []cty.Value) error {
	n := 1
	for i, v := range args {
		if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
			continue
		}
		if n *= max(v.LengthInt(), 1); n > maxProduct {
			return function.NewArgErrorf(i, "a product has at most %d elements", maxProduct)
		}
	}
	return nil
}

// checkLimits reports a file that is too deep for the parser. It answers false then.
func (l *loader) checkLimits(f File) bool {
	start := hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: hcl.InitialPos}
	if depth(f.Bytes) > maxDepth {
		l.add(rules.Mistake(start, "File too deep", "Brackets nest %d deep at most.", maxDepth))
		return false
	}
	if operators(f) > maxOperators {
		l.add(rules.Mistake(start, "File too deep", "There are %d operators in a file at most.", maxOperators))
		return false
	}
	for _, at := range hugeNumbers(f) {
		l.add(rules.Mistake(at, "Number out of range", "The exponent of a number has at most %d digits.", maxExponent))
		return false
	}
	return true
}

// depth returns how deep brackets nest, those in texts and comments included.
func depth(b []byte) int {
	deepest, now := 0, 0
	for _, c := range b {
		switch c {
		case '(', '[', '{':
			now++
		case ')', ']', '}':
			now = max(now-1, 0) // one in a comment or a text closes nothing
		}
		deepest = max(deepest, now)
	}
	return deepest
}

// operators returns the number of operators in a file or, if few characters can be
// operators, a bound of it.
func operators(f File) int {
	const signs = "!-+*/%?&|<>["
	n := 0
	for i := range len(signs) {
		n += bytes.Count(f.Bytes, []byte{signs[i]})
	}
	if n <= maxOperators || strings.HasSuffix(f.Name, ".json") {
		return n
	}
	tokens, _ := hclsyntax.LexConfig(f.Bytes, f.Name, hcl.InitialPos)
	n = 0
	for _, t := range tokens {
		outside := t.Type != hclsyntax.TokenQuotedLit && t.Type != hclsyntax.TokenStringLit && t.Type != hclsyntax.TokenComment
		if outside && bytes.ContainsAny(t.Bytes, signs) {
			n++
		}
	}
	return n
}

// hugeNumbers returns where numbers stand that are too large or too small to compute with.
func hugeNumbers(f File) (places []hcl.Range) {
	if !hugeNumber.Match(f.Bytes) {
		return nil // as nearly always
	}
	if strings.HasSuffix(f.Name, ".json") {
		return hugeNumbersJSON(f)
	}
	tokens, _ := hclsyntax.LexConfig(f.Bytes, f.Name, hcl.InitialPos)
	return hugeTokens(tokens)
}

func hugeTokens(tokens hclsyntax.Tokens) (places []hcl.Range) {
	for _, t := range tokens {
		if t.Type == hclsyntax.TokenNumberLit && hugeNumber.Match(t.Bytes) {
			places = append(places, t.Range)
		}
	}
	return places
}

// hugeNumbersJSON is hugeNumbers of a file in JSON, whose texts are templates.
func hugeNumbersJSON(f File) (places []hcl.Range) {
	dec := json.NewDecoder(bytes.NewReader(f.Bytes))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return places // what is no JSON is the parser's to report
		}
		at := hcl.Range{Filename: f.Name, Start: posOf(f.Bytes, int(dec.InputOffset())-1), End: posOf(f.Bytes, int(dec.InputOffset()))}
		switch token := token.(type) {
		case json.Number:
			if hugeNumber.MatchString(token.String()) {
				places = append(places, at)
			}
		case string:
			tokens, _ := hclsyntax.LexTemplate([]byte(token), f.Name, hcl.InitialPos)
			if len(hugeTokens(tokens)) > 0 {
				places = append(places, at)
			}
		}
	}
}

// posOf returns the place of a byte of a file.
func posOf(b []byte, offset int) hcl.Pos {
	before := b[:offset]
	return hcl.Pos{
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]),
		Byte:   offset,
	}
}
