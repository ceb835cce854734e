package cache

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// bundleFormat is the version of the form of a bundle.
const bundleFormat = 1

// The names in a bundle: a manifest, blobs in order of their digests, results in order of
// their keys, and the SHA-256 of all bytes up to there.
const (
	bundleHead    = "bonsai-bundle.json"
	bundleBlobs   = "blobs/"
	bundleResults = "results/"
	bundleEnd     = "end"
)

// maxHead bounds the manifest of a bundle, and maxResult a result in it, in bytes.
const (
	maxHead   = 1 << 30
	maxResult = 64 << 20
)

// ErrBundle says that a bundle is damaged, cut short, or none.
var ErrBundle = errors.New("the bundle is damaged, cut short, or none")

// A Bundle says what a bundle holds. Results whose blobs are not in it are there as
// tombstones: a build knows what they made.
type Bundle struct {
	Note    string   // what it is of, such as "target gguf"
	Results []Key    // in order
	Blobs   []Output // in order of their digests
}

// Bytes returns the size of all blobs.
func (b *Bundle) Bytes() (n int64) {
	for _, o := range b.Blobs {
		n += o.Size
	}
	return n
}

// bundleJSON is the JSON form of a Bundle. Results are the digests of their files too, so
// that all of a bundle is known from its beginning.
type bundleJSON struct {
	Format  int            `json:"format"`
	Note    string         `json:"note,omitempty"`
	Blobs   []Output       `json:"blobs"`
	Results []bundleResult `json:"results"`
}

type bundleResult struct {
	Key    Key    `json:"key"`
	Digest Digest `json:"digest"` // of the JSON form of the result
}

// Pack writes results and blobs as a bundle, which Unpack reads: a tar archive, the same
// bytes for the same contents. It is an ErrMiss if something of it is not in the store.
// progress is told how many bytes of how many of blobs are done; it may be nil.
func (d *Dir) Pack(ctx context.Context, w io.Writer, b Bundle, progress func(done, total int64)) error {
	head := bundleJSON{Format: bundleFormat, Note: b.Note, Blobs: []Output{}, Results: []bundleResult{}}
	slices.SortFunc(b.Results, func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
	texts := make([][]byte, 0, len(b.Results))
	for _, k := range slices.Compact(b.Results) {
		r, err := d.Lookup(k)
		if err != nil {
			return err
		}
		r.Evicted = Result{}.Evicted // the receiver sees what it has
		text, err := r.MarshalJSON()
		if err != nil {
			return fmt.Errorf("result %s: %w", k.Short(), err)
		}
		texts = append(texts, text)
		head.Results = append(head.Results, bundleResult{k, DigestOf(text)})
	}
	slices.SortFunc(b.Blobs, compareOutputs)
	head.Blobs = append(head.Blobs, slices.Compact(b.Blobs)...)
	p := &packer{ctx: ctx, d: d, hash: sha256.New(), progress: progress, total: (&Bundle{Blobs: head.Blobs}).Bytes()}
	p.tar = tar.NewWriter(io.MultiWriter(w, p.hash))
	return p.pack(head, texts)
}

func compareOutputs(a, b Output) int { return bytes.Compare(a.Digest[:], b.Digest[:]) }

// A packer is one call of Pack.
type packer struct {
	ctx         context.Context
	d           *Dir
	tar         *tar.Writer
	hash        hash.Hash // of all that was written
	progress    func(done, total int64)
	done, total int64
}

func (p *packer) pack(head bundleJSON, texts [][]byte) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if err := p.file(bundleHead, text); err != nil {
		return err
	}
	for _, o := range head.Blobs {
		if err := p.blob(o); err != nil {
			return err
		}
	}
	for i, r := range head.Results {
		if err := p.file(bundleResults+r.Key.String(), texts[i]); err != nil {
			return err
		}
	}
	if err := p.header(bundleEnd, 2*sha256.Size); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.tar, "%x", p.hash.Sum(nil)); err != nil {
		return err
	}
	return p.tar.Close()
}

// header writes the head of a file, so that nothing of an earlier one is pending.
func (p *packer) header(name string, size int64) error {
	return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o444})
}

func (p *packer) file(name string, text []byte) error {
	if err := p.header(name, int64(len(text))); err != nil {
		return err
	}
	_, err := p.tar.Write(text)
	return err
}

// blob writes a blob, hashed once more on the way.
func (p *packer) blob(o Output) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	b, err := p.d.Open(o.Digest)
	if err != nil {
		return err
	}
	defer b.Close()
	if b.Size() != o.Size {
		return &MissError{What: "blob " + o.Digest.Short(), Reason: fmt.Sprintf("it has %d bytes, not %d", b.Size(), o.Size), Err: ErrCorrupt}
	}
	if err := p.header(bundleBlobs+o.Digest.String(), o.Size); err != nil {
		return err
	}
	h := sha256.New()
	in := io.NewSectionReader(b, 0, o.Size)
	if err := copyBlocks(p.ctx, io.MultiWriter(p.tar, h), in, p.report); err != nil {
		return fmt.Errorf("blob %s: %w", o.Digest.Short(), err)
	}
	if sumOf(h) != o.Digest {
		return errors.Join(&MissError{What: "blob " + o.Digest.Short(), Reason: "its bytes have another digest", Err: ErrCorrupt}, p.d.Verify(o.Digest))
	}
	return nil
}

func (p *packer) report(n int64) {
	p.done += n
	if p.progress != nil {
		p.progress(p.done, p.total)
	}
}

// copyBlocks copies in to out. It looks at ctx and reports between blocks.
func copyBlocks(ctx context.Context, out io.Writer, in io.Reader, report func(n int64)) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(out, in, 1<<20)
		report(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
