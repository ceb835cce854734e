package main

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// diskRoom returns the bytes that may still be written where path is or will be, and those
// of the whole disk; 0 if that is not known.
func diskRoom(path string) (free, total int64) {
	for {
		var free, total uint64
		name, err := windows.UTF16PtrFromString(path)
		if err == nil && windows.GetDiskFreeSpaceEx(name, &free, &total, nil) == nil {
			return int64(free), int64(total)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return 0, 0
		}
		path = parent
	}
}
