package cache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"

	"bonsai/cache/disk"
)

// openChunks is how many files a blob in chunks has open at most, but for those that
// are being read.
const openChunks = 8

// A chunkedBlob is a Blob that is stored in chunks. Files are opened when they are read.
type chunkedBlob struct {
	d      *Dir
	digest Digest
	list   *chunkList
	starts []int64 // offset of each chunk

	mu     sync.Mutex
	open   []*openChunk // the one used last at the end
	closed bool
}

// An openChunk is the open file of a chunk.
type openChunk struct {
	number int
	file   *disk.File
	users  int // reads in progress
}

// openChunked returns a blob that is stored in chunks, if all of them are there and none
// was changed.
func (d *Dir) openChunked(digest Digest) (*chunkedBlob, error) {
	l, err := d.chunksOf(digest)
	if err != nil {
		return nil, err
	}
	b := &chunkedBlob{d: d, digest: digest, list: l}
	at := int64(0)
	for _, c := range l.chunks {
		size, err := d.statFile(c.Digest)
		if err == nil && size != c.Size {
			err = d.badChunk(c, size)
		}
		if err != nil {
			return nil, ofChunk(digest, err)
		}
		b.starts = append(b.starts, at)
		at += c.Size
	}
	return b, nil
}

// badChunk moves a chunk of a wrong size away.
func (d *Dir) badChunk(c Output, size int64) error {
	f, err := d.open(c.Digest)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.badBlob(c.Digest, f, fmt.Sprintf("it has %d bytes, not %d", size, c.Size))
}

// ofChunk says of a blob what is wrong with its chunk.
func ofChunk(digest Digest, err error) error {
	miss, ok := errors.AsType[*MissError](err)
	if !ok {
		return fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	return &MissError{What: "blob " + digest.Short(), Reason: "chunk of it: " + err.Error(), Err: miss.Err}
}

// Size implements Blob.
func (b *chunkedBlob) Size() int64 { return b.list.size }

// Close implements Blob.
func (b *chunkedBlob) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.shrink(0)
	return nil
}

// ReadAt implements io.ReaderAt.
func (b *chunkedBlob) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("blob %s: offset %d", b.digest.Short(), off)
	}
	i := sort.Search(len(b.starts), func(i int) bool { return b.starts[i] > off }) - 1
	for ; n < len(p) && i < len(b.starts); i++ {
		k, err := b.readChunk(i, p[n:], off+int64(n)-b.starts[i])
		n += k
		if err != nil {
			return n, ofChunk(b.digest, err)
		}
		if off+int64(n) >= b.list.size {
			break
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readChunk reads what of p a chunk has from off on.
func (b *chunkedBlob) readChunk(i int, p []byte, off int64) (int, error) {
	left := b.list.chunks[i].Size - off
	if left <= 0 {
		return 0, nil
	}
	c, err := b.acquire(i)
	if err != nil {
		return 0, err
	}
	defer b.release(c)
	p = p[:min(int64(len(p)), left)]
	n, err := c.file.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // someone cut it short
	}
	return n, err
}

// acquire opens a chunk, or finds it open.
func (b *chunkedBlob) acquire(i int) (*openChunk, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	at := slices.IndexFunc(b.open, func(c *openChunk) bool { return c.number == i })
	var c *openChunk
	if at >= 0 {
		c = b.open[at]
		b.open = slices.Delete(b.open, at, at+1)
	} else {
		f, err := b.d.open(b.list.chunks[i].Digest)
		if err != nil {
			return nil, err
		}
		c = &openChunk{number: i, file: f}
	}
	c.users++
	b.open = append(b.open, c)
	return c, nil
}

func (b *chunkedBlob) release(c *openChunk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.users--
	if b.closed {
		b.shrink(0)
	} else {
		b.shrink(openChunks)
	}
}

// shrink closes files that are not being read, the one used longest ago first, until no
// more than n are left.
func (b *chunkedBlob) shrink(n int) {
	for i := 0; i < len(b.open) && len(b.open) > n; {
		if c := b.open[i]; c.users == 0 {
			c.file.Close()
			b.open = slices.Delete(b.open, i, i+1)
			continue
		}
		i++
	}
}

// verifyChunks hashes the chunks of a blob and all of it.
func (d *Dir) verifyChunks(digest Digest) error {
	l, err := d.chunksOf(digest)
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, c := range l.chunks {
		if err := d.verifyChunk(c, h); err != nil {
			return ofChunk(digest, err)
		}
	}
	if sumOf(h) != digest {
		d.dropList(digest)
		return &MissError{What: "blob " + digest.Short(), Reason: "its chunks make another", Err: ErrCorrupt}
	}
	return nil
}

// verifyChunk verifies one chunk and writes it to whole.
func (d *Dir) verifyChunk(c Output, whole io.Writer) error {
	f, err := d.open(c.Digest)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	switch _, err := hashInto(context.Background(), f, io.MultiWriter(h, whole)); {
	case disk.IsDamage(err):
		return d.badBlob(c.Digest, f, err.Error())
	case err == nil && sumOf(h) != c.Digest:
		return d.badBlob(c.Digest, f, "its bytes have another digest")
	default:
		return err
	}
}
