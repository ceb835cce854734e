package view_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"bonsai/cmd/bonsai/view"
)

// someGraph is a file, two steps that read it, and one that reads both.
func someGraph(names ...string) view.Graph {
	g := view.Graph{Title: "gguf", Level: "step", Boxes: []view.Box{
		{Name: "in.txt", Kind: "file"},
		{Name: "codes.body", Kind: "step", In: []int{0}, Run: 1, Maybe: 40, Hit: 2},
		{Name: "rotation.signs", Kind: "step", In: []int{0}, Hit: 1},
		{Name: "gguf.model", Kind: "step", In: []int{2, 1, 0}, Maybe: 2, Unneeded: 1, Wanted: true},
	}}
	for i, name := range names {
		g.Boxes[i].Name = name
	}
	return g
}

func draw2(t testing.TB, g view.Graph, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := view.WriteGraph(&b, g, format, view.Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriteGraph(t *testing.T) {
	for format, want := range map[string]string{
		"text": `~ gguf.model  2 maybe, 1 not needed
├─ = rotation.signs  1 up to date
│  └─ · in.txt
├─ + codes.body  1 run, 40 maybe, 2 up to date
│  └─ · in.txt
└─ · in.txt

+ run   ~ maybe   = up to date   - not needed   · file of yours
`,
		"json": `{"version":1,"type":"graph","targets":"gguf","level":"step","boxes":[` +
			`{"name":"in.txt","kind":"file","in":[],"run":0,"maybe":0,"hit":0,"unneeded":0},` +
			`{"name":"codes.body","kind":"step","in":[0],"run":1,"maybe":40,"hit":2,"unneeded":0},` +
			`{"name":"rotation.signs","kind":"step","in":[0],"run":0,"maybe":0,"hit":1,"unneeded":0},` +
			`{"name":"gguf.model","kind":"step","wanted":true,"in":[2,1,0],"run":0,"maybe":2,"hit":0,"unneeded":1}]}` + "\n",
		"mermaid": `flowchart TD
  b0["in.txt"]:::file
  b1["codes.body<br/>1 run, 40 maybe, 2 up to date"]:::run
  b2["rotation.signs<br/>1 up to date"]:::hit
  b3["gguf.model<br/>2 maybe, 1 not needed"]:::maybe
  b0 --> b1
  b0 --> b2
  b2 --> b3
  b1 --> b3
  b0 --> b3
  subgraph legend
    legend_run["will run"]:::run
    legend_maybe["may run"]:::maybe
    legend_hit["up to date"]:::hit
    legend_unneeded["not needed"]:::unneeded
    legend_file["file of yours"]:::file
  end
  classDef run fill:#c8ecd0,stroke:#1a7f37,color:#111
  classDef maybe fill:#fce8b2,stroke:#9a6700,color:#111
  classDef hit fill:#e8eaed,stroke:#6e7781,color:#111
  classDef unneeded fill:#ffffff,stroke:#6e7781,color:#111,stroke-dasharray:4
  classDef file fill:#dbe9fb,stroke:#0969da,color:#111
`,
		"dot": `digraph "bonsai gguf" {
  rankdir=TB;
  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11];
  b0 [label="in.txt", fillcolor="#dbe9fb", tooltip="file"];
  b1 [label="codes.body\n1 run, 40 maybe, 2 up to date", fillcolor="#c8ecd0", tooltip="run"];
  b2 [label="rotation.signs\n1 up to date", fillcolor="#e8eaed", tooltip="hit"];
  b3 [label="gguf.model\n2 maybe, 1 not needed", fillcolor="#fce8b2", tooltip="maybe", penwidth=2];
  b0 -> b1;
  b0 -> b2;
  b2 -> b3;
  b1 -> b3;
  b0 -> b3;
  subgraph cluster_legend {
    label="legend"; fontname="sans-serif"; fontsize=11; color="#9aa0a6";
    legend_run [label="will run", fillcolor="#c8ecd0"];
    legend_maybe [label="may run", fillcolor="#fce8b2"];
    legend_hit [label="up to date", fillcolor="#e8eaed"];
    legend_unneeded [label="not needed", fillcolor="#ffffff"];
    legend_file [label="file of yours", fillcolor="#dbe9fb"];
  }
}
`,
	} {
		if got := draw2(t, someGraph(), format); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
		}
	}
}

// A page holds all it needs: nothing is loaded, and nothing runs.
func TestWriteGraphAsPage(t *testing.T) {
	page := draw2(t, someGraph(), "html")
	for _, never := range []string{"<script", "src=", "href=", "@import", "url(h"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %s", never)
		}
	}
	if strings.ReplaceAll(page, "http://www.w3.org/2000/svg", "") != strings.Replace(page, "http://www.w3.org/2000/svg", "", 1) || strings.Count(page, "http") != 1 {
		t.Error("the page has another address than that of SVG")
	}
	for _, want := range []string{
		"prefers-color-scheme: dark", "<title>bonsai: gguf</title>", `<rect class="run"`, `<g class="wanted">`,
		"40 maybe", "will run (1)", "<td>rotation.signs<br>codes.body<br>in.txt</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// No two boxes of a page overlap, whatever the graph, and all are inside.
func TestBoxesDoNotOverlap(t *testing.T) {
	g := view.Graph{Title: "many", Level: "action"}
	for i := range 600 {
		b := view.Box{Name: fmt.Sprintf("step.%0*d", i%30+1, i), Kind: "action", Run: 1, Wanted: i == 599}
		for k := 1; k <= 3; k++ {
			if in := i - k*(i%7+1); in >= 0 {
				b.In = append(b.In, in)
			}
		}
		g.Boxes = append(g.Boxes, b)
	}
	page := draw2(t, g, "html")
	var width, height float64
	if _, err := fmt.Sscanf(page[strings.Index(page, "<svg"):], `<svg xmlns="http://www.w3.org/2000/svg" width="%f" height="%f"`, &width, &height); err != nil {
		t.Fatal(err)
	}
	type row struct{ from, to float64 }
	rows := map[float64][]row{}
	boxes := regexp.MustCompile(`<rect class="run" x="([^"]*)" y="([^"]*)" width="([^"]*)"`).FindAllStringSubmatch(page, -1)
	for _, m := range boxes {
		var x, y, w float64
		if _, err := fmt.Sscan(m[1]+" "+m[2]+" "+m[3], &x, &y, &w); err != nil {
			t.Fatal(err)
		}
		if x < 0 || x+w > width || y < 0 || y > height {
			t.Errorf("a box is outside: %v", m[0])
		}
		for _, other := range rows[y] {
			if x < other.to && other.from < x+w {
				t.Errorf("two boxes at %v overlap: %v and %v to %v", y, other, x, x+w)
			}
		}
		rows[y] = append(rows[y], row{x, x + w})
	}
	if len(boxes) != 600 {
		t.Errorf("%d boxes, want 600", len(boxes))
	}
}

// FuzzWriteGraph draws graphs with any names and holds each form to its grammar: what a
// name holds is never taken for more than a name.
func FuzzWriteGraph(f *testing.F) {
	for _, name := range []string{
		"a", `codes.body["x"]`, `back\slash\N`, "new\nline", `<b>&amp;</b>`, "#quot; `x` ", "--> b1", "ends]:::run", "ü 漢字 🌳",
		"\x00\x1b[2J\u2028", `"];}`, "\xff\xfe", "\x8e", "%s%d", "]]>", "'\"'", "",
	} {
		f.Add(name, "x", name+`y"z`)
	}
	f.Fuzz(func(t *testing.T, a, b, title string) {
		g := someGraph(a, b)
		g.Title = title
		for _, format := range view.GraphFormats() {
			text := draw2(t, g, format)
			if text != draw2(t, g, format) {
				t.Errorf("%s is another the second time", format)
			}
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\r\x7f") {
				t.Errorf("%s has control characters: %q", format, text)
			}
			if err := map[string]func(string) error{
				"text": checkTree, "dot": checkDot, "mermaid": checkMermaid, "html": checkPage, "json": checkJSON,
			}[format](text); err != nil {
				t.Errorf("%s of %q, %q: %v\n%s", format, a, b, err, text)
			}
		}
	})
}

// checkTree wants a line for each of the five places where a box is shown, and the legend.
func checkTree(text string) error {
	if n := strings.Count(text, "\n"); n != 8 {
		return fmt.Errorf("%d lines, want 8", n)
	}
	return nil
}

func checkJSON(text string) error {
	var v struct {
		Boxes []struct{ In []int }
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil || len(v.Boxes) != 4 {
		return fmt.Errorf("%d boxes: %w", len(v.Boxes), err)
	}
	return nil
}

// checkMermaid wants lines of four kinds alone, and nothing in a label that ends it or that
// is markup.
func checkMermaid(text string) error {
	line := regexp.MustCompile(`^(flowchart TD|  b\d+\["([^"<>` + "`" + `&]|<br/>)*"\]:::\w+|  b\d+ --> b\d+|  subgraph legend|` +
		`    legend_\w+\["[a-z ]+"\]:::\w+|  end|  classDef \w+ [\w#,:-]+)$`)
	boxes := 0
	for _, s := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if !line.MatchString(s) {
			return fmt.Errorf("line %q", s)
		}
		if strings.HasPrefix(s, "  b") && strings.Contains(s, ":::") {
			boxes++
		}
	}
	if boxes != 4 {
		return fmt.Errorf("%d boxes", boxes)
	}
	return nil
}

// checkPage wants each element closed, and four boxes.
func checkPage(text string) error {
	text = regexp.MustCompile(`<(meta|br)([^>]*)>`).ReplaceAllString(text, "<$1$2/>")
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "<!DOCTYPE html>")))
	boxes, elements := 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if e, ok := token.(xml.StartElement); ok {
			elements++
			if e.Name.Local == "rect" {
				boxes++
			}
		}
	}
	if boxes != 4 || elements != 78 {
		return fmt.Errorf("%d boxes and %d elements, want 4 and 78", boxes, elements)
	}
	return nil
}

