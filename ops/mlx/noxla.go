//go:build !xla || !cgo

package mlx

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
)

func openXLA(spec string) (backends.Backend, error) {
	return nil, fmt.Errorf("%s is not part of this build, which was made without cgo and the build tag xla", spec)
}
