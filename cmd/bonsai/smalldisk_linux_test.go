package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inNamespace is set where smalldisk runs in namespaces of its own.
const inNamespace = "BONSAI_TEST_IN_NAMESPACE"

// noMount is the exit status of smalldisk where nobody may mount.
const noMount = 77

// smallDisk is the command smalldisk DIR SIZE COMMAND…: it runs the command with a disk
// of that size on DIR, which nobody else sees.
func smallDisk() {
	dir, size, command := os.Args[1], os.Args[2], os.Args[3:]
	if os.Getenv(inNamespace) != "" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
			os.Exit(noMount)
		}
		os.Unsetenv(inNamespace)
		os.Exit(statusAfter(exec.Command(command[0], command[1:]...)))
	}
	self := exec.Command(os.Args[0], os.Args[1:]...)
	self.Env = append(os.Environ(), inNamespace+"=1")
	self.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	os.Exit(statusAfter(self))
}

// statusAfter runs a command on this process's standard files and returns its status.
func statusAfter(c *exec.Cmd) int {
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	exit, ran := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0
	case ran:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, err)
		return noMount
	}
}
