package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bonsai/rules"
	"bonsai/rules/rulestest"
)

// A client is an editor's side of a connection.
type client struct {
	t    *testing.T
	in   io.WriteCloser
	id   int
	got  chan message
	done chan int // the exit status
}

type message struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// connect starts bonsai lsp with the toy rules.
func connect(t *testing.T) *client {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := &program{
		catalogue: func(rules.Settings) rules.Catalogue { return rulestest.Catalogue() },
		lookupEnv: func(string) (string, bool) { return "", false }, now: time.Now,
	}
	c := &client{t: t, in: toServer, got: make(chan message, 100), done: make(chan int, 1)}
	go func() {
		status, _ := p.serveEditor(context.Background(), in, out)
		out.Close()
		c.done <- status
	}()
	go c.listen(bufio.NewReader(fromServer))
	t.Cleanup(func() { toServer.Close() })
	return c
}

func (c *client) listen(r *bufio.Reader) {
	defer close(c.got)
	for {
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(header.Get("Content-Length"))
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			c.t.Errorf("received %s: %v", body, err)
		}
		c.got <- m
	}
}

func (c *client) send(text string) {
	if _, err := fmt.Fprintf(c.in, "Content-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		c.t.Errorf("send %s: %v", text, err)
	}
}

// tell sends a notification; params is JSON.
func (c *client) tell(method, params string) {
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// ask sends a request and returns the result, or the error.
func (c *client) ask(method, params string) string {
	c.t.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params))
	m := c.next(func(m message) bool { return m.ID != nil && *m.ID == c.id })
	if m.Error != nil {
		return string(m.Error)
	}
	return string(m.Result)
}

// next returns the next message that is wanted.
func (c *client) next(wanted func(message) bool) message {
	c.t.Helper()
	for {
		select {
		case m, ok := <-c.got:
			if !ok {
				c.t.Fatal("the connection is closed")
			}
			if wanted(m) {
				return m
			}
		case <-time.After(10 * time.Second):
			c.t.Fatal("no message for ten seconds")
		}
	}
}

// diagnostics returns what is published next of a file.
func (c *client) diagnostics(uri string) string {
	c.t.Helper()
	m := c.next(func(m message) bool {
		return m.Method == "textDocument/publishDiagnostics" && strings.Contains(string(m.Params), `"`+uri+`"`)
	})
	return string(m.Params)
}

func wantIn(t *testing.T, what, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s in it", what, got, want)
		}
	}
}

