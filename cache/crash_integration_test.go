//go:build integration

package cache_test

import (
	"fmt"
	"testing"
)

// All that TestKilledAtEachCall and TestEachCallFails take turns in.
func TestIntegrationEachCall(t *testing.T) {
	for _, power := range []bool{false, true} {
		t.Run(fmt.Sprint("power lost=", power), func(t *testing.T) {
			t.Parallel()
			everyCall(t, 1, func(n int) bool { return killedAt(t, n, power) })
		})
	}
	for _, errno := range failures() {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			everyCall(t, 1, func(n int) bool { return failsAt(t, n, errno) })
		})
	}
}
