package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// reflink makes the file path with the bytes of src and without a copy of them, on
// APFS. After an error there is no file.
func reflink(src *os.File, path string) error {
	if err := unix.Clonefile(src.Name(), path, 0); err != nil {
		return err
	}
	// The clone is read-only as the blob is, and need not be.
	return os.Chmod(path, 0o644)
}
