package recipes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// add keeps diagnostics, each once.
func (l *loader) add(diags ...*hcl.Diagnostic) {
	for _, d := range withoutEchoes(diags) {
		if key := identity(d) + d.Detail; !l.reported[key] {
			l.reported[key] = true
			l.diags = append(l.diags, withValues(l.settle(d)))
		}
	}
}

// withoutEchoes drops the diagnostics of missing arguments that are there, misspelled:
// each is one mistake, and what HCL says of the misspelled one names the right one.
func withoutEchoes(diags []*hcl.Diagnostic) []*hcl.Diagnostic {
	misspelled := func(missing *hcl.Diagnostic) bool {
		return slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool {
			_, meant, ok := strings.Cut(d.Detail, "Did you mean ")
			return ok && missing.Summary == "Missing required argument" &&
				strings.Contains(missing.Detail, strings.TrimSuffix(meant, "?"))
		})
	}
	return slices.DeleteFunc(slices.Clone(diags), misspelled)
}

// identity returns the kind and the place of a mistake.
func identity(d *hcl.Diagnostic) string {
	r := subject(d)
	return fmt.Sprintf("%s\x00%s:%d-%d\x00", d.Summary, r.Filename, r.Start.Byte, r.End.Byte)
}

// settle makes the text of HCL's diagnostic about an unknown function the same in
// every run: HCL suggests whichever similar name it comes upon first.
func (l *loader) settle(d *hcl.Diagnostic) *hcl.Diagnostic {
	call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
	if !ok {
		return d
	}
	name := call.CalledFunctionNamespace() + call.CalledFunctionName()
	settled := *d
	settled.Detail = fmt.Sprintf("There is no function named %s.%s", quote(name), didYouMean(name, sortedKeys(l.root.functions)))
	return &settled
}

// finish returns the recipe and what was found wrong with it.
func (l *loader) finish() (*Recipe, hcl.Diagnostics) {
	slices.SortStableFunc(l.diags, func(a, b *hcl.Diagnostic) int {
		return compareRanges(subject(a), subject(b))
	})
	return l.recipe, l.diags
}

// subject returns where d points, the zero Range if nowhere.
func subject(d *hcl.Diagnostic) hcl.Range {
	if d.Subject == nil {
		return hcl.Range{}
	}
	return *d.Subject
}

// compareRanges orders ranges by file and place.
func compareRanges(a, b hcl.Range) int {
	return cmp.Or(strings.Compare(a.Filename, b.Filename), cmp.Compare(a.Start.Byte, b.Start.Byte))
}

// didYouMean returns a question to append to a sentence about an unknown name, or "".
func didYouMean(name string, known []string) string {
	if n := nearest(name, known); n != "" {
		return " Did you mean " + quote(n) + "?"
	}
	return ""
}

// nearest returns the known name with the fewest edits from name, the first of
// several, or "" if even that has more than a third of its letters wrong.
func nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if abs(len(k)-len(name)) >= least || k == name {
			continue
		}
		if d := levenshtein.Distance(name, k, nil); d < least && d < len(name) {
			best, least = k, d
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

func quote(s string) string { return strconv.Quote(s) }

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
