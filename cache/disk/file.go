package disk

import (
	"errors"
	"io/fs"
	"os"
)

// A File is an open file of a Disk.
type File struct {
	file *os.File
	disk *Disk
}

// OS returns the file itself, for memory maps. It is closed with f.
func (f *File) OS() *os.File { return f.file }

// Name returns the path that f was opened with.
func (f *File) Name() string { return f.file.Name() }

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	if err := f.before(Read, len(p)); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.before(Read, len(p)); err != nil {
		return 0, err
	}
	return f.file.ReadAt(p, off)
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) {
	if err := f.before(Write, len(p)); err != nil {
		return f.torn(p, err), err
	}
	return f.file.Write(p)
}

// torn writes as much of p as is written before a call fails with err.
func (f *File) torn(p []byte, err error) int {
	var torn interface {
		error
		Torn() int
	}
	if !errors.As(err, &torn) {
		return 0
	}
	n, _ := f.file.Write(p[:min(torn.Torn(), len(p))])
	return n
}

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if err := f.before(Write, len(p)); err != nil {
		return 0, err
	}
	return f.file.WriteAt(p, off)
}

// Truncate sets the size of f in bytes.
func (f *File) Truncate(size int64) error {
	if err := f.before(Truncate, 0); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

// Sync makes what was written durable.
func (f *File) Sync() error {
	if err := f.before(Sync, 0); err != nil {
		return err
	}
	return f.file.Sync()
}

// Close closes f and lets go of its lock, also when it returns an error.
func (f *File) Close() error {
	err := f.before(Close, 0)
	if closeErr := f.file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Stat returns what the file system says of f.
func (f *File) Stat() (fs.FileInfo, error) {
	if err := f.before(Stat, 0); err != nil {
		return nil, err
	}
	return f.file.Stat()
}

// Stamp returns the stamp of f, which must be a regular file.
func (f *File) Stamp() (Stamp, error) {
	if err := f.before(Stat, 0); err != nil {
		return Stamp{}, err
	}
	s, err := stampOf(f.file)
	return s.round(f.disk.Tick), err
}

// TryLock locks f for this open file alone, unless it is locked: then it returns
// false. The lock ends when f is closed, and so with the process.
func (f *File) TryLock() (bool, error) {
	if err := f.before(Lock, 0); err != nil {
		return false, err
	}
	return tryLock(f.file)
}

// Reflink makes the file path with the bytes of f and without a copy of them, where
// the file system can. After an error there is no file.
func (f *File) Reflink(path string) error {
	if err := f.disk.before(Reflink, f.Name(), path); err != nil {
		return err
	}
	return reflink(f.file, path)
}

func (f *File) before(op Op, size int) error {
	if f.disk.Before == nil {
		return nil
	}
	return f.disk.ask(Call{Op: op, Path: f.Name(), Size: size})
}
