package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
)

// A journal is a file of lines that any number of processes append to without a lock.
//
// A line is a line feed, the CRC-32C of its text in hex, a space, and the text; it is
// written by one call. Because the line feed comes first, a line that a crash cut
// short spoils no other: its checksum fails and it is skipped. What is lost with lost
// power is only remembered, never relied upon, so nothing is synced.
type journal struct {
	path string
	take func(text string) // gets each good line, in the order of the file

	mu    sync.Mutex
	file  fs.FileInfo // what was read, nil before
	read  int64       // bytes of it that need no second look
	lines int         // lines read
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// refresh reads what was appended since the last time, by whomever. A journal that
// was replaced is read from its start.
func (j *journal) refresh() error {
	fi, err := os.Stat(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if j.file != nil && os.SameFile(j.file, fi) && j.file.Size() == fi.Size() {
		return nil
	}
	f, err := os.Open(j.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err = f.Stat(); err != nil {
		return err
	}
	if j.file == nil || !os.SameFile(j.file, fi) || fi.Size() < j.read {
		j.read, j.lines = 0, 0
	}
	b, err := io.ReadAll(io.NewSectionReader(f, j.read, fi.Size()-j.read))
	if err != nil {
		return err
	}
	j.file = fi
	j.parse(b)
	return nil
}

// parse takes the lines of b. The last is looked at again next time if it is bad,
// since its writer may not be done.
func (j *journal) parse(b []byte) {
	for len(b) > 0 {
		line, rest, more := bytes.Cut(b, []byte("\n"))
		text, ok := decodeLine(line)
		if !ok && !more && len(line) > 0 {
			return
		}
		if ok {
			j.take(text)
			j.lines++
		}
		j.read += int64(len(b) - len(rest))
		b = rest
	}
}

// append adds one line.
func (j *journal) append(text string) error {
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(encodeLine(nil, text))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func encodeLine(b []byte, text string) []byte {
	return fmt.Appendf(b, "\n%08x %s", crc32.Checksum([]byte(text), castagnoli), text)
}

func decodeLine(line []byte) (text string, ok bool) {
	const head = len("01234567 ")
	if len(line) < head || line[head-1] != ' ' {
		return "", false
	}
	want, err := strconv.ParseUint(string(line[:head-1]), 16, 32)
	if err != nil || uint32(want) != crc32.Checksum(line[head:], castagnoli) {
		return "", false
	}
	return string(line[head:]), true
}
