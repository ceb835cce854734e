package safetensors

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/exp/mmap"
)

// OpenFile maps the file at path and opens it. Close it after use.
//
// Errors are those of Open, and of opening a file.
func OpenFile(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := Open(mapped{m, path}, int64(m.Len()), path)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	f.close = m.Close
	return f, nil
}

// OpenInput opens an op's input, mapped if it is a whole file on disk. name is the
// file's name in errors; empty means the name of the file on disk.
func OpenInput(r *io.SectionReader, name string) (*File, error) {
	outer, offset, size := r.Outer()
	file, ok := outer.(*os.File)
	if !ok || !isWhole(file, offset, size) {
		return Open(r, r.Size(), name)
	}
	f, err := OpenFile(file.Name())
	if err != nil {
		return nil, err
	}
	if name != "" {
		f.name = name
	}
	return f, nil
}

// isWhole reports whether the section is all of the file that its name still names.
func isWhole(file *os.File, offset, size int64) bool {
	open, err := file.Stat()
	if err != nil || !open.Mode().IsRegular() || offset != 0 || size != open.Size() {
		return false
	}
	named, err := os.Stat(file.Name())
	return err == nil && os.SameFile(open, named)
}

// A mapped reads from a mapped file. Where the file was cut short after it was mapped,
// its pages fault; that is made an error here, because a program cannot survive it
// elsewhere.
type mapped struct {
	m    *mmap.ReaderAt
	path string
}

// ReadAt implements io.ReaderAt.
func (m mapped) ReadAt(p []byte, off int64) (n int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			n, err = 0, fmt.Errorf("%s: changed while it was read: %v", m.path, fault)
		}
	}()
	return m.m.ReadAt(p, off)
}
