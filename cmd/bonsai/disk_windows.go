package main

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// freeDisk returns the bytes that may still be written where path is or will be, 0 if
// that is not known.
func freeDisk(path string) int64 {
	for {
		var free uint64
		name, err := windows.UTF16PtrFromString(path)
		if err == nil && windows.GetDiskFreeSpaceEx(name, &free, nil, nil) == nil {
			return int64(free)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return 0
		}
		path = parent
	}
}