// checkDot parses the part of the language of Graphviz that a graph may use.
func checkDot(text string) error {
	p := &dotParser{rest: text}
	p.want("digraph")
	p.want("")
	p.body()
	if p.err == nil && strings.TrimSpace(p.rest) != "" {
		return fmt.Errorf("more after the end: %q", p.rest)
	}
	if p.err == nil && p.boxes != 4+5 {
		return fmt.Errorf("%d boxes", p.boxes)
	}
	return p.err
}

type dotParser struct {
	rest  string
	boxes int
	err   error
}

var dotToken = regexp.MustCompile(`^\s*("(?:[^"\\\n]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|-?[0-9.]+|->|[{}\[\]=;,])`)

func (p *dotParser) peek() string {
	m := dotToken.FindStringSubmatch(p.rest)
	if m == nil {
		return ""
	}
	return m[1]
}

// want takes a token: this one, or any identifier if it is "".
func (p *dotParser) want(token string) string {
	got := p.peek()
	isName := got != "" && !strings.Contains("{}[]=;,->", got)
	if p.err == nil && (got == "" || token != "" && got != token || token == "" && !isName) {
		p.err = fmt.Errorf("%q where %q should be, before %.40q", got, token, p.rest)
	}
	p.rest = p.rest[len(dotToken.FindString(p.rest)):]
	return got
}

// body parses { statements }.
func (p *dotParser) body() {
	p.want("{")
	for p.err == nil && p.peek() != "}" {
		first := p.want("")
		switch {
		case first == "subgraph":
			p.want("")
			p.body()
			continue
		case p.peek() == "=":
			p.want("=")
			p.want("")
		case p.peek() == "->":
			p.want("->")
			p.want("")
		default:
			if first != "node" {
				p.boxes++
			}
			p.attributes()
		}
		p.want(";")
	}
	p.want("}")
}

func (p *dotParser) attributes() {
	p.want("[")
	for p.err == nil && p.peek() != "]" {
		p.want("")
		p.want("=")
		p.want("")
		if p.peek() == "," {
			p.want(",")
		}
	}
	p.want("]")
}

// The checker refuses what Graphviz does.
func TestCheckDot(t *testing.T) {
	for _, bad := range []string{
		`digraph "a {}`, `digraph a { b [label="x"y"]; }`, `digraph a { b -> ; }`, `digraph a { b [label=<x>]; }`, `digraph a { b`, `graph a {}`,
	} {
		if checkDot(bad) == nil {
			t.Errorf("%s passes", bad)
		}
	}
}
