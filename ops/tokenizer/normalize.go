package tokenizer

import (
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// newNormalizer reads the normalizer of tokenizer.json: what happens to text, in order,
// before it is cut. prefix is what it puts before a text, or "".
func newNormalizer(c *component) (steps []func(string) string, prefix string, err error) {
	for _, c := range c.flatten() {
		switch {
		case c.Type == "NFC":
			steps = append(steps, norm.NFC.String)
		case c.Type == "Prepend":
			prefix = c.Prepend
			steps = append(steps, func(s string) string {
				if s == "" {
					return s
				}
				return c.Prepend + s
			})
		case c.Type == "Replace" && c.Pattern != nil && c.Pattern.String != nil && *c.Pattern.String != "":
			steps = append(steps, func(s string) string {
				return strings.ReplaceAll(s, *c.Pattern.String, c.Content)
			})
		case c.Type == "Replace":
			return nil, "", fmt.Errorf("normalizer: Replace of a pattern that is not a plain string")
		default:
			return nil, "", fmt.Errorf("normalizer: unknown type %q", c.Type)
		}
	}
	return steps, prefix, nil
}
