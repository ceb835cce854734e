package assist

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"bonsai/recipes"
)

// A frame is one bracket that is open.
type frame struct {
	body   bool   // of a block, or of the file
	kind   string // type of the block
	labels []string
	header hcl.Range
	label  hcl.Range // what stands between the quotes of the last label
	attrs  []string  // names of the attributes so far
	quote  bool      // a text
	call   string    // the function whose arguments these are
}

// A declared is a name that a file declares.
type declared struct {
	root, name string // as in a reference; root include for an include block
	at         hcl.Range
	end        hcl.Pos // of the block, or of the name of a local
	kind       string  // type of the block
}

// A reference is a chain of names with dots between that begins with a word of references.
type reference struct {
	root, name string
	whole, at  hcl.Range // all of it; the name
}

// A scan is what the tokens of a file tell, however much of it is written. A scan that
// stops at a place has the frames that are open there.
type scan struct {
	frames     []frame
	statement  []hclsyntax.Token // of the innermost body, since its last line end
	tokens     []hclsyntax.Token // all that were seen
	declared   []declared
	references []reference
	calls      []hclsyntax.Token // names of functions
}

// scanFile scans the tokens of a file that begin before a byte of it.
func scanFile(f recipes.File, before int) *scan {
	tokens, _ := hclsyntax.LexConfig(f.Bytes, f.Name, hcl.InitialPos)
	s := &scan{frames: []frame{{body: true}}}
	for i, t := range tokens {
		if t.Range.Start.Byte >= before || t.Type == hclsyntax.TokenEOF {
			break
		}
		s.tokens = append(s.tokens, t)
		if t.Type == hclsyntax.TokenIdent {
			if begins(tokens, i) {
				s.frames, s.statement = s.frames[:1], nil
			}
			s.ident(tokens, i)
		}
		s.take(t)
	}
	return s
}

// begins says whether the token at i begins a block at the left margin. What is open above it
// has been left unfinished.
func begins(tokens []hclsyntax.Token, i int) bool {
	if tokens[i].Range.Start.Column != 1 || i+1 >= len(tokens) {
		return false
	}
	next := tokens[i+1].Type
	return next == hclsyntax.TokenOQuote || next == hclsyntax.TokenOBrace
}

func (s *scan) top() *frame { return &s.frames[len(s.frames)-1] }

func (s *scan) push(f frame) { s.frames = append(s.frames, f) }

// pop closes the innermost frame. That of the file stays.
func (s *scan) pop(at hcl.Range) {
	if len(s.frames) == 1 {
		return
	}
	if f := s.top(); f.body && len(s.frames) == 2 {
		for i := range s.declared {
			if d := &s.declared[i]; d.kind == f.kind && d.end == (hcl.Pos{}) {
				d.end = at.End
			}
		}
	}
	s.frames = s.frames[:len(s.frames)-1]
}

// take follows one token.
func (s *scan) take(t hclsyntax.Token) {
	ends := t.Type == hclsyntax.TokenNewline || t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n"))
	switch {
	case s.top().body && ends:
		s.statement = nil
		return
	case s.top().body && t.Type == hclsyntax.TokenOBrace && s.opensBlock():
		s.open()
		return
	case s.top().body && t.Type == hclsyntax.TokenCBrace:
		s.statement = nil
		s.pop(t.Range)
		return
	case s.top().body && t.Type == hclsyntax.TokenEqual:
		s.attribute()
	}
	s.statement = append(s.statement, t)
	switch t.Type {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		s.push(frame{call: s.called(t)})
	case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
		s.push(frame{quote: true})
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc,
		hclsyntax.TokenQuotedNewline:
		s.pop(t.Range)
	default: // within what is open
	}
}

// called returns the name of the function whose bracket t is, or "".
func (s *scan) called(t hclsyntax.Token) string {
	if n := len(s.tokens); t.Type == hclsyntax.TokenOParen && n > 1 && s.tokens[n-2].Type == hclsyntax.TokenIdent {
		return string(s.tokens[n-2].Bytes)
	}
	return ""
}

// opensBlock says whether the statement so far is a block's header: a name and labels.
func (s *scan) opensBlock() bool {
	if len(s.statement) == 0 || s.statement[0].Type != hclsyntax.TokenIdent {
		return false
	}
	for _, t := range s.statement[1:] {
		switch t.Type {
		case hclsyntax.TokenIdent, hclsyntax.TokenOQuote, hclsyntax.TokenQuotedLit, hclsyntax.TokenCQuote:
		default:
			return false
		}
	}
	return true
}

// open opens the block whose header the statement is.
func (s *scan) open() {
	f := headerOf(s.statement)
	s.statement = nil
	if len(s.frames) == 1 {
		s.declareBlock(f)
	}
	s.push(f)
}

// headerOf returns the frame of the block that a statement is the header of.
func headerOf(statement []hclsyntax.Token) frame {
	first, last := statement[0].Range, statement[len(statement)-1].Range
	f := frame{body: true, kind: string(statement[0].Bytes), header: hcl.RangeBetween(first, last), label: last}
	for _, t := range statement[1:] {
		if t.Type == hclsyntax.TokenIdent || t.Type == hclsyntax.TokenQuotedLit {
			f.labels, f.label = append(f.labels, string(t.Bytes)), t.Range
		}
	}
	return f
}

// declareBlock remembers what a block at the top of a file declares.
func (s *scan) declareBlock(f frame) {
	root := f.kind
	if root == "variable" {
		root = "var"
	}
	d := declared{root: root, kind: f.kind, at: f.header}
	if len(f.labels) == 1 {
		d.name, d.at = f.labels[0], f.label
	}
	if f.kind == "locals" || f.kind == "recipe" {
		d.root = ""
	}
	s.declared = append(s.declared, d)
}

// attribute remembers the attribute whose name the statement so far is.
func (s *scan) attribute() {
	if len(s.statement) != 1 || s.statement[0].Type != hclsyntax.TokenIdent {
		return
	}
	name := string(s.statement[0].Bytes)
	s.top().attrs = append(s.top().attrs, name)
	if len(s.frames) == 2 && s.top().kind == "locals" {
		at := s.statement[0].Range
		s.declared = append(s.declared, declared{root: "local", name: name, kind: "local", at: at, end: at.End})
	}
}

// ident remembers the reference or the call that the token at i begins.
func (s *scan) ident(tokens []hclsyntax.Token, i int) {
	inBody := s.top().body && len(s.statement) == 0
	if inBody || s.top().quote || i > 0 && tokens[i-1].Type == hclsyntax.TokenDot {
		return
	}
	next := func(n int) hclsyntax.TokenType {
		if i+n < len(tokens) {
			return tokens[i+n].Type
		}
		return hclsyntax.TokenEOF
	}
	switch {
	case next(1) == hclsyntax.TokenOParen:
		s.calls = append(s.calls, tokens[i])
		s.references = append(s.references, reference{
			root: "function", name: string(tokens[i].Bytes), whole: tokens[i].Range, at: tokens[i].Range,
		})
	case next(1) == hclsyntax.TokenDot && next(2) == hclsyntax.TokenIdent:
		s.references = append(s.references, reference{
			root: string(tokens[i].Bytes), name: string(tokens[i+2].Bytes),
			whole: hcl.RangeBetween(tokens[i].Range, tokens[i+2].Range), at: tokens[i+2].Range,
		})
	}
}
