//go:build unix

package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeDisk returns the bytes that may still be written where path is or will be, 0 if
// that is not known.
func freeDisk(path string) int64 {
	for {
		var s unix.Statfs_t
		if err := unix.Statfs(path, &s); err == nil {
			return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // its type is another on other systems
		}
		parent := filepath.Dir(path)
		if parent == path {
			return 0
		}
		path = parent
	}
}
