package assist

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"bonsai/recipes"
	"bonsai/rules"
)

// The kinds of items.
const (
	BlockItem     = "block"
	AttributeItem = "attribute"
	ReferenceItem = "reference"
	FunctionItem  = "function"
	ValueItem     = "value"
)

// An Item is something that may stand at a place.
type Item struct {
	Label  string // what it is called, and what replaces the word that is being typed
	Insert string // what is put there instead, if not the label
	Kind   string
	Detail string // a few words
	Doc    string // sentences
	From   int    // byte at which the word that is being typed begins
}

// Complete returns what may stand at a place, the likeliest first.
func (r *Recipe) Complete(at Place) []Item {
	f, ok := r.file(at.File)
	if !ok || at.Byte > len(f.Bytes) || at.Byte < 0 || strings.HasSuffix(at.File, ".json") {
		return nil
	}
	c := r.cursorAt(f, at.Byte)
	var items []Item
	switch {
	case c.comment:
	case c.label != nil:
		items = r.labels(*c.label)
	case c.quote && c.attribute == "":
	case c.quote:
		items = values(c.schema.Attribute(c.attribute), strconv.Quote)
		for i := range items {
			items[i].Label = strings.Trim(items[i].Label, `"`)
		}
	case c.attribute == "" && c.inBody:
		items = r.statements(c)
	case c.attribute != "" || !c.inBody:
		items = r.expressions(c)
	}
	for i := range items {
		items[i].From = c.from
	}
	return slices.DeleteFunc(items, func(i Item) bool { return !strings.HasPrefix(i.Label, c.word) })
}

// A cursor is a place that is being typed at.
type cursor struct {
	from      int    // where the word begins that is being typed
	word      string // what of it is there
	path      []string
	inBody    bool   // a statement begins here
	quote     bool   // in a text
	comment   bool   // in a comment
	label     *frame // in the label of this block
	schema    rules.Schema
	top       bool   // outside of all blocks
	frame     frame  // the innermost block
	attribute string // whose value stands here
	each      bool   // the block has for_each
	variable  bool   // in a variable block, where nothing may be referred to
}

// cursorAt finds out what a place is.
func (r *Recipe) cursorAt(f recipes.File, at int) cursor {
	s := scanFile(f, at)
	c := cursor{from: at}
	if n := len(s.tokens); n > 0 {
		last := s.tokens[n-1]
		inside := last.Range.End.Byte >= at
		switch {
		case last.Type == hclsyntax.TokenComment && (last.Range.End.Byte > at || last.Range.End.Byte == at && last.Bytes[len(last.Bytes)-1] != '\n'):
			c.comment = true
		case inside && last.Type == hclsyntax.TokenIdent:
			c.from = last.Range.Start.Byte
			s = scanFile(f, c.from)
		case inside && (last.Type == hclsyntax.TokenQuotedLit || last.Type == hclsyntax.TokenStringLit):
			c.from = last.Range.Start.Byte
		}
		c.word = string(f.Bytes[c.from:at])
	}
	c.path = pathBefore(s.tokens)
	c.quote = s.top().quote
	body := innermost(s.frames)
	c.top, c.frame = body == 0, s.frames[body]
	c.inBody = s.top().body && len(s.statement) == 0
	c.variable = body > 0 && s.frames[1].kind == "variable"
	if body > 0 {
		c.schema = r.schemaOf(s.frames[1 : body+1])
		c.each = slices.Contains(s.frames[1].attrs, "for_each") || hasForEach(f, s.frames[1])
	}
	if len(s.statement) > 1 && s.statement[1].Type == hclsyntax.TokenEqual {
		c.attribute = string(s.statement[0].Bytes)
	} else if c.quote && len(s.statement) > 0 {
		header := headerOf(s.statement)
		c.label = &header
	}
	return c
}

// innermost returns the place of the innermost frame that is a body.
func innermost(frames []frame) int {
	for i := len(frames) - 1; i > 0; i-- {
		if frames[i].body {
			return i
		}
	}
	return 0
}

// hasForEach says whether a block, whose header is known, has for_each further down.
func hasForEach(f recipes.File, block frame) bool {
	all := scanFile(f, len(f.Bytes)+1)
	for _, d := range all.declared {
		if d.at.Start.Byte >= block.header.Start.Byte && d.at.End.Byte <= block.header.End.Byte && d.end.Byte > 0 {
			return strings.Contains(string(f.Bytes[block.header.End.Byte:d.end.Byte]), "for_each")
		}
	}
	return false
}

// pathBefore returns the names before the last dot, as in var. or codes.body.
func pathBefore(tokens []hclsyntax.Token) (path []string) {
	i := len(tokens) - 1
	for i > 0 && tokens[i].Type == hclsyntax.TokenDot && tokens[i-1].Type == hclsyntax.TokenIdent {
		path = append(path, string(tokens[i-1].Bytes))
		i -= 2
	}
	slices.Reverse(path)
	return path
}

