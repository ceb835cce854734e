//go:build !linux

package cache_test

// roleFull is not played here: TestFullDisk mounts a disk, which only Linux lets
// anyone do.
func roleFull([]string) {}
