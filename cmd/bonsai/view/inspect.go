package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bonsai/ops/gguf"
	"bonsai/ops/model"
)

// InspectOptions say how the contents of a file are shown.
type InspectOptions struct {
	Style
	JSON bool
	All  bool // every tensor, and metadata in full
}

// A Tensor is one tensor of a file.
type Tensor struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Shape   []int64 `json:"shape"` // outermost axis first
	Bytes   int64   `json:"bytes"`
	Ternary bool    `json:"ternary,omitempty"`
}

func (t Tensor) len() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Tensors are what a safetensors file holds.
type Tensors struct {
	File     string            `json:"file"`
	Size     int64             `json:"size"`
	Metadata map[string]string `json:"metadata"`
	Tensors  []Tensor          `json:"tensors"`
}

// A Checkpoint is what a folder of the Hugging Face layout holds, and what it would
// become.
type Checkpoint struct {
	Dir       string       `json:"dir"`
	Config    model.Config `json:"config"`
	Files     []string     `json:"files"`
	Tokenizer bool         `json:"tokenizer"`
	Tensors   []Tensor     `json:"tensors"`
	Planned   *Planned     `json:"planned,omitempty"`
	Refused   string       `json:"refused,omitempty"` // why it cannot become a file
}

// Planned is the file that a checkpoint would become.
type Planned struct {
	Format        string   `json:"format"`
	Architecture  string   `json:"architecture"`
	Ternary       []string `json:"ternary"` // tensors
	Block         int      `json:"hadamard_block"`
	Widths        []int    `json:"widths"`
	Bytes         int64    `json:"bytes"`
	BitsPerWeight float64  `json:"bits_per_weight"`
}

// A GGUF is what a GGUF file holds.
type GGUF struct {
	File          string
	Size          int64
	Container     uint32
	Architecture  string
	Name          string
	BitsPerWeight float64
	Rotation      *Rotation
	Tensors       []Tensor
	Metadata      []gguf.KV
}

// A Rotation is what a file says of the rotation of its weights.
type Rotation struct {
	Version int      `json:"version"`
	Block   int      `json:"block"`
	Widths  []int    `json:"widths"`
	Tensors []string `json:"tensors"`
	Inverse bool     `json:"inverse"`
}

// WriteTensors writes what a safetensors file holds.
func WriteTensors(w io.Writer, t Tensors, opt InspectOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"safetensors", t})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: safetensors, %s\n", opt.palette().strong.Render(printable(t.File)), Bytes(t.Size))
	writeTypes(&b, t.Tensors)
	for _, k := range slices.Sorted(maps.Keys(t.Metadata)) {
		fmt.Fprintf(&b, "  %-30s %s\n", printable(k), printable(shorten(t.Metadata[k], opt.All)))
	}
	writeTensors(&b, t.Tensors, opt.All)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCheckpoint writes what a checkpoint holds; nil is nothing.
