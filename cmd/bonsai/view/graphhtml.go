package view

import (
	"fmt"
	"html"
	"strings"
)

// writeHTML writes a page that holds all it needs: a drawing, what its colours mean, and
// the same as a table.
func writeHTML(b *strings.Builder, g *Graph) {
	title := html.EscapeString(oneLine("bonsai: " + g.Title))
	fmt.Fprintf(b, pageHead, title, title)
	b.WriteString("<ul class=\"legend\">")
	for _, s := range statusLegend() {
		fmt.Fprintf(b, "<li><span class=\"swatch %s\"></span>%s", s[0], s[1])
		if n := g.count(s[0]); n > 0 {
			fmt.Fprintf(b, " (%d)", n)
		}
		b.WriteString("</li>")
	}
	b.WriteString("</ul>\n")
	writeSVG(b, g)
	writeTable(b, g)
	b.WriteString("</main>\n</body>\n</html>\n")
}

// count returns how many actions have a status, or how many boxes are files.
func (g *Graph) count(status string) (n int) {
	for i := range g.Boxes {
		box := &g.Boxes[i]
		switch status {
		case "run":
			n += box.Run
		case "maybe":
			n += box.Maybe
		case "hit":
			n += box.Hit
		case Unneeded:
			n += box.Unneeded
		default:
			if box.Kind == "file" {
				n++
			}
		}
	}
	return n
}

// pageHead is the page up to the drawing. Colours follow the reader's choice of light or
// dark; a drawing wider than the screen is moved by itself.
const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
:root { color-scheme: light dark; --page: #ffffff; --text: #1f2328; --faint: #59636e; --line: #8c959f; --rule: #d1d9e0;
  --run: #d3f2da; --run-edge: #1a7f37; --maybe: #fdebbd; --maybe-edge: #9a6700; --hit: #eaeef2; --hit-edge: #818b98;
  --unneeded: #ffffff; --unneeded-edge: #818b98; --file: #ddeeff; --file-edge: #0969da; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --text: #f0f6fc; --faint: #9198a1; --line: #656c76; --rule: #3d444d;
    --run: #12361f; --run-edge: #3fb950; --maybe: #3b2e0a; --maybe-edge: #d29922; --hit: #21262d; --hit-edge: #656c76;
    --unneeded: #0d1117; --unneeded-edge: #656c76; --file: #0c2d4f; --file-edge: #4493f8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1600px; margin: 0 auto; padding: 16px; }
h1 { font-size: 20px; margin: 0 0 8px; overflow-wrap: anywhere; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 0 0 12px; padding: 0; color: var(--faint); font-size: 14px; }
.swatch { display: inline-block; width: 14px; height: 14px; margin-right: 6px; border: 1.5px solid; border-radius: 4px; vertical-align: -2px; }
.drawing { overflow: auto; max-height: 85vh; border: 1px solid var(--rule); border-radius: 8px; margin-bottom: 16px; }
svg { display: block; margin: 0 auto; }
svg text { fill: var(--text); font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; text-anchor: middle; }
svg text.detail { fill: var(--faint); }
svg path { fill: none; stroke: var(--line); stroke-width: 1.2; }
svg marker path { fill: var(--line); stroke: none; }
svg rect { stroke-width: 1.2; }
svg .wanted rect { stroke-width: 2.5; }
.run { fill: var(--run); stroke: var(--run-edge); background: var(--run); border-color: var(--run-edge); }
.maybe { fill: var(--maybe); stroke: var(--maybe-edge); background: var(--maybe); border-color: var(--maybe-edge); }
.hit { fill: var(--hit); stroke: var(--hit-edge); background: var(--hit); border-color: var(--hit-edge); }
.unneeded { fill: var(--unneeded); stroke: var(--unneeded-edge); stroke-dasharray: 4; background: var(--unneeded); border: 1.5px dashed var(--unneeded-edge); }
.file { fill: var(--file); stroke: var(--file-edge); background: var(--file); border-color: var(--file-edge); }
table { border-collapse: collapse; width: 100%%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0; border-top: 1px solid var(--rule); overflow-wrap: anywhere; }
th { color: var(--faint); font-weight: 600; border-top: 0; }
td:first-child { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 13px; }
</style>
</head>
<body>
<main>
<h1>%s</h1>
`

// writeSVG draws a graph.
func writeSVG(b *strings.Builder, g *Graph) {
	l := place(g)
	fmt.Fprintf(b, "<div class=\"drawing\" tabindex=\"0\">\n"+
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"graph\">\n",
		l.width, l.height, l.width, l.height)
	b.WriteString("<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">" +
		"<path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n")
	for i := range l.spots {
		for _, to := range l.spots[i].down {
			l.curve(b, &l.spots[i], &l.spots[to])
		}
	}
	for i := range g.Boxes {
		l.drawBox(b, &g.Boxes[i], &l.spots[i])
	}
	b.WriteString("</svg>\n</div>\n")
}

// curve draws a line from one layer to the next. In a layer that it passes it is straight.
func (l *layout) curve(b *strings.Builder, from, to *spot) {
	y0, y1 := l.top(from.layer)+boxHeight, l.top(to.layer)
	if from.pass {
		fmt.Fprintf(b, "<path d=\"M%.1f %.1fV%.1f\"/>", from.x, l.top(from.layer), y0)
	}
	arrow := ""
	if !to.pass {
		arrow = " marker-end=\"url(#arrow)\""
	}
	half := (y1 - y0) / 2
	fmt.Fprintf(b, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"%s/>\n", from.x, y0, from.x, y0+half, to.x, y1-half, to.x, y1, arrow)
}

func (l *layout) drawBox(b *strings.Builder, box *Box, s *spot) {
	class := ""
	if box.Wanted {
		class = " class=\"wanted\""
	}
	top, detail := l.top(s.layer), box.detail()
	fmt.Fprintf(b, "<g%s><title>%s</title><rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"7\"/>",
		class, html.EscapeString(oneLine(box.Name)+"\n"+detail), box.status(), s.x-s.w/2, top, s.w, boxHeight)
	y := top + boxHeight/2 + 4
	if detail != "" {
		y = top + 19
		fmt.Fprintf(b, "<text class=\"detail\" x=\"%.1f\" y=\"%.1f\">%s</text>", s.x, top+35, html.EscapeString(detail))
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\">%s</text></g>\n", s.x, y, html.EscapeString(shortName(box.Name)))
}

// writeTable writes the graph for those who cannot see it, or search in it.
func writeTable(b *strings.Builder, g *Graph) {
	fmt.Fprintf(b, "<details><summary>as a table</summary>\n<table><thead><tr><th>%s</th><th>status</th><th>reads</th></tr></thead><tbody>\n", g.Level)
	for i := range g.Boxes {
		box := &g.Boxes[i]
		var reads []string
		for _, in := range box.In {
			reads = append(reads, html.EscapeString(oneLine(g.Boxes[in].Name)))
		}
		status := box.detail()
		if status == "" {
			status = "file of yours"
		}
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td></tr>\n", html.EscapeString(oneLine(box.Name)), status, strings.Join(reads, "<br>"))
	}
	b.WriteString("</tbody></table></details>\n")
}
