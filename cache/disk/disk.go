// Package disk makes the file-system calls of a store, each by one method, so that a
// test can make any of them fail, refuse a kind of call that a file system lacks, or
// stop at one as a killed process does.
//
// It knows what differs between operating systems, and not what a file is for. Start
// with Disk. Package cachetest has a Disk with faults.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// An Op is a kind of call.
type Op string

// The kinds of calls. Those on an open file have the file's path.
const (
	Open      Op = "open"   // for reading
	Create    Op = "create" // or for writing what is there
	Read      Op = "read"
	Write     Op = "write"
	Truncate  Op = "truncate"
	Sync      Op = "sync"
	Close     Op = "close"
	Lock      Op = "lock"
	Stat      Op = "stat"
	ReadDir   Op = "readdir"
	MkdirAll  Op = "mkdir"
	Rename    Op = "rename"
	Link      Op = "link"
	Reflink   Op = "reflink"
	Remove    Op = "remove"
	RemoveAll Op = "removeall"
	Chmod     Op = "chmod"
	Chtimes   Op = "chtimes"
	SyncDir   Op = "syncdir"
)

// A Call is one call that is about to be made.
type Call struct {
	Op   Op
	Path string
	To   string // the new name, of Rename, Link and Reflink
	Size int    // bytes, of Read and Write
}

// A Disk makes calls. The zero value makes them as they are. It is safe for
// concurrent use if Before is.
type Disk struct {
	// Before, if set, is asked before each call. An error that it returns is the
	// error of the call, which is then not made; but Close always closes, and a
	// Write first writes as many bytes as a method Torn() int of the error says.
	Before func(Call) error

	// Tick is what times in stamps are rounded down to, as by a file system that
	// keeps whole seconds; 0 leaves them.
	Tick time.Duration
}

// before returns the error of a call that is not to be made.
func (d *Disk) before(op Op, path, to string) error {
	if d.Before == nil {
		return nil
	}
	return d.ask(Call{Op: op, Path: path, To: to})
}

func (d *Disk) ask(c Call) error {
	if err := d.Before(c); err != nil {
		return &fs.PathError{Op: string(c.Op), Path: c.Path, Err: err}
	}
	return nil
}

// Open opens a file for reading.
func (d *Disk) Open(path string) (*File, error) {
	if err := d.before(Open, path, ""); err != nil {
		return nil, err
	}
	return d.file(os.Open(path))
}

// OpenFile opens a file with os flags, and perm if it makes it.
func (d *Disk) OpenFile(path string, flag int, perm fs.FileMode) (*File, error) {
	if err := d.before(Create, path, ""); err != nil {
		return nil, err
	}
	return d.file(os.OpenFile(path, flag, perm))
}

func (d *Disk) file(f *os.File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{f, d}, nil
}

// Stat returns what a file system says of the file at path, or at the end of its links.
func (d *Disk) Stat(path string) (fs.FileInfo, error) {
	if err := d.before(Stat, path, ""); err != nil {
		return nil, err
	}
	return os.Stat(path)
}

// Lstat is Stat of a link itself.
func (d *Disk) Lstat(path string) (fs.FileInfo, error) {
	if err := d.before(Stat, path, ""); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// StampAt returns the stamp of the regular file at path, or at the end of its links.
func (d *Disk) StampAt(path string) (Stamp, error) {
	if err := d.before(Stat, path, ""); err != nil {
		return Stamp{}, err
	}
	s, err := stampAt(path)
	return s.round(d.Tick), err
}

// ReadDir returns the entries of a folder by name.
func (d *Disk) ReadDir(path string) ([]fs.DirEntry, error) {
	if err := d.before(ReadDir, path, ""); err != nil {
		return nil, err
	}
	return os.ReadDir(path)
}

// MkdirAll makes a folder and those above it.
func (d *Disk) MkdirAll(path string, perm fs.FileMode) error {
	if err := d.before(MkdirAll, path, ""); err != nil {
		return err
	}
	return os.MkdirAll(path, perm)
}

// Rename renames a file, over another if there is one, even a read-only one.
func (d *Disk) Rename(from, to string) error {
	if err := d.before(Rename, from, to); err != nil {
		return err
	}
	return replace(from, to)
}

// Link gives a file a second name.
func (d *Disk) Link(from, to string) error {
	if err := d.before(Link, from, to); err != nil {
		return err
	}
	return os.Link(from, to)
}

// Remove deletes a file or an empty folder.
func (d *Disk) Remove(path string) error {
	if err := d.before(Remove, path, ""); err != nil {
		return err
	}
	return os.Remove(path)
}

// RemoveAll deletes a folder and all in it, if it is there.
func (d *Disk) RemoveAll(path string) error {
	if err := d.before(RemoveAll, path, ""); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Chmod sets the permissions of a file.
func (d *Disk) Chmod(path string, mode fs.FileMode) error {
	if err := d.before(Chmod, path, ""); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// Chtimes sets the time of a file's last change.
func (d *Disk) Chtimes(path string, modified time.Time) error {
	if err := d.before(Chtimes, path, ""); err != nil {
		return err
	}
	return os.Chtimes(path, time.Time{}, modified)
}

// SyncDir makes the names in a folder durable, where the file system can.
func (d *Disk) SyncDir(path string) error {
	if err := d.before(SyncDir, path, ""); err != nil {
		return err
	}
	return syncDir(path)
}

// IsUnsupported reports whether err says that this file system does not have what was
// asked for, and never will.
func IsUnsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || isUnsupported(err)
}
