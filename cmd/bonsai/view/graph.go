package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"bonsai/engine"
)

// A Graph is a drawing of what a target is made of.
type Graph struct {
	Title string `json:"targets"`
	Level string `json:"level"` // step or action: what a box is
	Boxes []Box  `json:"boxes"` // each after those it reads
}

// A Box is a step, an action or a file.
type Box struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`             // step, action or file
	Wanted bool   `json:"wanted,omitempty"` // asked for
	In     []int  `json:"in"`               // the boxes it reads, by their place

	Run      int `json:"run"`      // actions in it that will run
	Maybe    int `json:"maybe"`    // that may run
	Hit      int `json:"hit"`      // that are up to date
	Unneeded int `json:"unneeded"` // whose bytes nothing needs
}

// Count counts an action with its status in a plan.
func (b *Box) Count(plan map[string]engine.Status, action string) {
	status, ok := plan[action]
	switch {
	case !ok:
		b.Unneeded++
	case status == engine.Run:
		b.Run++
	case status == engine.Maybe:
		b.Maybe++
	default:
		b.Hit++
	}
}

// status returns what the colour of a box says: that of its action with most to do.
func (b *Box) status() string {
	switch {
	case b.Kind == "file":
		return "file"
	case b.Run > 0:
		return "run"
	case b.Maybe > 0:
		return "maybe"
	case b.Hit > 0:
		return "hit"
	default:
		return Unneeded
	}
}

// statusLegend says what the statuses of boxes mean.
func statusLegend() [][2]string {
	return [][2]string{
		{"run", "will run"}, {"maybe", "may run"}, {"hit", "up to date"}, {Unneeded, "not needed"}, {"file", "file of yours"},
	}
}

// detail counts the actions of a step.
func (b *Box) detail() string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{b.Run, "run"}, {b.Maybe, "maybe"}, {b.Hit, "up to date"}, {b.Unneeded, "not needed"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if b.Kind == "action" {
		return strings.TrimPrefix(strings.Join(parts, ", "), "1 ")
	}
	return strings.Join(parts, ", ")
}

// GraphFormats are the formats that WriteGraph knows.
func GraphFormats() []string { return []string{"text", "dot", "mermaid", "html", "json"} }

// WriteGraph writes a graph in a format of GraphFormats. The same graph gives the same
// bytes.
func WriteGraph(w io.Writer, g Graph, format string, s Style) error {
	var b strings.Builder
	switch format {
	case "dot":
		writeDot(&b, &g)
	case "mermaid":
		writeMermaid(&b, &g)
	case "html":
		writeHTML(&b, &g)
	case "json":
		boxes := slices.Clone(g.Boxes)
		for i := range boxes {
			boxes[i].In = append([]int{}, boxes[i].In...)
		}
		g.Boxes = append([]Box{}, boxes...)
		return writeJSON(w, headed{"graph", g})
	default:
		writeTree(&b, &g, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTree writes what is wanted and, below each box, what it reads. What a box reads is
// shown the first time only.
func writeTree(b *strings.Builder, g *Graph, s Style) {
	t := &tree{b: b, g: g, style: s, p: s.palette(), shown: make([]bool, len(g.Boxes))}
	for i := range g.Boxes {
		if g.Boxes[i].Wanted {
			t.write(i, "", "")
		}
	}
	fmt.Fprintf(b, "\n%s run   %s maybe   %s up to date   %s not needed   %s file of yours\n",
		t.mark("run"), t.mark("maybe"), t.mark("hit"), t.mark(Unneeded), t.mark("file"))
}

type tree struct {
	b     *strings.Builder
	g     *Graph
	style Style
	p     palette
	shown []bool
}

func (t *tree) mark(status string) string {
	switch status {
	case "run":
		return t.p.good.Render("+")
	case "maybe":
		return t.p.warm.Render("~")
	case "hit":
		return t.p.faint.Render("=")
	case "file":
		return t.p.faint.Render("·")
	default:
		return t.p.faint.Render("-")
	}
}

// write writes a box after first, and what it reads after rest.
func (t *tree) write(i int, first, rest string) {
	box := &t.g.Boxes[i]
	line := oneLine(box.Name)
	if d := box.detail(); d != "" {
		line += "  " + d
	}
	again := t.shown[i] && len(box.In) > 0
	if again {
		line += "  (above)"
	}
	fmt.Fprintf(t.b, "%s%s %s\n", first, t.mark(box.status()), clip(line, max(20, t.style.Width-len([]rune(first))-2)))
	if again {
		return
	}
	t.shown[i] = true
	below := slices.Clone(box.In)
	slices.SortStableFunc(below, func(i, j int) int { return cmp.Compare(t.rank(i), t.rank(j)) })
	for k, in := range below {
		if k == len(below)-1 {
			t.write(in, rest+"└─ ", rest+"   ")
		} else {
			t.write(in, rest+"├─ ", rest+"│  ")
		}
	}
}

// rank orders what a box reads: first what is furthest along, so that a chain is shown as
// one, and files last.
func (t *tree) rank(i int) int {
	if t.g.Boxes[i].Kind == "file" {
		return i
	}
	return -len(t.g.Boxes) - i
}

// oneLine returns a name that fits on a line.
func oneLine(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, printable(strings.ToValidUTF8(name, "\uFFFD")))
}

// writeDot writes the language of Graphviz.
func writeDot(b *strings.Builder, g *Graph) {
	fmt.Fprintf(b, "digraph %s {\n", dotText(oneLine("bonsai "+g.Title)))
	b.WriteString("  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11];\n")
	colors := map[string]string{
		"run": "#c8ecd0", "maybe": "#fce8b2", "hit": "#e8eaed", Unneeded: "#ffffff", "file": "#dbe9fb",
	}
	for i := range g.Boxes {
		box := &g.Boxes[i]
		label := oneLine(box.Name)
		if d := box.detail(); d != "" {
			label += "\n" + d
		}
		extra := ""
		if box.Wanted {
			extra = ", penwidth=2"
		}
		fmt.Fprintf(b, "  b%d [label=%s, fillcolor=\"%s\", tooltip=%s%s];\n", i, dotText(label), colors[box.status()], dotText(box.status()), extra)
	}
	for i := range g.Boxes {
		for _, in := range g.Boxes[i].In {
			fmt.Fprintf(b, "  b%d -> b%d;\n", in, i)
		}
	}
	b.WriteString("  subgraph cluster_legend {\n    label=\"legend\"; fontname=\"sans-serif\"; fontsize=11; color=\"#9aa0a6\";\n")
	for _, s := range statusLegend() {
		fmt.Fprintf(b, "    legend_%s [label=%s, fillcolor=\"%s\"];\n", s[0], dotText(s[1]), colors[s[0]])
	}
	b.WriteString("  }\n}\n")
}

// dotText returns a text as a quoted string of dot, in which a backslash begins an escape.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// writeMermaid writes a flowchart of Mermaid.
func writeMermaid(b *strings.Builder, g *Graph) {
	b.WriteString("flowchart TD\n")
	for i := range g.Boxes {
		box := &g.Boxes[i]
		label := mermaidText(oneLine(box.Name))
		if d := box.detail(); d != "" {
			label += "<br/>" + mermaidText(d)
		}
		fmt.Fprintf(b, "  b%d[\"%s\"]:::%s\n", i, label, box.status())
	}
	for i := range g.Boxes {
		for _, in := range g.Boxes[i].In {
			fmt.Fprintf(b, "  b%d --> b%d\n", in, i)
		}
	}
	b.WriteString("  subgraph legend\n")
	for _, s := range statusLegend() {
		fmt.Fprintf(b, "    legend_%s[\"%s\"]:::%s\n", s[0], s[1], s[0])
	}
	b.WriteString("  end\n")
	for _, c := range [][2]string{
		{"run", "fill:#c8ecd0,stroke:#1a7f37,color:#111"},
		{"maybe", "fill:#fce8b2,stroke:#9a6700,color:#111"},
		{"hit", "fill:#e8eaed,stroke:#6e7781,color:#111"},
		{Unneeded, "fill:#ffffff,stroke:#6e7781,color:#111,stroke-dasharray:4"},
		{"file", "fill:#dbe9fb,stroke:#0969da,color:#111"},
	} {
		fmt.Fprintf(b, "  classDef %s %s\n", c[0], c[1])
	}
}

// mermaidText returns a text for a quoted label: what Mermaid or the HTML that it makes
// would take as markup is written by its number.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\"#<>&`\\;*_~[]{}()|", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
