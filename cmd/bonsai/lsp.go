package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"
	"github.com/hashicorp/hcl/v2"
	lsp "github.com/tliron/glsp/protocol_3_16"

	"bonsai/recipes/assist"
)

// runLSP serves an editor on standard input and output until it says exit.
func runLSP(ctx context.Context, p *program, w *words) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	return p.serveEditor(ctx, p.stdin, p.stdout)
}

// serveEditor answers the messages of an editor. It fails if the editor goes away without
// having said that it would.
func (p *program) serveEditor(ctx context.Context, in io.Reader, out io.Writer) (int, error) {
	s := &session{editor: p.newEditor(), exit: make(chan struct{})}
	s.server = jrpc2.NewServer(s.methods(), &jrpc2.ServerOptions{AllowPush: true, Concurrency: 1, DisableBuiltin: true})
	s.editor.publish = func(uri string, list []lsp.Diagnostic) {
		_ = s.server.Notify(ctx, lsp.ServerTextDocumentPublishDiagnostics, lsp.PublishDiagnosticsParams{URI: uri, Diagnostics: list})
	}
	s.server.Start(newFramed(in, out))
	ended := make(chan error, 1)
	go func() { ended <- s.server.Wait() }()
	defer s.editor.close()
	select {
	case <-ctx.Done():
		return exitBuilt, ctx.Err()
	case <-s.exit: // standard input may stay open, and nothing more is read from it
	case err := <-ended:
		if err != nil {
			return exitFailed, fmt.Errorf("serve the editor: %w", err)
		}
	}
	if s.closing.Load() {
		return exitBuilt, nil
	}
	return exitFailed, errors.New("the connection to the editor ended before it said shutdown")
}

// A session is one connection of an editor.
type session struct {
	server  *jrpc2.Server
	editor  *editor
	closing atomic.Bool   // the editor has said shutdown
	exit    chan struct{} // closed when it says exit
}

// methods are the messages that are understood.
func (s *session) methods() handler.Map {
	nothing := func(context.Context, *jrpc2.Request) (any, error) { return nil, nil } //nolint:nilnil // the answer is null
	var once sync.Once
	return handler.Map{
		"initialize":      s.initialize,
		"initialized":     nothing,
		"$/cancelRequest": nothing,
		"$/setTrace":      nothing,
		"shutdown": func(context.Context, *jrpc2.Request) (any, error) {
			s.closing.Store(true)
			return nil, nil //nolint:nilnil // the answer is null
		},
		"exit": func(context.Context, *jrpc2.Request) (any, error) {
			once.Do(func() { close(s.exit) })
			return nil, nil //nolint:nilnil // there is no answer
		},

		"workspace/didChangeConfiguration": nothing,
		"workspace/didChangeWatchedFiles":  handle(s.watched),
		"textDocument/didOpen":             handle(s.opened),
		"textDocument/didChange":           handle(s.changed),
		"textDocument/didSave":             handle(s.saved),
		"textDocument/didClose":            handle(s.closed),
		"textDocument/hover":               handle(s.hover),
		"textDocument/completion":          handle(s.complete),
		"textDocument/definition":          handle(s.definition),
		"textDocument/references":          handle(s.references),
		"textDocument/rename":              handle(s.rename),
		"textDocument/documentSymbol":      handle(s.symbols),
		"textDocument/formatting":          handle(s.format),
	}
}

// handle makes a method of f. A panic in it is an error of this message, not the end of
// the editor's help.
func handle[P any](f func(*P) (any, error)) jrpc2.Handler {
	return func(_ context.Context, r *jrpc2.Request) (answer any, err error) {
		defer func() {
			if p := recover(); p != nil {
				answer, err = nil, fmt.Errorf("bonsai is wrong: %v in %s", p, r.Method())
			}
		}()
		var params P
		if err := r.UnmarshalParams(&params); err != nil {
			return nil, err
		}
		return f(&params)
	}
}

func (s *session) initialize(context.Context, *jrpc2.Request) (any, error) {
	known := version
	return lsp.InitializeResult{
		Capabilities: lsp.ServerCapabilities{
			TextDocumentSync:           lsp.TextDocumentSyncOptions{OpenClose: new(true), Change: new(lsp.TextDocumentSyncKindFull), Save: true},
			HoverProvider:              true,
			DefinitionProvider:         true,
			ReferencesProvider:         true,
			RenameProvider:             true,
			DocumentSymbolProvider:     true,
			DocumentFormattingProvider: true,
			CompletionProvider:         &lsp.CompletionOptions{TriggerCharacters: []string{".", `"`, "=", " "}},
		},
		ServerInfo: &lsp.InitializeResultServerInfo{Name: "bonsai", Version: &known},
	}, nil
}

func (s *session) opened(p *lsp.DidOpenTextDocumentParams) (any, error) {
	return nil, s.editor.change(p.TextDocument.URI, p.TextDocument.Text)
}