func WriteCheckpoint(w io.Writer, c *Checkpoint, opt InspectOptions) error {
	if c == nil {
		return nil
	}
	if opt.JSON {
		return writeJSON(w, headed{"checkpoint", c})
	}
	var b strings.Builder
	p, cfg := opt.palette(), c.Config
	fmt.Fprintf(&b, "%s: %s checkpoint in %s\n", p.strong.Render(printable(c.Dir)), cfg.Type, count(len(c.Files), "file"))
	writeTypes(&b, c.Tensors)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("layers", "%d", cfg.Layers)
	row("widths", "hidden %d, intermediate %d, vocabulary %d", cfg.Hidden, cfg.Intermediate, cfg.Vocab)
	row("heads", "%d of %d, %d key and value heads", cfg.Heads, cfg.HeadDim, cfg.KVHeads)
	row("context", "%d tokens, rope %s, base %g", cfg.Context, cfg.Rope.Type, cfg.Rope.Base)
	row("table", "%s", map[bool]string{true: "tied: the head is the embedding", false: "head and embedding apart"}[cfg.Tied])
	row("tokenizer", "%s", map[bool]string{true: "tokenizer.json", false: "none: it cannot be calibrated"}[c.Tokenizer])
	if pl := c.Planned; pl != nil {
		row("ternary", "%d of %d tensors", len(pl.Ternary), len(c.Tensors))
		row("rotation", "Hadamard blocks of %d, widths %s", pl.Block, join(pl.Widths))
		row("as "+pl.Format, "%s, %.3f bits a weight", Bytes(pl.Bytes), pl.BitsPerWeight)
	} else {
		row("refused", "%s", p.warm.Render(printable(c.Refused)))
	}
	writeTensors(&b, c.Tensors, opt.All)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteGGUF writes what a GGUF file holds.
func WriteGGUF(w io.Writer, g *GGUF, opt InspectOptions) error {
	if g.Rotation != nil {
		slices.Sort(g.Rotation.Widths)
	}
	if opt.JSON {
		return writeJSON(w, headed{"gguf", g.json(opt.All)})
	}
	var b strings.Builder
	p := opt.palette()
	fmt.Fprintf(&b, "%s: GGUF %d, %s, %s\n", p.strong.Render(printable(g.File)), g.Container, printable(g.Architecture), Bytes(g.Size))
	writeTypes(&b, g.Tensors)
	fmt.Fprintf(&b, "  %-12s %.3f bits a weight\n", "size", g.BitsPerWeight)
	if r := g.Rotation; r != nil {
		fmt.Fprintf(&b, "  %-12s Hadamard blocks of %d, widths %s, %s rotated\n",
			"rotation", r.Block, join(r.Widths), count(len(r.Tensors), "tensor"))
	} else {
		fmt.Fprintf(&b, "  %-12s none\n", "rotation")
	}
	b.WriteString(p.strong.Render("metadata") + "\n")
	for _, kv := range g.Metadata {
		fmt.Fprintf(&b, "  %-42s %s\n", printable(kv.Key), valueText(kv.Value, opt.All))
	}
	writeTensors(&b, g.Tensors, opt.All)
	_, err := io.WriteString(w, b.String())
	return err
}

func (g *GGUF) json(all bool) any {
	type kv struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
	metadata := []kv{}
	for _, m := range g.Metadata {
		metadata = append(metadata, kv{m.Key, valueJSON(m.Value, all)})
	}
	return struct {
		File          string    `json:"file"`
		Size          int64     `json:"size"`
		Container     uint32    `json:"container_version"`
		Architecture  string    `json:"architecture"`
		Name          string    `json:"name"`
		BitsPerWeight float64   `json:"bits_per_weight"`
		Rotation      *Rotation `json:"rotation"`
		Metadata      []kv      `json:"metadata"`
		Tensors       []Tensor  `json:"tensors"`
	}{g.File, g.Size, g.Container, g.Architecture, g.Name, g.BitsPerWeight, g.Rotation, metadata, g.Tensors}
}

// writeTypes writes how many tensors, weights and bytes there are of each type.
func writeTypes(w io.Writer, tensors []Tensor) {
	type sum struct {
		name           string
		n              int
		weights, bytes int64
	}
	var sums []*sum
	var weights int64
	for _, t := range tensors {
		i := slices.IndexFunc(sums, func(s *sum) bool { return s.name == t.Type })
		if i < 0 {
			i, sums = len(sums), append(sums, &sum{name: t.Type})
		}
		sums[i].n++
		sums[i].weights += t.len()
		sums[i].bytes += t.Bytes
		weights += t.len()
	}
	slices.SortFunc(sums, func(a, b *sum) int { return cmp.Compare(b.weights, a.weights) })
	fmt.Fprintf(w, "  %-12s %s, %s weights\n", "tensors", count(len(tensors), "tensor"), amount(weights))
	for _, s := range sums {
		fmt.Fprintf(w, "  %-12s %s, %s weights, %s\n", "  "+s.name, count(s.n, "tensor"), amount(s.weights), Bytes(s.bytes))
	}
}

// shown is how many tensors are listed unless all are asked for.
const shown = 8

func writeTensors(w io.Writer, tensors []Tensor, all bool) {
	for i, t := range tensors {
		if !all && i == shown && len(tensors) > shown+1 {
			fmt.Fprintf(w, "  … and %d more: all=true lists them\n", len(tensors)-shown)
			return
		}
		fmt.Fprintf(w, "  %-48s %-7s %-16s %s\n", printable(t.Name), t.Type, join(t.Shape), Bytes(t.Bytes))
	}
}

// join returns a shape or a list of numbers, such as "256 × 768".
func join[N int | int64](n []N) string {
	texts := make([]string, len(n))
	for i := range n {
		texts[i] = fmt.Sprint(n[i])
	}
	if _, shape := any(n).([]int64); shape {
		return strings.Join(texts, "×")
	}
	return strings.Join(texts, " ")
}

// amount returns a number of weights, such as 4.2 M.
func amount(n int64) string {
	x := float64(n)
	switch {
	case x >= 1e9:
		return fmt.Sprintf("%.2f G", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.2f M", x/1e6)
	default:
		return fmt.Sprint(n)
	}
}
