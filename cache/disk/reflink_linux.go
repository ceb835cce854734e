package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reflink makes the file path with the bytes of src and without a copy of them, on
// file systems that can (Btrfs, XFS, bcachefs). After an error there is no file.
func reflink(src *os.File, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(f.Fd()), int(src.Fd()))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
