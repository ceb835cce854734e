//go:build unix

package cache_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bonsai/cache"
	"bonsai/cache/cachetest"
	"bonsai/cache/disk"
)

// openOn opens the store at path on a disk with faults.
func openOn(t testing.TB, path string, f *cachetest.Faulty) *cache.Dir {
	t.Helper()
	d, err := cache.OpenWith(path, clock, cache.Options{Disk: f.Disk()})
	if err != nil {
		t.Fatalf("OpenWith: %v", err)
	}
	return d
}

// The disk is full at each of the calls that take room, while a blob is stored or a
// result recorded: the error says so and where, and nothing is left.
func TestNoRoom(t *testing.T) {
	acts := map[string]func(d *cache.Dir) error{
		"blob": func(d *cache.Dir) error {
			w, err := d.Create()
			if err != nil {
				return err
			}
			for p := sample(200_000, "big"); len(p) > 0; p = p[min(len(p), 1000):] {
				if _, err := w.Write(p[:min(len(p), 1000)]); err != nil {
					return errors.Join(err, w.Abort())
				}
			}
			_, err = w.Commit()
			return err
		},
		"result": func(d *cache.Dir) error { return d.Record(cache.KeyOf(nil), benchResult()) },
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			full, at := 0, 1
			for noRoom(t, at, act, &full) {
				at++
			}
			if full < 4 {
				t.Errorf("only %d calls were out of room: nothing is tested", full)
			}
		})
	}
}

// noRoom lets the at-th call fail if it takes room, counts it in full, and reports
// whether there were so many.
func noRoom(t *testing.T, at int, act func(d *cache.Dir) error, full *int) bool {
	t.Helper()
	broken := cachetest.NewFaulty(t)
	d := openOn(t, filepath.Join(t.TempDir(), "cache"), broken)
	broken.Reset()
	broken.FailAt(at, syscall.ENOSPC)
	err := act(d)
	hit, ok := broken.Hit()
	if !ok {
		if err != nil {
			t.Errorf("without a failure: %v", err)
		}
		return false
	}
	switch hit.Op {
	case disk.Create, disk.Write, disk.Sync, disk.Close, disk.MkdirAll, disk.Rename:
		*full++
	default:
		return true
	}
	if !errors.Is(err, cache.ErrFull) || !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "cache "+d.Path()+": the disk is full: ") {
		t.Errorf("%v: error %v, want an ErrFull", hit, err)
	}
	for _, name := range tree(t, d.Path()) {
		if name != "CACHEDIR.TAG" {
			t.Errorf("%v: %s is left", hit, name)
		}
	}
	return true
}