// labels returns the names that a label may be: those of recipes that an include may name.
func (r *Recipe) labels(block frame) (items []Item) {
	if block.kind != "include" {
		return nil
	}
	for _, name := range recipes.BuiltinNames() {
		items = append(items, Item{Label: name, Kind: ValueItem, Detail: "a built-in recipe"})
	}
	return items
}

// statements returns what a line of a body may begin with: required attributes first, and
// none that is there already.
func (r *Recipe) statements(c cursor) (items []Item) {
	if c.top {
		for _, b := range r.language.Blocks {
			items = append(items, blockItem(b.Type, b.Label, b.Schema))
		}
		return items
	}
	for _, required := range []bool{true, false} {
		for _, a := range c.schema.Attributes {
			if a.Required == required && !slices.Contains(c.frame.attrs, a.Name) {
				items = append(items, Item{Label: a.Name, Insert: a.Name + " = ", Kind: AttributeItem, Detail: a.Takes(), Doc: a.Explain()})
			}
		}
		for _, n := range c.schema.Blocks {
			if n.Required == required {
				items = append(items, blockItem(n.Type, n.Label, n.Schema))
			}
		}
	}
	return items
}

func blockItem(kind, label string, s rules.Schema) Item {
	insert := kind + " {"
	if label != "" {
		insert = kind + ` "" {`
	}
	return Item{Label: kind, Insert: insert, Kind: BlockItem, Detail: "block", Doc: s.Doc}
}

// expressions returns what an expression may begin with, or go on with after a dot.
func (r *Recipe) expressions(c cursor) (items []Item) {
	a := c.schema.Attribute(c.attribute)
	switch {
	case len(c.path) == 1 && c.path[0] == "each" && c.each:
		return []Item{
			{Label: "key", Kind: ReferenceItem, Doc: "The key of the element of for_each."},
			{Label: "value", Kind: ReferenceItem, Doc: "The element of for_each."},
		}
	case len(c.path) == 1 && c.path[0] == "self" && c.frame.kind == "postcondition":
		return words("bytes", "sha256", "files", "report")
	case len(c.path) == 1:
		return r.names(c.path[0])
	case len(c.path) > 1:
		return nil
	case c.variable && c.attribute == "type":
		return words("string", "number", "bool", "any", "list", "set", "map", "object", "tuple", "optional")
	}
	items = values(a, strconv.Quote)
	if a != nil {
		for _, kind := range a.Refers {
			for _, i := range r.names(kind) {
				i.Label = kind + "." + i.Label
				items = append(items, i)
			}
		}
	}
	if a != nil && a.Type == "bool" {
		items = append(items, words("true", "false")...)
	}
	items = append(items, r.roots(c)...)
	for _, d := range r.all() {
		if d.root == "function" && d.name != "" {
			items = append(items, Item{Label: d.name, Insert: d.name + "(", Kind: FunctionItem, Doc: "A function of this recipe."})
		}
	}
	for _, f := range r.language.Functions {
		items = append(items, Item{Label: f.Name, Insert: f.Name + "(", Kind: FunctionItem, Detail: f.Signature, Doc: f.Doc})
	}
	return items
}

// values returns the only values that an attribute may have, as expressions.
func values(a *rules.Attribute, quote func(string) string) (items []Item) {
	if a == nil {
		return nil
	}
	for _, v := range a.Values {
		items = append(items, Item{Label: quote(v), Kind: ValueItem, Detail: a.Name})
	}
	return items
}

func words(list ...string) (items []Item) {
	for _, w := range list {
		items = append(items, Item{Label: w, Kind: ValueItem})
	}
	return items
}

// roots returns the first words of references under which something is declared.
func (r *Recipe) roots(c cursor) (items []Item) {
	roots := map[string]bool{}
	for _, d := range r.all() {
		if r.isRoot(d.root) {
			roots[d.root] = true
		}
	}
	roots["each"], roots["self"] = c.each, c.frame.kind == "postcondition"
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		if roots[root] {
			items = append(items, Item{Label: root, Insert: root + ".", Kind: ReferenceItem})
		}
	}
	return items
}

// names returns what is declared under the first word of a reference.
func (r *Recipe) names(root string) (items []Item) {
	seen := map[string]bool{}
	for _, d := range r.all() {
		if d.root == root && d.name != "" && !seen[d.name] && r.isRoot(root) {
			seen[d.name] = true
			items = append(items, Item{Label: d.name, Kind: ReferenceItem, Detail: r.detail(root, d.name)})
		}
	}
	return items
}

// detail returns the value of a name in a few words.
func (r *Recipe) detail(root, name string) string {
	for _, d := range r.survey.Declared {
		if d.Root == root && d.Name == name && !d.Step {
			text, _ := valueText(d.Value)
			return text
		}
	}
	return ""
}

// all returns what is declared, in the recipe's own files and in those it includes.
func (r *Recipe) all() (list []declared) {
	for _, f := range r.files {
		list = append(list, r.scans[f.Name].declared...)
	}
	for _, d := range r.survey.Declared {
		if d.Included {
			list = append(list, declared{root: d.Root, name: d.Name})
		}
	}
	return list
}
