//go:build unix

package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskRoom returns the bytes that may still be written where path is or will be, and those
// of the whole disk; 0 if that is not known.
func diskRoom(path string) (free, total int64) {
	for {
		var s unix.Statfs_t
		if err := unix.Statfs(path, &s); err == nil {
			block := int64(s.Bsize) //nolint:unconvert // its type is another on other systems
			return int64(s.Bavail) * block, int64(s.Blocks) * block
		}
		parent := filepath.Dir(path)
		if parent == path {
			return 0, 0
		}
		path = parent
	}
}
