package main

import (
	"os"

	"golang.org/x/sys/windows"

	"bonsai/cmd/bonsai/view"
)

// terminal returns how many columns the terminal that f is has, and whether it is one
// that heeds control sequences, which it is asked to.
func terminal(f *os.File) (width int, is bool) {
	h := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil ||
		windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return view.Unlimited, false
	}
	var screen windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(h, &screen) != nil {
		return 80, true
	}
	return int(screen.Window.Right-screen.Window.Left) + 1, true
}