// The story of an editor: a recipe of two files, one of which is typed in.
func TestLSP(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other.hcl"), []byte("locals { salt = \"ä😀\" }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	uri, other := uriOf(filepath.Join(dir, "recipe.hcl")), uriOf(filepath.Join(dir, "other.hcl"))
	document := fmt.Sprintf(`"textDocument":{"uri":%q}`, uri)
	c := connect(t)
	wantIn(t, "initialize", c.ask("initialize", `{"processId":null,"rootUri":null,"capabilities":{}}`), `"hoverProvider":true`, `"name":"bonsai"`)
	c.tell("initialized", `{}`)

	// A mistake is published, with its place in UTF-16.
	text := "mix \"😀a\" {}\nmix \"b\" {\n  text = \"😀\" + local.slat\n}\n"
	c.tell("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"hcl","version":1,"text":%q}}`, uri, text))
	wantIn(t, "diagnostics", c.diagnostics(uri), `Did you mean \"local.salt\"?`, `"start":{"line":2,"character":16},"end":{"line":2,"character":26}`, `Unsuitable name`)

	// Put right, there is none, in the other file neither.
	text = "mix \"b\" {\n  text = local.salt\n  \n}\ntarget \"t\" { steps=[mix.b] }\n"
	c.tell("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":2},"contentChanges":[{"text":%q}]}`, uri, text))
	wantIn(t, "findings", c.diagnostics(uri), `undescribed-target`)

	position := func(line, character int) string {
		return fmt.Sprintf(`{%s,"position":{"line":%d,"character":%d}}`, document, line, character)
	}
	wantIn(t, "hover", c.ask("textDocument/hover", position(1, 12)), "markdown", `local.salt = \"ä😀\"`, `"start":{"line":1,"character":9},"end":{"line":1,"character":19}`)
	wantIn(t, "definition", c.ask("textDocument/definition", position(1, 12)), other, `"start":{"line":0,"character":9},"end":{"line":0,"character":13}`)
	wantIn(t, "completion", c.ask("textDocument/completion", position(2, 2)), `"label":"for_each"`, `"sortText":"0000"`)
	wantIn(t, "completion of a reference", c.ask("textDocument/completion", position(1, 15)), `"label":"salt"`, `"range":{"start":{"line":1,"character":15},"end":{"line":1,"character":15}}`)
	wantIn(t, "references", c.ask("textDocument/references", strings.TrimSuffix(position(1, 12), "}")+`,"context":{"includeDeclaration":true}}`), uri, other)
	wantIn(t, "rename", c.ask("textDocument/rename", strings.TrimSuffix(position(1, 12), "}")+`,"newName":"pepper"}`), `"newText":"pepper"`, uri, other)
	wantIn(t, "a bad rename", c.ask("textDocument/rename", strings.TrimSuffix(position(1, 12), "}")+`,"newName":"1"}`), `is not a name`)
	wantIn(t, "symbols", c.ask("textDocument/documentSymbol", "{"+document+"}"), `"name":"mix.b"`, `"name":"target.t"`)
	wantIn(t, "formatting", c.ask("textDocument/formatting", "{"+document+`,"options":{"tabSize":2,"insertSpaces":true}}`), `steps = [mix.b] }\n`)

	// What is not understood is an error of that message alone.
	wantIn(t, "an unknown method", c.ask("textDocument/inlayHint", "{"+document+"}"), "-32601")
	wantIn(t, "no file", c.ask("textDocument/hover", `{"textDocument":{"uri":"untitled:1"},"position":{"line":0,"character":0}}`), "untitled:1 is no file")

	// A file that is closed without being saved is as on disk: it is not there.
	c.tell("textDocument/didClose", "{"+document+"}")
	wantIn(t, "after close", c.diagnostics(uri), `"diagnostics":[]`)

	wantIn(t, "shutdown", c.ask("shutdown", "null"), "null")
	c.tell("exit", "null")
	if status := <-c.done; status != exitBuilt {
		t.Errorf("exit status %d", status)
	}
}

// An editor that is gone without a word ends the server, as a failure.
func TestLSPWithoutShutdown(t *testing.T) {
	c := connect(t)
	c.ask("initialize", `{"capabilities":{}}`)
	c.in.Close()
	if status := <-c.done; status != exitFailed {
		t.Errorf("exit status %d; want %d", status, exitFailed)
	}
}

// Text that is half typed gets answers of some kind.
func TestLSPHalfTyped(t *testing.T) {
	uri := uriOf(filepath.Join(t.TempDir(), "recipe.hcl"))
	c := connect(t)
	c.ask("initialize", `{"capabilities":{}}`)
	whole := "variable \"a\" {\n  default = \"${upper(\"x\")}\"\n}\nmix \"b\" {\n  text = var.a\n}\n"
	for n := range len(whole) {
		c.tell("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"hcl","version":1,"text":%q}}`, uri, whole[:n]))
		p := positionOf([]byte(whole[:n]), n)
		at := fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":%d,"character":%d}}`, uri, p.Line, p.Character)
		for _, method := range []string{"hover", "completion", "definition"} {
			if got := c.ask("textDocument/"+method, at); strings.Contains(got, "bonsai is wrong") {
				t.Fatalf("%s of %q: %s", method, whole[:n], got)
			}
		}
	}
}

func TestPositions(t *testing.T) {
	text := []byte("a😀b\r\nä\n\xffx")
	for at, want := range map[int][2]uint32{0: {0, 0}, 1: {0, 1}, 5: {0, 3}, 6: {0, 4}, 8: {1, 0}, 10: {1, 1}, 11: {2, 0}, 12: {2, 1}, 13: {2, 2}} {
		p := positionOf(text, at)
		if p.Line != want[0] || p.Character != want[1] || byteOf(text, p) != at {
			t.Errorf("byte %d is at %v, and that is byte %d; want %v", at, p, byteOf(text, p), want)
		}
	}
	for _, path := range []string{"/a b/ä#?.hcl", "/x"} {
		if got, ok := pathOf(uriOf(path)); !ok || got != filepath.Clean(path) {
			t.Errorf("path %q is %s, which is %q", path, uriOf(path), got)
		}
	}
	for _, uri := range []string{"untitled:Untitled-1", "http://x/a.hcl", "%", "file:"} {
		if path, ok := pathOf(uri); ok {
			t.Errorf("%s is file %q", uri, path)
		}
	}
}
