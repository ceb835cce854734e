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
	"strings"
)

// An Unpacked is what came of Unpack.
type Unpacked struct {
	Bundle
	NewBlobs   int   // that were not there
	NewBytes   int64 // of those
	NewResults int
}

// Unpack reads a bundle that Pack wrote, checks every byte of it, and keeps what is not
// there yet. A bundle that is damaged or cut short is an ErrBundle: then no result of it
// is kept, and of its blobs none but whole ones, so that another try has less to write.
// progress is told how many bytes of how many of blobs are done; it may be nil.
func (d *Dir) Unpack(ctx context.Context, r io.Reader, progress func(done, total int64)) (Unpacked, error) {
	u := &unpacker{ctx: ctx, d: d, hash: sha256.New(), progress: progress}
	u.in = io.TeeReader(&plainReader{r}, u.hash)
	u.tar = tar.NewReader(u.in)
	err := u.unpack()
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) || u.storeFailed {
		return u.sum, err
	}
	return u.sum, fmt.Errorf("%w: %w", ErrBundle, err)
}

// plainReader hides that a file can seek: a tar reader would skip what must be hashed.
type plainReader struct{ io.Reader }

// An unpacker is one call of Unpack.
type unpacker struct {
	ctx      context.Context
	d        *Dir
	in       io.Reader // everything that is read goes through hash
	hash     hash.Hash
	tar      *tar.Reader
	progress func(done, total int64)
	done     int64

	head        bundleJSON
	sum         Unpacked
	storeFailed bool
}

func (u *unpacker) unpack() error {
	if err := u.readHead(); err != nil {
		return err
	}
	for _, o := range u.head.Blobs {
		if err := u.blob(o); err != nil {
			return err
		}
	}
	results := make([]Result, len(u.head.Results))
	for i, r := range u.head.Results {
		text, err := u.file(bundleResults+r.Key.String(), maxResult)
		if err == nil {
			results[i], err = decodeBundled(r, text)
		}
		if err != nil {
			return err
		}
	}
	if err := u.readEnd(); err != nil {
		return err
	}
	for i, r := range u.head.Results {
		if err := u.record(r.Key, results[i]); err != nil {
			u.storeFailed = true
			return err
		}
	}
	return nil
}

func (u *unpacker) readHead() error {
	text, err := u.file(bundleHead, maxHead)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &u.head); err != nil {
		return fmt.Errorf("%s: %w", bundleHead, err)
	}
	if u.head.Format != bundleFormat {
		return fmt.Errorf("it has format %d, and this version reads %d", u.head.Format, bundleFormat)
	}
	u.sum.Bundle = Bundle{Note: u.head.Note, Blobs: u.head.Blobs}
	for _, r := range u.head.Results {
		u.sum.Results = append(u.sum.Results, r.Key)
	}
	return nil
}

// next goes to the next file, which must have this name.
func (u *unpacker) next(name string) (size int64, err error) {
	h, err := u.tar.Next()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return 0, fmt.Errorf("%.80q stands where %s should", h.Name, name)
	}
	return h.Size, nil
}

func (u *unpacker) file(name string, limit int64) ([]byte, error) {
	size, err := u.next(name)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s: %d bytes are too many", name, size)
	}
	var b bytes.Buffer // grows with what is there, whatever the head says
	if _, err := b.ReadFrom(u.tar); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b.Bytes(), nil
}

// blob stores a blob if it is not there, and checks its bytes either way.
func (u *unpacker) blob(o Output) error {
	name := bundleBlobs + o.Digest.String()
	size, err := u.next(name)
	if err != nil {
		return err
	}
	if size != o.Size {
		return fmt.Errorf("%s: %d bytes, not %d", name, size, o.Size)
	}
	var w Writer = discarding{}
	there, err := u.d.Stat(o.Digest)
	fresh := err != nil || there != o.Size || !u.d.renewAll(o.Digest)
	if fresh {
		if w, err = u.d.Create(); err != nil {
			u.storeFailed = true
			return err
		}
	}
	h := sha256.New()
	out := &sink{w: w}
	if err := copyBlocks(u.ctx, io.MultiWriter(h, out), u.tar, u.report); err != nil {
		u.storeFailed = out.failed
		return errors.Join(fmt.Errorf("%s: %w", name, err), w.Abort())
	}
	if sumOf(h) != o.Digest {
		return errors.Join(fmt.Errorf("%s: its bytes have another digest", name), w.Abort())
	}
	if _, err := w.Commit(); err != nil {
		u.storeFailed = true
		return err
	}
	if fresh {
		u.sum.NewBlobs++
		u.sum.NewBytes += o.Size
	}
	return nil
}

// A sink remembers that it failed, to tell an error of the store from one of the bundle.
type sink struct {
	w      io.Writer
	failed bool
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.failed = s.failed || err != nil
	return n, err
}

// discarding is the Writer of a blob that is there.
type discarding struct{}

func (discarding) Write(p []byte) (int, error) { return len(p), nil }
func (discarding) Commit() (Output, error)     { return Output{}, nil }
func (discarding) Abort() error                { return nil }

func (u *unpacker) report(n int64) {
	u.done += n
	if u.progress != nil {
		u.progress(u.done, u.sum.Bytes())
	}
}

// decodeBundled reads a result and checks that it is the one, and that its manifest is
// that of its key: a bundle made by another hand must not stand for an action.
func decodeBundled(b bundleResult, text []byte) (r Result, err error) {
	if DigestOf(text) != b.Digest {
		return r, fmt.Errorf("result %s: its bytes have another digest", b.Key.Short())
	}
	if err := r.UnmarshalJSON(text); err != nil {
		return r, fmt.Errorf("result %s: %w", b.Key.Short(), err)
	}
	if KeyOf([]byte(r.Manifest)) != b.Key {
		return r, fmt.Errorf("result %s: it is of another action", b.Key.Short())
	}
	return r, nil
}

// readEnd compares the hash of all bytes before with what the bundle says, and looks that
// nothing comes after it.
func (u *unpacker) readEnd() error {
	size, err := u.next(bundleEnd)
	if err != nil {
		return err
	}
	want := fmt.Sprintf("%x", u.hash.Sum(nil))
	if size != int64(len(want)) {
		return fmt.Errorf("%s: %d bytes, not %d", bundleEnd, size, len(want))
	}
	got, err := io.ReadAll(u.tar)
	if err != nil {
		return fmt.Errorf("%s: %w", bundleEnd, err)
	}
	if string(got) != want {
		return errors.New("the checksum does not match")
	}
	rest, err := io.ReadAll(io.LimitReader(u.in, maxTrailer+1))
	if err != nil {
		return err
	}
	if len(rest) != maxTrailer || strings.Trim(string(rest), "\x00") != "" {
		return errors.New("it does not end as it should")
	}
	return nil
}

// maxTrailer is what follows the checksum: the rest of its block, and two blocks of zeros.
const maxTrailer = 512 - 2*sha256.Size + 2*512

// record keeps a result, unless one is there whose blobs are all there too. One without
// its blobs is a tombstone.
func (u *unpacker) record(k Key, r Result) error {
	if old, err := u.d.Lookup(k); err == nil && u.d.hasAll(old) {
		return nil
	}
	if !u.d.hasAll(r) {
		r.Evicted = u.d.now().UTC()
	}
	u.sum.NewResults++
	return u.d.Record(k, r)
}

// hasAll reports whether all blobs of r are there.
func (d *Dir) hasAll(r Result) bool {
	for _, o := range r.Outputs {
		if size, err := d.Stat(o.Digest); err != nil || size != o.Size {
			return false
		}
	}
	return true
}
