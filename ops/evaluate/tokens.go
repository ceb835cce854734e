package evaluate

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"bonsai/ops"
	"bonsai/ops/safetensors"
	"bonsai/ops/tokenizer"
)

// Where a token that begins a text is put.
const (
	NoBOS     = "none"
	TextBOS   = "text"   // before the first token of the text
	WindowBOS = "window" // before the first token of each window
)

// Tokens cuts a text into windows of tokens: the protocol that figures are measured under.
//
// Inputs: 0 tokenizer.json; 1 tokenizer_config.json, which may be empty; from 2 on
// documents, JSON lines with the key "text".
//
// Its output is a safetensors file with a tensor "tokens", I32 [windows, window]. Tokens
// after the last whole window are left out. Its metadata: "limit", "window", "bos" and
// "join" as set; "documents"; "text", the SHA-256 of the joined text, before it is cut;
// "ids", that of the tensor's bytes.
type Tokens struct {
	Limit  int    // tokens of the text that are kept, from its start; 0 for all
	Window int    // tokens of a window, its BOS included; at least 2
	BOS    string // NoBOS, TextBOS or WindowBOS
	Join   string // text between documents; special tokens in it are tokens
}

// AppendText implements engine.Op.
func (t Tokens) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "evaluation tokens", 1, t)
}

// Run implements engine.Op.
func (t Tokens) Run(_ context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if t.Window < 2 || t.Limit < 0 {
		return fmt.Errorf("window of %d tokens of the first %d", t.Window, t.Limit)
	}
	if len(in) < 3 {
		return fmt.Errorf("%d inputs, want at least 3: tokenizer.json, tokenizer_config.json, documents", len(in))
	}
	tok, err := readTokenizer(in[0], in[1])
	if err != nil {
		return err
	}
	text, documents, err := readTexts(in[2:], t.Join)
	if err != nil {
		return err
	}
	ids, err := t.windows(tok.Encode(text), tok.BOS)
	if err != nil {
		return err
	}
	raw := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
	}
	windows := len(ids) / t.Window
	spec := safetensors.Spec{Name: tokensName, DType: safetensors.I32, Shape: []int64{int64(windows), int64(t.Window)}}
	f, err := safetensors.NewWriter(out[0], []safetensors.Spec{spec}, t.facts(text, documents, raw))
	if err != nil {
		return err
	}
	if err := f.Write(tokensName, raw); err != nil {
		return err
	}
	report(1, fmt.Sprintf("%d windows of %d tokens", windows, t.Window))
	return f.Close()
}

const tokensName = "tokens"

// facts are what is known of windows beside their tokens.
func (t Tokens) facts(text string, documents int, raw []byte) map[string]string {
	return map[string]string{
		"limit": strconv.Itoa(t.Limit), "window": strconv.Itoa(t.Window), "bos": t.BOS, "join": t.Join,
		"documents": strconv.Itoa(documents),
		"text":      fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
		"ids":       fmt.Sprintf("%x", sha256.Sum256(raw)),
	}
}

// windows lays the text's tokens into whole windows, one after the other.
func (t Tokens) windows(text []int32, bos int32) ([]int32, error) {
	if t.Limit > 0 {
		text = text[:min(t.Limit, len(text))]
	}
	if t.BOS != NoBOS && bos < 0 {
		return nil, fmt.Errorf("BOS %q: the tokenizer has no such token", t.BOS)
	}
	var ids []int32
	switch t.BOS {
	case NoBOS:
		ids = text
	case TextBOS:
		ids = append([]int32{bos}, text...)
	case WindowBOS:
		for own := t.Window - 1; len(text) >= own; text = text[own:] {
			ids = append(append(ids, bos), text[:own]...)
		}
	default:
		return nil, fmt.Errorf("BOS %q is none of %s, %s, %s", t.BOS, NoBOS, TextBOS, WindowBOS)
	}
	if len(ids) < t.Window {
		return nil, fmt.Errorf("%d tokens of text do not fill a window of %d", len(text), t.Window)
	}
	return ids[:len(ids)/t.Window*t.Window], nil
}

func readTokenizer(files ...*io.SectionReader) (*tokenizer.Tokenizer, error) {
	var text [2][]byte
	for i, f := range files {
		var err error
		if text[i], err = io.ReadAll(f); err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
	}
	return tokenizer.Parse(text[0], text[1])
}

// readTexts joins the documents of JSON lines and counts them.
func readTexts(in []*io.SectionReader, join string) (text string, n int, err error) {
	var all strings.Builder
	for i, f := range in {
		d := json.NewDecoder(bufio.NewReader(f))
		for {
			var document struct{ Text *string }
			err := d.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil && document.Text == nil {
				err = errors.New("it has no text")
			}
			if err != nil {
				return "", 0, fmt.Errorf("documents %d: document %d: %w", i, n, err)
			}
			if n > 0 {
				all.WriteString(join)
			}
			all.WriteString(*document.Text)
			n++
		}
	}
	return all.String(), n, nil
}

// windows are tokens as the op Tokens wrote them.
type windows struct {
	ids    []int32 // [n, window]
	window int
	facts  map[string]string
}

func readWindows(r *io.SectionReader) (*windows, error) {
	f, err := safetensors.OpenInput(r, "")
	if err != nil {
		return nil, fmt.Errorf("evaluation tokens: %w", err)
	}
	defer f.Close()
	ids, err := f.Int32s(tokensName)
	if err != nil {
		return nil, err
	}
	t, _ := f.Lookup(tokensName)
	if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 2 {
		return nil, fmt.Errorf("%s: tokens %v are not windows", f.Name(), t.Shape)
	}
	return &windows{ids: ids, window: int(t.Shape[1]), facts: maps.Clone(f.Metadata())}, nil
}

// check returns an error for a token that a model does not know.
func (w *windows) check(vocab int) error {
	for i, id := range w.ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("token %d is %d, outside the model's vocabulary of %d", i, id, vocab)
		}
	}
	return nil
}
