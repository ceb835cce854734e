//go:build !linux

package main

import "os"

// smallDisk cannot mount a disk here; its script runs on Linux alone.
func smallDisk() { os.Exit(77) }
