package cache_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"bonsai/cache"
)

// A disk of 1 MiB, in a process that may mount one.
func TestFullDisk(t *testing.T) {
	cmd := child(t, "full", t.TempDir(), t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran || string(out) == "no mount\n" {
		t.Skipf("this machine lets nobody mount a small disk (%v); TestNoRoom runs with faults injected", err)
	}
	if err != nil || string(out) != "ok\n" {
		t.Errorf("the process on the full disk says %q, %v", out, err)
	}
}

// roleFull fills disks. args: a folder to mount a small disk on, a folder elsewhere.
func roleFull(args []string) {
	small, elsewhere := args[0], args[1]
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		fmt.Fprintln(os.Stdout, "no mount")
		return
	}
	must(fullCache(filepath.Join(small, "cache")))
	must(fullTarget(filepath.Join(elsewhere, "cache"), filepath.Join(small, "out")))
	fmt.Fprintln(os.Stdout, "ok")
}

// fullCache fills the disk that the cache is on.
func fullCache(path string) error {
	d, err := cache.OpenDir(path, clock)
	if err != nil {
		return err
	}
	k, small := cache.KeyOf(nil), sample(1000, "small")
	out, err := store(d, small)
	if err != nil {
		return err
	}
	if err := d.Record(k, cache.Result{Outputs: []cache.Output{out}}); err != nil {
		return err
	}
	_, err = store(d, sample(2<<20, "too big"))
	if !errors.Is(err, cache.ErrFull) || !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("storing 2 MiB: error %w, want an ErrFull", err)
	}
	// It left nothing, so there is room again.
	if _, err := store(d, sample(500<<10, "fits")); err != nil {
		return err
	}
	filler := filepath.Join(filepath.Dir(path), "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o666); !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("the filler: error %w", err)
	}
	if err := d.Record(k, cache.Result{Manifest: string(make([]byte, 64<<10))}); !errors.Is(err, cache.ErrFull) {
		return fmt.Errorf("recording: error %w, want an ErrFull", err)
	}
	r, err := d.Lookup(k)
	if err != nil || len(r.Outputs) != 1 || r.Outputs[0] != out {
		return fmt.Errorf("Lookup = %v, %w; want the result from before", r, err)
	}
	return os.RemoveAll(filepath.Dir(path) + "/filler")
}

// fullTarget exports to the full disk.
func fullTarget(path, target string) error {
	d, err := cache.OpenDir(path, clock)
	if err != nil {
		return err
	}
	out, err := store(d, sample(2<<20, "too big"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(target, 0o777); err != nil {
		return err
	}
	how, err := d.Export(out.Digest, filepath.Join(target, "model.gguf"))
	if !errors.Is(err, cache.ErrFull) {
		return fmt.Errorf("Export = %q, %w; want an ErrFull", how, err)
	}
	left, err := os.ReadDir(target)
	if err != nil || len(left) > 0 {
		return fmt.Errorf("Export left %v, %w", left, err)
	}
	return nil
}
