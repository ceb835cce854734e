// Package calm keeps packages that draw from asking the terminal for its colours when a
// command starts: bubbletea does so as it is initialized, in every command and for up to
// five seconds if the terminal does not answer. Colours of bonsai are the sixteen that a
// terminal's owner chose for a light or a dark background, so nobody needs to know.
//
// Packages are initialized in the order of their import paths where they do not depend on
// each other, so that this one comes before bubbletea. See engine/adr/0006.
package calm

import "github.com/charmbracelet/lipgloss"

// Settled is true once nobody has a reason to ask.
const Settled = true

var _ = settle()

func settle() bool {
	lipgloss.SetHasDarkBackground(true)
	return Settled
}
