// Package calibrate makes the blocks of token ids that a model is calibrated on.
//
// It packs documents: their ids one after the other with a separator between them, cut into
// blocks of one length. Nothing is padded, so no statistic ever sees a token that is not
// text. It knows tokenizers and documents; it does not know models.
//
// Start at Calibrate.
package calibrate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"bonsai/ops"
	"bonsai/ops/dataset"
	"bonsai/ops/safetensors"
	"bonsai/ops/tokenizer"
)

// Calibrate is the op that packs the documents of each take and chooses blocks of them.
//
// Its inputs are the documents of each take, JSON lines as package dataset writes them, in the
// order of Takes, then tokenizer.json, then tokenizer_config.json, which may be empty.
//
// Its output is a safetensors file of one tensor, "tokens", I32 [blocks, length]: the blocks
// of all takes, shuffled. Its metadata tells the settings and, in all and by take, how many
// "documents" and "tokens" there were (separators included), how many "blocks" they make, how
// many were "chosen", and how many tokens were "dropped" after the last whole block.
type Calibrate struct {
	Length int    // tokens of a block
	Seed   uint64 // of the choice and of the order

	// Separator is the token between documents, "" for the one that the tokenizer
	// suggests: BOS if it adds that to texts, else <|endoftext|> if it has that, else EOS.
	// BOS stands before each document, another token between two.
	Separator string

	Takes []Take
}

// A Take is a number of blocks from one set of documents, each block at most once.
type Take struct {
	Name   string // in errors and metadata
	Blocks int    // how many; 0 is all
	Seed   uint64 // of the choice, with that of Calibrate
}

// AppendText implements engine.Op.
func (c Calibrate) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "calibration", 1, c)
}

// Run implements engine.Op. Too few blocks are an error that tells the numbers.
func (c Calibrate) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	if err := c.check(len(in)); err != nil {
		return err
	}
	n := len(c.Takes)
	tok, digest, err := readTokenizer(in[n], in[n+1])
	if err != nil {
		return err
	}
	var blocks [][]int32
	counts := make([]counts, n)
	for i, take := range c.Takes {
		p := newPacker(c.Length, take.Blocks, rand.NewPCG(c.Seed, take.Seed))
		progress := func(done float64) { report((float64(i)+done)/float64(n)*0.99, "take "+take.Name) }
		if err := p.pack(ctx, tok, c.Separator, in[i], progress); err != nil {
			return fmt.Errorf("take %q: %w", take.Name, err)
		}
		blocks, counts[i] = append(blocks, p.chosen...), p.counts
	}
	shuffle(blocks, rand.NewPCG(c.Seed, shuffleStream))
	if err := write(out[0], c.Length, blocks, c.facts(digest, counts)); err != nil {
		return err
	}
	report(1, c.note(sum(counts)))
	return nil
}

// shuffleStream makes the order of the blocks independent of their choice.
const shuffleStream = 0x6f72646572 // "order"

// These bound what settings can make Run allocate.
const (
	MaxLength = 1 << 22 // tokens of a block
	MaxBlocks = 1 << 24 // of a take
)

func (c Calibrate) check(inputs int) error {
	if c.Length < 1 || c.Length > MaxLength {
		return fmt.Errorf("blocks of %d tokens", c.Length)
	}
	if len(c.Takes) == 0 {
		return errors.New("calibration takes nothing")
	}
	if inputs != len(c.Takes)+2 {
		return fmt.Errorf("%d inputs for %d takes, a tokenizer and its config", inputs, len(c.Takes))
	}
	seen := map[string]bool{}
	for _, t := range c.Takes {
		if t.Blocks < 0 || t.Blocks > MaxBlocks {
			return fmt.Errorf("take %q: %d blocks", t.Name, t.Blocks)
		}
		if seen[t.Name] {
			return fmt.Errorf("two takes named %q", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

// readTokenizer reads a tokenizer and the SHA-256 of its tokenizer.json.
func readTokenizer(file, config io.Reader) (*tokenizer.Tokenizer, string, error) {
	f, err := io.ReadAll(file)
	if err != nil {
		return nil, "", err
	}
	c, err := io.ReadAll(config)
	if err != nil {
		return nil, "", err
	}
	tok, err := tokenizer.Parse(f, c)
	digest := sha256.Sum256(f)
	return tok, hex.EncodeToString(digest[:]), err
}

// counts are what a take found.
type counts struct{ documents, tokens, blocks, chosen, dropped int }

func sum(all []counts) (s counts) {
	for _, c := range all {
		s.documents += c.documents
		s.tokens += c.tokens
		s.blocks += c.blocks
		s.chosen += c.chosen
		s.dropped += c.dropped
	}
	return s
}

func (c Calibrate) note(n counts) string {
	return fmt.Sprintf("%d blocks of %d tokens, of %d; %d documents, %d tokens, %d dropped",
		n.chosen, c.Length, n.blocks, n.documents, n.tokens, n.dropped)
}

// facts returns the metadata of the output.
func (c Calibrate) facts(digest string, all []counts) map[string]string {
	facts := map[string]string{
		"seed":      strconv.FormatUint(c.Seed, 10),
		"length":    strconv.Itoa(c.Length),
		"separator": c.Separator,
		"tokenizer": digest,
	}
	put := func(prefix string, n counts) {
		for name, v := range map[string]int{
			"documents": n.documents, "tokens": n.tokens, "blocks": n.blocks, "chosen": n.chosen, "dropped": n.dropped,
		} {
			facts[prefix+name] = strconv.Itoa(v)
		}
	}
	put("", sum(all))
	for i, t := range c.Takes {
		put("take."+t.Name+".", all[i])
		facts["take."+t.Name+".seed"] = strconv.FormatUint(t.Seed, 10)
	}
	return facts
}

func write(w io.Writer, length int, blocks [][]int32, facts map[string]string) error {
	spec := safetensors.Spec{Name: "tokens", DType: safetensors.I32, Shape: []int64{int64(len(blocks)), int64(length)}}
	f, err := safetensors.NewWriter(w, []safetensors.Spec{spec}, facts)
	if err != nil {
		return err
	}
	raw := make([]byte, 0, 4*length)
	for _, block := range blocks {
		raw = raw[:0]
		for _, id := range block {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
		}
		if err := f.Write("tokens", raw); err != nil {
			return err
		}
	}
	return f.Close()
}

// pack reads the documents of a take.
func (p *packer) pack(ctx context.Context, tok *tokenizer.Tokenizer, separator string, in *io.SectionReader, progress func(float64)) error {
	sep, err := newSeparator(tok, separator)
	if err != nil {
		return err
	}
	read := &counter{r: in}
	for text, err := range dataset.Read(read) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		p.add(sep.ids(p.documents))
		p.add(tok.Encode(text))
		p.documents++
		progress(float64(read.n) / float64(max(in.Size(), 1)))
	}
	return p.finish()
}

// A counter counts the bytes read from r.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
