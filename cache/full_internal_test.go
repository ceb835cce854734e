//go:build unix

package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A fullFile fails one of its calls as a full disk does.
type fullFile struct {
	*os.File
	calls  *int // left before the failure
	failed *bool
}

func (f fullFile) fail(op string) error {
	if *f.calls--; *f.calls != 0 {
		return nil
	}
	*f.failed = true
	return &fs.PathError{Op: op, Path: f.Name(), Err: syscall.ENOSPC}
}

func (f fullFile) Write(p []byte) (int, error) {
	if err := f.fail("write"); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f fullFile) Sync() error { return errors.Join(f.fail("sync"), f.File.Sync()) }

func (f fullFile) Close() error { return errors.Join(f.File.Close(), f.fail("close")) }

// The disk is full at each of the calls that store a blob or record a result: the
// error says so and where, and nothing is left.
func TestNoRoom(t *testing.T) {
	big := make([]byte, 3*writeBuffer+5)
	acts := map[string]func(d *Dir) error{
		"blob": func(d *Dir) error {
			w, err := d.Create()
			if err != nil {
				return err
			}
			for p := big; len(p) > 0; p = p[min(len(p), 1000):] {
				if _, err := w.Write(p[:min(len(p), 1000)]); err != nil {
					return errors.Join(err, w.Abort())
				}
			}
			_, err = w.Commit()
			return err
		},
		"result": func(d *Dir) error { return d.Record(KeyOf(nil), sampleResult()) },
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			at := 0
			for failed := true; failed; {
				at++
				failed = noRoom(t, at, act)
			}
			if at < 4 {
				t.Errorf("only %d calls failed: nothing is tested", at-1)
			}
		})
	}
}

// noRoom lets the at-th call fail and reports whether there were so many.
func noRoom(t *testing.T, at int, act func(d *Dir) error) (failed bool) {
	t.Helper()
	d := openTestDir(t)
	d.openTemp = func(path string) (tempFile, error) {
		f, err := os.Create(path)
		return fullFile{f, &at, &failed}, err
	}
	err := act(d)
	if !failed {
		if err != nil {
			t.Errorf("without a failure: %v", err)
		}
		return false
	}
	if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "cache "+d.path+": the disk is full: ") {
		t.Errorf("error %v, want an ErrFull", err)
	}
	for _, folder := range []string{tempDir, blobsDir, resultsDir} {
		left, err := filepath.Glob(filepath.Join(d.path, folder, "*", "*"))
		more, err2 := filepath.Glob(filepath.Join(d.path, tempDir, "*"))
		if left = append(left, more...); len(left) > 0 || err != nil || err2 != nil {
			t.Errorf("left are %v", left)
		}
	}
	if _, err := d.Lookup(KeyOf(nil)); !errors.Is(err, ErrMiss) {
		t.Errorf("Lookup: %v, want an ErrMiss", err)
	}
	return true
}