func (s *session) changed(p *lsp.DidChangeTextDocumentParams) (any, error) {
	for _, c := range p.ContentChanges {
		if whole, ok := c.(lsp.TextDocumentContentChangeEventWhole); ok {
			return nil, s.editor.change(p.TextDocument.URI, whole.Text)
		}
	}
	return nil, errors.New("only whole texts are taken")
}

func (s *session) saved(p *lsp.DidSaveTextDocumentParams) (any, error) {
	return nil, s.editor.touch(p.TextDocument.URI)
}

func (s *session) closed(p *lsp.DidCloseTextDocumentParams) (any, error) {
	return nil, s.editor.forget(p.TextDocument.URI)
}

func (s *session) watched(p *lsp.DidChangeWatchedFilesParams) (any, error) {
	var failed error
	for _, c := range p.Changes {
		failed = errors.Join(failed, s.editor.touch(c.URI))
	}
	return nil, failed
}

func (s *session) hover(p *lsp.HoverParams) (any, error) {
	r, at, err := s.editor.at(p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	text, where := r.Hover(at)
	if text == "" {
		return nil, nil //nolint:nilnil // the answer is null
	}
	whole := s.editor.span(where)
	return lsp.Hover{Contents: lsp.MarkupContent{Kind: lsp.MarkupKindMarkdown, Value: text}, Range: &whole}, nil
}

func (s *session) definition(p *lsp.DefinitionParams) (any, error) {
	r, at, err := s.editor.at(p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	where, ok := r.Definition(at)
	if !ok {
		return nil, nil //nolint:nilnil // the answer is null
	}
	return s.locations([]hcl.Range{where}), nil
}

func (s *session) references(p *lsp.ReferenceParams) (any, error) {
	r, at, err := s.editor.at(p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	return s.locations(r.References(at)), nil
}

// locations returns ranges that are in files, not in what is built in.
func (s *session) locations(ranges []hcl.Range) []lsp.Location {
	list := []lsp.Location{}
	for _, r := range ranges {
		if s.editor.isFile(r.Filename) {
			list = append(list, lsp.Location{URI: uriOf(r.Filename), Range: s.editor.span(r)})
		}
	}
	return list
}

func (s *session) rename(p *lsp.RenameParams) (any, error) {
	r, at, err := s.editor.at(p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	places, err := r.Rename(at, p.NewName)
	if err != nil {
		return nil, err
	}
	changes := map[lsp.DocumentUri][]lsp.TextEdit{}
	for _, place := range places {
		uri := uriOf(place.Filename)
		changes[uri] = append(changes[uri], lsp.TextEdit{Range: s.editor.span(place), NewText: p.NewName})
	}
	return lsp.WorkspaceEdit{Changes: changes}, nil
}

func (s *session) complete(p *lsp.CompletionParams) (any, error) {
	r, at, err := s.editor.at(p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	list := []lsp.CompletionItem{}
	for i, item := range r.Complete(at) {
		list = append(list, s.item(i, item, at))
	}
	return list, nil
}

// item returns one completion. Editors order by text, so that of ours is kept by number.
func (s *session) item(i int, item assist.Item, at assist.Place) lsp.CompletionItem {
	kinds := map[string]lsp.CompletionItemKind{
		assist.BlockItem: lsp.CompletionItemKindClass, assist.AttributeItem: lsp.CompletionItemKindProperty,
		assist.ReferenceItem: lsp.CompletionItemKindVariable, assist.FunctionItem: lsp.CompletionItemKindFunction,
		assist.ValueItem: lsp.CompletionItemKindValue,
	}
	text := item.Insert
	if text == "" {
		text = item.Label
	}
	whole := s.editor.between(at.File, item.From, at.Byte)
	c := lsp.CompletionItem{
		Label: item.Label, Kind: new(kinds[item.Kind]), SortText: new(fmt.Sprintf("%04d", i)),
		TextEdit: lsp.TextEdit{Range: whole, NewText: text},
	}
	if item.Detail != "" {
		c.Detail = &item.Detail
	}
	if item.Doc != "" {
		c.Documentation = lsp.MarkupContent{Kind: lsp.MarkupKindMarkdown, Value: item.Doc}
	}
	return c
}

func (s *session) symbols(p *lsp.DocumentSymbolParams) (any, error) {
	r, file, err := s.editor.recipe(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	list := []lsp.DocumentSymbol{}
	for _, one := range r.Symbols(file) {
		kind := lsp.SymbolKindClass
		if one.Kind == "variable" || one.Kind == "local" {
			kind = lsp.SymbolKindVariable
		}
		list = append(list, lsp.DocumentSymbol{
			Name: one.Name, Detail: &one.Kind, Kind: kind, Range: s.editor.span(one.Range), SelectionRange: s.editor.span(one.At),
		})
	}
	return list, nil
}

func (s *session) format(p *lsp.DocumentFormattingParams) (any, error) {
	r, file, err := s.editor.recipe(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	text, ok := r.Format(file)
	if !ok {
		return nil, nil //nolint:nilnil // the answer is null: there are mistakes
	}
	return []lsp.TextEdit{{Range: s.editor.between(file, 0, len(s.editor.text(file))), NewText: string(text)}}, nil
}
