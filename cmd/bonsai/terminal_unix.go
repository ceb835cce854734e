//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"

	"bonsai/cmd/bonsai/view"
)

// terminal returns how many columns the terminal that f is has, and whether it is one.
func terminal(f *os.File) (width int, is bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return view.Unlimited, false
	}
	if size.Col == 0 {
		return 80, true
	}
	return int(size.Col), true
}
