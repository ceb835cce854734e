//go:build !linux

package cache_test

import (
	"os"
	"testing"
)

// withoutPrivilege calls do as a user whom modes of files bind.
func withoutPrivilege(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root passes by the modes of files; on Linux this test runs as root too")
	}
	do()
}
