package recipes

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// HCL's parser and its evaluation call themselves for every bracket and every operator,
// and a stack that overflows cannot be caught: 1 GB holds a million calls for !. These
// limits are a tenth of what fits, and far beyond what is written by people or programs.
const (
	maxDepth     = 1000
	maxOperators = 100_000
)

// checkLimits reports a file that is too deep for the parser. It answers false then.
func (l *loader) checkLimits(f File) bool {
	start := hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: hcl.InitialPos}
	if depth(f.Bytes) > maxDepth {
		l.add(mistake(start, "File too deep", "Brackets nest %d deep at most.", maxDepth))
		return false
	}
	if operators(f) > maxOperators {
		l.add(mistake(start, "File too deep", "There are %d operators in a file at most.", maxOperators))
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
			now--
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
