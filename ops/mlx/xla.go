//go:build xla && cgo

package mlx

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/xla"
)

// openXLA opens a PJRT plugin that is installed already: a build must not depend on what a download brings.
func openXLA(spec string) (backends.Backend, error) {
	xla.EnableAutoInstall(false)
	return backends.NewWithConfig(spec)
}
