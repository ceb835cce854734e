package disk

import (
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// stampAt returns the stamp of the regular file at path, or at the end of its links.
func stampAt(path string) (Stamp, error) {
	f, err := os.Open(path)
	if err != nil {
		return Stamp{}, err
	}
	defer f.Close()
	return stampOf(f)
}

// stampOf returns the stamp of an open regular file.
func stampOf(f *os.File) (Stamp, error) {
	fi, err := f.Stat()
	if err != nil {
		return Stamp{}, err
	}
	if !fi.Mode().IsRegular() {
		return Stamp{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: errNotFile}
	}
	h := windows.Handle(f.Fd())
	var id windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &id); err != nil {
		return Stamp{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	var times struct {
		Created, Accessed, Written, Changed int64 // 100 ns since 1601
		Attributes, _                       uint32
	}
	err = windows.GetFileInformationByHandleEx(h, windows.FileBasicInfo, (*byte)(unsafe.Pointer(&times)), uint32(unsafe.Sizeof(times)))
	if err != nil {
		return Stamp{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return Stamp{
		Device:   uint64(id.VolumeSerialNumber),
		Inode:    uint64(id.FileIndexHigh)<<32 | uint64(id.FileIndexLow),
		Size:     fi.Size(),
		Modified: fi.ModTime().UnixNano(),
		Changed:  unixNano(times.Changed),
	}, nil
}

// unixNano turns Windows' time, 100 ns since 1601, into Unix time.
func unixNano(t int64) int64 {
	ft := windows.Filetime{LowDateTime: uint32(t), HighDateTime: uint32(t >> 32)}
	return ft.Nanoseconds()
}

// lockOffset is where a lock file is locked: beyond its text, which a lock would keep
// others from reading.
const lockOffset = 1 << 30

// tryLock locks a file for this open file alone, unless it is locked: then it returns
// false. The lock ends when the file is closed, and so with the process.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	at := windows.Overlapped{OffsetHigh: lockOffset}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return true, nil
}

// replace renames a file, over another if there is one. Windows does not replace a
// read-only file, so that one goes first.
func replace(from, to string) error {
	err := os.Rename(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if os.Remove(to) != nil {
		return err
	}
	return os.Rename(from, to)
}

// syncDir does nothing: Windows has no such call, and NTFS keeps names in its log.
func syncDir(string) error { return nil }

// IsReadOnly reports whether err says that this user may not write there.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, windows.ERROR_WRITE_PROTECT)
}

// IsFull reports whether err says that there is no room left.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// IsDamage reports whether err says that bytes cannot be read any more.
func IsDamage(err error) bool {
	return errors.Is(err, windows.ERROR_CRC) || errors.Is(err, windows.ERROR_SECTOR_NOT_FOUND)
}

// isUnsupported knows what file systems over a network say.
func isUnsupported(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED)
}

// Links returns 1: how many names a file has is not known without opening it.
func Links(fs.FileInfo) int { return 1 }
