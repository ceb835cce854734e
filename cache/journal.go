package cache

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
)

const (
	// minCompact is how many lines a journal has at least when it is rewritten: a
	// shorter one is read in less than a millisecond.
	minCompact = 4096

	// maxEntries bounds a journal: beyond it, rewriting drops the older half. Half of it is
	// twice the largest recipe that is to be fast. That many lines are read in some 200 ms,
	// those of a recipe of 10,000 actions in 5 ms.
	maxEntries = 400_000
)

// A journal is a map on disk that any number of processes add to without a lock, each
// by appending a line. The last line of a name counts.
//
// A line is a line feed, the CRC-32C of its text in hex, a space, and the text; it is
// written by one call. Because the line feed comes first, a line that a crash cut
// short spoils no other: its checksum fails and it is skipped. What a journal holds is
// only remembered, never relied upon, so nothing is synced, and a line that another
// process appends while the file is rewritten may be lost.
type journal[K comparable, V any] struct {
	d      *Dir
	path   string
	encode func(K, V) string
	decode func(text string) (K, V, bool)

	mu      sync.Mutex
	entries map[K]entry[V]
	file    fs.FileInfo // what was read, nil before
	read    int64       // bytes of it that need no second look
	lines   int         // good lines read
}

// An entry is a value and the number of its line.
type entry[V any] struct {
	value V
	line  int
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// get returns the value of k. If fresh says no to what is known, it first reads what
// others appended; a file that cannot be read is an empty one.
func (j *journal[K, V]) get(k K, fresh func(V, bool) bool) (V, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.entries[k]
	if !fresh(e.value, ok) {
		_ = j.refresh()
		e, ok = j.entries[k]
	}
	return e.value, ok
}

// all returns everything, in a map of its own.
func (j *journal[K, V]) all() map[K]V {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.refresh() // a file that cannot be read is an empty one
	values := make(map[K]V, len(j.entries))
	for k, e := range j.entries {
		values[k] = e.value
	}
	return values
}

// set gives k a value in this process and, if keep is set, on disk.
func (j *journal[K, V]) set(k K, v V, keep bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.learn(k, v)
	if !keep {
		return nil
	}
	if err := j.append(j.encode(k, v)); err != nil {
		return err
	}
	if j.lines > minCompact && j.lines > 2*len(j.entries) || len(j.entries) > maxEntries {
		return j.compact()
	}
	return nil
}

func (j *journal[K, V]) learn(k K, v V) {
	if j.entries == nil {
		j.entries = make(map[K]entry[V])
	}
	j.entries[k] = entry[V]{v, j.lines}
}

// refresh reads what was appended since the last time, by whomever. A journal that
// was replaced is read from its start.
func (j *journal[K, V]) refresh() error {
	fi, err := j.d.disk.Stat(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if j.file != nil && os.SameFile(j.file, fi) && j.file.Size() == fi.Size() {
		return nil
	}
	f, err := j.d.disk.Open(j.path)
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

// parse takes the lines of b. A bad one at the end is looked at again next time,
// since its writer may not be done. A good one that cannot be decoded is one of a
// later bonsai.
func (j *journal[K, V]) parse(b []byte) {
	for len(b) > 0 {
		line, rest, more := bytes.Cut(b, []byte("\n"))
		text, ok := checkLine(line)
		if !ok && !more {
			return
		}
		if ok {
			j.lines++
			if k, v, ok := j.decode(text); ok {
				j.learn(k, v)
			}
		}
		j.read += int64(len(b) - len(rest))
		b = rest
	}
}

// append adds one line.
func (j *journal[K, V]) append(text string) error {
	f, err := j.d.disk.OpenFile(j.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(appendLine(nil, text))
	return errors.Join(err, f.Close())
}

// compact rewrites the file without the lines that no longer count, unless another
// process does so now.
func (j *journal[K, V]) compact() error {
	f, err := j.d.disk.OpenFile(j.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if ok, err := f.TryLock(); !ok || !j.d.isAt(f, j.path) {
		return err
	}
	if err := j.refresh(); err != nil {
		return err
	}
	keys := make([]K, 0, len(j.entries))
	for k := range j.entries {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(j.entries[a].line, j.entries[b].line) })
	if len(keys) > maxEntries {
		keys = keys[len(keys)-maxEntries/2:]
	}
	var b []byte
	for _, k := range keys {
		b = appendLine(b, j.encode(k, j.entries[k].value))
	}
	j.entries, j.file = nil, nil
	return j.d.writeFile(j.path, b)
}

func appendLine(b []byte, text string) []byte {
	return fmt.Appendf(b, "\n%08x %s", crc32.Checksum([]byte(text), castagnoli), text)
}

// checkLine returns the text of a line if its checksum is right.
func checkLine(line []byte) (text string, ok bool) {
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
