package dataset

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// A file is the text in a file: decompressed, without a byte order mark.
type file struct {
	*bufio.Reader
	in   *counter
	size int64
}

// A counter counts the bytes read from a file.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// decompress opens a file, which its first bytes tell to be gzip's, bzip2's or plain.
func decompress(in *io.SectionReader) (*file, error) {
	f := &file{in: &counter{r: in}, size: in.Size()}
	raw := bufio.NewReaderSize(f.in, 1<<16)
	f.Reader = raw
	head, err := raw.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(raw)
		if err != nil {
			return nil, err
		}
		f.Reader = bufio.NewReaderSize(z, 1<<16)
	case bytes.HasPrefix(head, []byte("BZh")):
		f.Reader = bufio.NewReaderSize(bzip2.NewReader(raw), 1<<16)
	case bytes.HasPrefix(head, []byte("PAR1")):
		return nil, fmt.Errorf("a Parquet file, which is of kind %s", Parquet)
	}
	if mark, _ := f.Peek(3); string(mark) == "\ufeff" {
		if _, err := f.Discard(3); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// done returns how much of the file has been read, in [0, 1].
func (f *file) done() float64 { return float64(f.in.n) / float64(max(f.size, 1)) }
