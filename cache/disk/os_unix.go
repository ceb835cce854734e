//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stampAt returns the stamp of the regular file at path, or at the end of its links.
func stampAt(path string) (Stamp, error) {
	return stampFrom(path, func(st *unix.Stat_t) error { return unix.Stat(path, st) })
}

// stampOf returns the stamp of an open regular file.
func stampOf(f *os.File) (Stamp, error) {
	return stampFrom(f.Name(), func(st *unix.Stat_t) error { return unix.Fstat(int(f.Fd()), st) })
}

func stampFrom(path string, stat func(*unix.Stat_t) error) (Stamp, error) {
	var st unix.Stat_t
	if err := retry(func() error { return stat(&st) }); err != nil {
		return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: errNotFile}
	}
	return Stamp{
		Device:   uint64(st.Dev), //nolint:unconvert // an int32 on macOS
		Inode:    st.Ino,
		Size:     st.Size,
		Modified: unix.TimespecToNsec(st.Mtim),
		Changed:  unix.TimespecToNsec(st.Ctim),
	}, nil
}

// tryLock locks a file for this open file alone, unless it is locked: then it returns
// false. The lock ends when the file is closed, and so with the process.
func tryLock(f *os.File) (bool, error) {
	err := retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return true, nil
}

// retry repeats a system call that a signal interrupts: Go's scheduler sends some.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// replace renames a file, over another if there is one.
func replace(from, to string) error { return os.Rename(from, to) }

// syncDir makes the names in a folder durable, where the file system can.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// IsReadOnly reports whether err says that this user may not write there.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)
}

// IsFull reports whether err says that there is no room left.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// IsDamage reports whether err says that bytes cannot be read any more.
func IsDamage(err error) bool { return errors.Is(err, unix.EIO) }

// isUnsupported knows what file systems over a network say in place of ENOTSUP.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EPERM)
}

// Links returns how many names a file has.
func Links(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}
