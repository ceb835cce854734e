package view

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// The measures of a drawing, in pixels.
const (
	charWidth  = 7.3 // of a letter, at most nearly: names are set in 12 px, monospaced
	boxPadding = 12
	boxHeight  = 44
	boxGap     = 18
	lineGap    = 10 // between lines that pass a layer
	layerGap   = 52
	margin     = 16

	// sweeps is how often layers are ordered by their neighbours: more changes little.
	sweeps = 8
)

// A spot is where a box is, or where the lines from one pass a layer.
type spot struct {
	box   int // index in Graph.Boxes
	pass  bool
	layer int
	x     float64 // of its middle
	w     float64
	up    []int // spots in the layer before that lead to it
	down  []int
}

// A layout is a drawing in layers: what reads is below what is read. Lines that pass a
// layer have a spot in it, one for all lines from the same box.
type layout struct {
	spots         []spot
	layers        [][]int // spots, from left to right
	width, height float64
}

// place lays a graph out.
func place(g *Graph) *layout {
	l := &layout{}
	for i := range g.Boxes {
		s := spot{box: i, w: boxWidth(&g.Boxes[i])}
		for _, in := range g.Boxes[i].In {
			s.layer = max(s.layer, l.spots[in].layer+1)
		}
		l.spots = append(l.spots, s)
	}
	l.sink(g)
	l.connect(g)
	l.order()
	l.position()
	return l
}

func boxWidth(b *Box) float64 {
	n := max(utf8.RuneCountInString(shortName(b.Name)), utf8.RuneCountInString(b.detail()))
	return float64(n)*charWidth + 2*boxPadding
}

// longestName is how many letters of a name a box shows.
const longestName = 40

// shortName returns a name that fits a box: of a long one, the end tells more.
func shortName(name string) string {
	runes := []rune(oneLine(name))
	if len(runes) <= longestName {
		return string(runes)
	}
	return "…" + string(runes[len(runes)-longestName+1:])
}

// sink moves boxes that nothing is above down to just before their first reader.
func (l *layout) sink(g *Graph) {
	first := make([]int, len(g.Boxes))
	for i := range first {
		first[i] = -1
	}
	for i := range g.Boxes {
		for _, in := range g.Boxes[i].In {
			if at := l.spots[i].layer - 1; first[in] < 0 || at < first[in] {
				first[in] = at
			}
		}
	}
	for i := range g.Boxes {
		if len(g.Boxes[i].In) == 0 && first[i] > 0 {
			l.spots[i].layer = first[i]
		}
	}
}

// connect adds the spots that lines pass, and fills the layers.
func (l *layout) connect(g *Graph) {
	type at struct{ box, layer int }
	passes := map[at]int{}
	for i := range g.Boxes {
		for _, in := range g.Boxes[i].In {
			from := in
			for layer := l.spots[in].layer + 1; layer < l.spots[i].layer; layer++ {
				next, ok := passes[at{in, layer}]
				if !ok {
					next = len(l.spots)
					passes[at{in, layer}] = next
					l.spots = append(l.spots, spot{box: in, pass: true, layer: layer})
					l.line(from, next)
				}
				from = next
			}
			l.line(from, i)
		}
	}
	for i, s := range l.spots {
		for len(l.layers) <= s.layer {
			l.layers = append(l.layers, nil)
		}
		l.layers[s.layer] = append(l.layers[s.layer], i)
	}
}

func (l *layout) line(from, to int) {
	l.spots[from].down = append(l.spots[from].down, to)
	l.spots[to].up = append(l.spots[to].up, from)
}

// order orders each layer so that few lines cross: by the mean place of the spots that
// each is connected to, from top to bottom and back.
func (l *layout) order() {
	at := make([]float64, len(l.spots))
	number := func(layer []int) {
		for k, i := range layer {
			at[i] = float64(k)
		}
	}
	for _, layer := range l.layers {
		number(layer)
	}
	for sweep := range sweeps {
		for k := range l.layers {
			layer, others := l.layers[k], func(s *spot) []int { return s.up }
			if sweep%2 == 1 {
				layer, others = l.layers[len(l.layers)-1-k], func(s *spot) []int { return s.down }
			}
			goal := make(map[int]float64, len(layer))
			for _, i := range layer {
				goal[i] = mean(others(&l.spots[i]), at, at[i])
			}
			slices.SortStableFunc(layer, func(i, j int) int { return cmp.Compare(goal[i], goal[j]) })
			number(layer)
		}
	}
}

// mean returns the mean of some values, or otherwise if there are none.
func mean(of []int, values []float64, otherwise float64) float64 {
	if len(of) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, i := range of {
		sum += values[i]
	}
	return sum / float64(len(of))
}

// position gives each spot its place: as near as possible to the middle of those it is
// connected to, without an overlap.
func (l *layout) position() {
	x := make([]float64, len(l.spots))
	for _, layer := range l.layers {
		l.spread(layer, x)
	}
	for sweep := range 2 * sweeps {
		for k := range l.layers {
			layer := l.layers[k]
			if sweep%2 == 1 {
				layer = l.layers[len(l.layers)-1-k]
			}
			for _, i := range layer {
				x[i] = l.goal(i, x)
			}
			l.spread(layer, x)
		}
	}
	left := 0.0
	for i, s := range l.spots {
		left = min(left, x[i]-s.w/2)
	}
	for i := range l.spots {
		s := &l.spots[i]
		s.x = x[i] - left + margin
		l.width = max(l.width, s.x+s.w/2+margin)
	}
	l.height = float64(len(l.layers))*(boxHeight+layerGap) - layerGap + 2*margin
}

// spread moves the spots of a layer apart until none overlap: the mean of moving them all
// to the right and all to the left, so that those which have room stay where they are.
func (l *layout) spread(layer []int, x []float64) {
	if len(layer) == 0 {
		return
	}
	right, left := make([]float64, len(layer)), make([]float64, len(layer))
	for k, i := range layer {
		right[k], left[k] = x[i], x[i]
	}
	for k := 1; k < len(layer); k++ {
		right[k] = max(right[k], right[k-1]+l.apart(layer[k-1], layer[k]))
	}
	for k := len(layer) - 2; k >= 0; k-- {
		left[k] = min(left[k], left[k+1]-l.apart(layer[k], layer[k+1]))
	}
	for k, i := range layer {
		x[i] = (right[k] + left[k]) / 2
	}
}

// straight is how much more a line that passes layers is drawn to itself than to boxes, so
// that it goes straight on.
const straight = 8

// goal returns where a spot would best be: in the middle of those it is connected to.
func (l *layout) goal(i int, x []float64) float64 {
	s := &l.spots[i]
	sum, weights := 0.0, 0.0
	for _, others := range [][]int{s.up, s.down} {
		for _, other := range others {
			weight := 1.0
			if s.pass && l.spots[other].pass {
				weight = straight
			}
			sum += weight * x[other]
			weights += weight
		}
	}
	if weights == 0 {
		return x[i]
	}
	return sum / weights
}

// apart returns how far the middles of two neighbours must be from each other.
func (l *layout) apart(i, j int) float64 {
	a, b := &l.spots[i], &l.spots[j]
	gap := float64(boxGap)
	if a.pass && b.pass {
		gap = lineGap
	}
	return a.w/2 + b.w/2 + gap
}

// top returns the upper edge of a layer.
func (l *layout) top(layer int) float64 { return margin + float64(layer)*(boxHeight+layerGap) }
