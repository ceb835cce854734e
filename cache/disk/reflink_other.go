//go:build !linux && !darwin

package disk

import (
	"errors"
	"os"
)

// reflink is not possible here.
func reflink(*os.File, string) error { return errors.ErrUnsupported }
