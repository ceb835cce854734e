package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"bonsai/ops"
	"bonsai/ops/safetensors"
)

// A Report is what Compare writes, as JSON.
type Report struct {
	Version  int      `json:"version"` // of this format: 1
	Protocol Protocol `json:"protocol"`
	Original Figures  `json:"original"`
	Model    Figures  `json:"model"`
	KL       float64  `json:"kl"`   // mean KL(original ‖ model), nats
	Top1     float64  `json:"top1"` // share of positions where both hold the same token most likely
}

// Protocol says what the figures of a report are means over.
type Protocol struct {
	Text      string `json:"text_sha256"` // of the joined documents
	IDs       string `json:"ids_sha256"`  // of the tokens, int32, little-endian
	Documents int    `json:"documents"`
	Join      string `json:"join"` // text between documents
	Limit     int    `json:"limit"`
	BOS       string `json:"bos"` // NoBOS, TextBOS or WindowBOS
	Window    int    `json:"window"`
	Windows   int    `json:"windows"`
	Positions int    `json:"positions"` // predicted: Windows × (Window − 1)
}

// Figures are one model's scores.
type Figures struct {
	NLL        float64 `json:"nll"`        // mean negative log likelihood of the next token, nats
	Perplexity float64 `json:"perplexity"` // exp(NLL)
}

// Compare measures a model beside the original it was made of.
//
// Inputs: 0 the output of Tokens; 1 the original's hidden states on them; 2 the model's;
// then the original's files, Original.Files of them; then the model's. Of files only the
// heads are read. Its output is a Report.
type Compare struct {
	Original, Model Model

	on machine
}

// On returns c computing on that many threads, GOMAXPROCS if 0.
func (c Compare) On(threads int) Compare {
	c.on.threads = threads
	return c
}

// AppendText implements engine.Op.
func (c Compare) AppendText(b []byte) ([]byte, error) { return ops.AppendManifest(b, "compare", 1, c) }

// Run implements engine.Op.
func (c Compare) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if len(in) != 3+c.Original.Files+c.Model.Files {
		return fmt.Errorf("%d inputs, want tokens, 2 of hidden states, %d of the original and %d of the model",
			len(in), c.Original.Files, c.Model.Files)
	}
	text, err := readWindows(in[0])
	if err != nil {
		return err
	}
	original, err := openSide(c.Original, in[1], in[3:3+c.Original.Files], text)
	if err != nil {
		return fmt.Errorf("original: %w", err)
	}
	defer original.close()
	m, err := openSide(c.Model, in[2], in[3+c.Original.Files:], text)
	if err != nil {
		return err
	}
	defer m.close()
	sums, err := measure(ctx, text, []*side{original, m}, c.on.threads, report)
	if err != nil {
		return err
	}
	r := Report{
		Version: 1, Protocol: text.protocol(), Original: sums.figures(0), Model: sums.figures(1),
		KL: sums.kl, Top1: sums.top1,
	}
	report(1, fmt.Sprintf("perplexity %.4g (original %.4g), KL %.4f, top-1 %.3f",
		r.Model.Perplexity, r.Original.Perplexity, sums.kl, sums.top1))
	return r.write(out[0])
}

func (r Report) write(out io.Writer) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = out.Write(append(b, '\n'))
	return err
}

func (w *windows) protocol() Protocol {
	number := func(key string) int {
		n, _ := strconv.Atoi(w.facts[key])
		return n
	}
	n := len(w.ids) / w.window
	return Protocol{
		Text: w.facts["text"], IDs: w.facts["ids"], Documents: number("documents"), Join: w.facts["join"],
		Limit: number("limit"), BOS: w.facts["bos"], Window: w.window, Windows: n, Positions: n * (w.window - 1),
	}
}

// A side is one of the models that are compared: its states and its head.
type side struct {
	*opened
	rows   head
	hidden *safetensors.File
}

func openSide(m Model, hidden *io.SectionReader, files []*io.SectionReader, text *windows) (s *side, err error) {
	o, err := m.opened(files)
	if err != nil {
		return nil, err
	}
	s = &side{opened: o}
	if s.rows, err = o.head(); err == nil {
		err = text.check(o.config.Vocab)
	}
	if err == nil {
		s.hidden, err = readHidden(hidden, len(text.ids), o.config.Hidden)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return s, nil
}

func (s *side) close() {
	_ = s.hidden.Close() // of a file read
	s.opened.close()
}

// sums are means over positions.
type sums struct {
	nll      []float64 // of each side
	kl, top1 float64   // of the second side against the first
}

func (s *sums) figures(i int) Figures {
	return Figures{NLL: s.nll[i], Perplexity: math.Exp(s.nll[i])}
}
