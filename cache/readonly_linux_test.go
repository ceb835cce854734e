package cache_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutPrivilege calls do without the capabilities that let root pass by the modes
// of files. They are a thread's, so do must not start goroutines that touch files.
func withoutPrivilege(t *testing.T, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var old [2]unix.CapUserData
	if err := unix.Capget(&head, &old[0]); err != nil {
		t.Fatal(err)
	}
	less := old
	less[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&head, &less[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&head, &old[0]); err != nil {
			t.Error(err)
		}
	}()
	do()
}
