package cache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	cdc "github.com/buildbarn/go-cdc"

	"bonsai/cache/disk"
)

const (
	// chunkAbove is the size from which on a blob is stored in chunks, in bytes: what
	// is larger are the weights of a model, of which another may have many as well.
	chunkAbove = 64 << 20

	// chunkParts says how small chunks are: of at least chunkAbove/chunkParts bytes,
	// and less than twice that. Fewer would share less, more would take longer.
	chunkParts = 32

	// chunkHorizon is how far is looked for the best place to cut, in least sizes.
	chunkHorizon = 2
)

// chunkHead begins the list of the chunks of a blob.
const chunkHead = "bonsai chunks 1"

// A chunkList says which chunks a blob consists of. It is a file in listsDir under the
// digest of the blob; the chunks are blobs of their own.
//
// Its text is chunkHead, the size of the blob, digest and size of each chunk in order,
// and the digest of all that, a line each.
type chunkList struct {
	size   int64 // bytes of the whole
	chunks []Output
}

func (l *chunkList) encode() []byte {
	b := fmt.Appendf(nil, "%s\nsize %d\n", chunkHead, l.size)
	for _, c := range l.chunks {
		b = fmt.Appendf(b, "%s %d\n", c.Digest, c.Size)
	}
	return fmt.Appendf(b, "end %s\n", DigestOf(b))
}

// errLaterList says that a list is whole and of a later bonsai.
var errLaterList = errors.New("its list of chunks is of a later bonsai")

func decodeChunks(b []byte) (*chunkList, error) {
	const tail = len("end ") + 2*len(Digest{}) + len("\n")
	if len(b) < tail || string(b[len(b)-tail:]) != "end "+DigestOf(b[:len(b)-tail]).String()+"\n" {
		return nil, errors.New("its list of chunks is damaged")
	}
	var l chunkList
	body := string(bytes.TrimSuffix(b[:len(b)-tail], []byte("\n")))
	head, rest, _ := strings.Cut(body, "\n")
	size, rest, _ := strings.Cut(rest, "\n")
	if head != chunkHead {
		return nil, errLaterList
	}
	if _, err := fmt.Sscanf(size, "size %d", &l.size); err != nil {
		return nil, fmt.Errorf("its list of chunks begins with %.40q", size)
	}
	left := l.size
	for line := range strings.SplitSeq(rest, "\n") {
		name, n, _ := strings.Cut(line, " ")
		digest, err := ParseDigest(name)
		size, err2 := strconv.ParseInt(n, 10, 64)
		if err := errors.Join(err, err2); err != nil || size <= 0 {
			return nil, fmt.Errorf("its list of chunks has the line %.90q", line)
		}
		l.chunks = append(l.chunks, Output{Digest: digest, Size: size})
		left -= size
	}
	if left != 0 {
		return nil, fmt.Errorf("its chunks have %d bytes, not %d", l.size-left, l.size)
	}
	return &l, nil
}

func (d *Dir) listPath(digest Digest) string { return d.shard(listsDir, digest.String()) }

// chunksOf returns the list of the chunks of a blob: an ErrMiss if there is none. A
// damaged one is moved away.
func (d *Dir) chunksOf(digest Digest) (*chunkList, error) {
	f, err := d.disk.Open(d.listPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noBlob(digest)
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil && !disk.IsDamage(err) {
		return nil, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	l, err := decodeChunks(b)
	if errors.Is(err, errLaterList) {
		return nil, &MissError{What: "blob " + digest.Short(), Reason: err.Error()}
	}
	if err != nil {
		return nil, d.badBlob(digest, f, err.Error())
	}
	return l, nil
}

// peekChunks returns the different chunks that a list names, without any effect on it.
func (d *Dir) peekChunks(path string) ([]Digest, error) {
	b, err := d.readFile(path)
	if err != nil {
		return nil, err
	}
	l, err := decodeChunks(b)
	if err != nil {
		return nil, err
	}
	seen := make(map[Digest]bool, len(l.chunks))
	var chunks []Digest
	for _, c := range l.chunks {
		if !seen[c.Digest] {
			seen[c.Digest] = true
			chunks = append(chunks, c.Digest)
		}
	}
	return chunks, nil
}

// renewAll renews a blob and its chunks, as storing it once more does.
func (d *Dir) renewAll(digest Digest) bool {
	path, ok := d.renewBlob(digest)
	if !ok || path != d.listPath(digest) {
		return ok
	}
	chunks, err := d.peekChunks(path)
	for _, c := range chunks {
		ok = ok && d.renew(d.blobPath(c))
	}
	return ok && err == nil
}

// dropList moves the list of a blob away, and reports whether there was one.
func (d *Dir) dropList(digest Digest) bool {
	f, err := d.disk.Open(d.listPath(digest))
	if err != nil {
		return false
	}
	defer f.Close()
	d.quarantine(f)
	return true
}

// A chunkWriter stores what is written to it in chunks.
type chunkWriter struct {
	d    *Dir
	to   *io.PipeWriter
	done chan struct{}

	// Complete when done is closed.
	list    chunkList
	folders map[string]bool // with names of chunks that may not be durable
	err     error
}

func (d *Dir) newChunkWriter() *chunkWriter {
	r, w := io.Pipe()
	c := &chunkWriter{d: d, to: w, done: make(chan struct{}), folders: make(map[string]bool)}
	go func() {
		defer close(c.done)
		c.err = c.cut(r)
		r.CloseWithError(c.err)
	}()
	return c
}

// cut stores all chunks of r.
func (c *chunkWriter) cut(r io.Reader) error {
	least := max(int(c.d.chunkAbove/chunkParts), 256)
	cutter := cdc.NewRepMaxContentDefinedChunker(&cdc.FastContentDefinedChunkerGearTable, least, chunkHorizon*least)
	chunks := cutter.NewChunkReader(bufio.NewReaderSize(r, cutter.GetMaximumPeekSizeBytes()))
	for {
		p, err := chunks.ReadNextChunk()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := Output{Digest: DigestOf(p), Size: int64(len(p))}
		path := c.d.blobPath(out.Digest)
		if err := c.d.storeChunk(p, out, path); err != nil {
			return err
		}
		c.folders[filepath.Dir(path)] = true
		c.list.chunks = append(c.list.chunks, out)
		c.list.size += out.Size
	}
}

// storeChunk stores a blob that is in memory, without a write if it is there. Its name is
// not durable.
func (d *Dir) storeChunk(p []byte, out Output, path string) error {
	if size, err := d.statFile(out.Digest); err == nil && size == out.Size && d.renew(path) {
		return nil
	}
	f, err := d.temp()
	if err != nil {
		return err
	}
	if _, err := f.Write(p); err != nil {
		return errors.Join(d.writeError(err), d.discard(f))
	}
	return d.name(f, path, true)
}

// Write implements io.Writer. The error of a chunk comes with a later call.
func (c *chunkWriter) Write(p []byte) (int, error) { return c.to.Write(p) }

// finish waits until all chunks are stored, durably.
func (c *chunkWriter) finish() error {
	_ = c.to.Close() // a pipe's does not fail
	<-c.done
	if c.err != nil {
		return c.err
	}
	for folder := range c.folders {
		if err := c.d.disk.SyncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the work. Chunks that are stored stay until a gc finds that nothing names
// them: others may count on them by now.
func (c *chunkWriter) stop() {
	c.to.CloseWithError(errFinished)
	<-c.done
}
