package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cache/cachetest"
)

// A gcWorld is a store in which a gc must keep two of its artifacts: one is pinned, one
// was used by a build that runs.
type gcWorld struct {
	pinned, used, shared, other kept
	template                    string
}

func newGCWorld(t *testing.T) *gcWorld {
	t.Helper()
	w := &gcWorld{
		pinned: kept{"pinned", 2 * kib, 1, 9 * day}, used: kept{"used", 3 * kib, 1, 9 * day},
		shared: kept{"shared", 4 * kib, 1, 9 * day}, other: kept{"other", 5 * kib, 1, 8 * day},
	}
	d := openDir(t)
	keep(t, d, w.pinned, w.used, w.shared, w.other)
	second := cache.KeyOf([]byte("shares"))
	if err := d.Record(second, cache.Result{Outputs: []cache.Output{{Digest: w.shared.digest(), Size: 4 * kib}}}); err != nil {
		t.Fatal(err)
	}
	setTime(t, resultPath(d, second), clock().Add(-9*day))
	if err := d.Pin(cache.Pin{Name: "release", Keys: []cache.Key{w.pinned.key()}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Keep(cache.Logs, "old", []byte("text")); err != nil {
		t.Fatal(err)
	}
	setTime(t, filepath.Join(d.Path(), "logs", "old"), clock().Add(-200*day))
	orphan := put(t, d, sample(kib, "orphan"))
	setTime(t, blobPath(d, orphan.Digest), clock().Add(-9*day).Truncate(time.Second))
	w.template = d.Path()
	return w
}

// copy returns a copy of the store, with a build that runs and has used one artifact.
func (w *gcWorld) copy(t *testing.T) (path string, release func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cache")
	if err := os.CopyFS(path, os.DirFS(w.template)); err != nil {
		t.Fatal(err)
	}
	for _, name := range tree(t, w.template) {
		fi, err := os.Stat(filepath.Join(w.template, name))
		if err != nil {
			t.Fatal(err)
		}
		setTime(t, filepath.Join(path, name), fi.ModTime())
	}
	build := reopen(t, path, clock)
	release, err := build.Hold("bonsai build")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build.Lookup(w.used.key()); err != nil {
		t.Fatal(err)
	}
	return path, release
}

// check fails unless all that must be kept is there, and what went is a tombstone. If
// strict is not set a blob may have gone before its tombstone was written, on a full disk,
// or without one, if its result could not be read: then the next build says so.
func (w *gcWorld) check(t *testing.T, path string, strict bool) {
	t.Helper()
	d := reopen(t, path, clock)
	for _, a := range []kept{w.pinned, w.used} {
		wantBlob(t, d, a.bytes())
		if r, err := d.Lookup(a.key()); err != nil || !r.Evicted.IsZero() {
			t.Errorf("%s: %+v, %v; want it kept", a.name, r, err)
		}
	}
	s, err := d.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Results) != 5 || len(s.Pins) != 1 {
		t.Errorf("%d results and %d pins are left, want 5 and 1", len(s.Results), len(s.Pins))
	}
	for _, r := range s.Results {
		if strict && slices.Contains(r.There, false) && r.Evicted.IsZero() {
			t.Errorf("the blob of %q went, and its result does not say so", r.Step)
		}
	}
	c, err := d.GC(t.Context(), cache.Limits{Max: 1})
	if err != nil {
		t.Fatalf("the next gc: %v", err)
	}
	if c.After > 12*kib {
		t.Errorf("the next gc leaves %d bytes", c.After)
	}
	v, err := d.VerifyAll(t.Context(), nil)
	if err != nil || len(v.Damaged) > 0 || v.Blobs != 2 {
		t.Errorf("afterwards %+v, %v; want the two blobs that are kept", v, err)
	}
	for _, name := range tree(t, filepath.Join(reopen(t, path, later(30*time.Hour)).Path(), "tmp")) {
		t.Errorf("%s is left", name)
	}
}

// A gc that is killed, or whose machine loses power, at any call to the file system has
// lost nothing that it must keep, and the next one goes on.
func TestGCKilledAtEachCall(t *testing.T) {
	w := newGCWorld(t)
	step := 7
	if testing.Short() {
		step = 17
	}
	n, killed := 1, true
	for ; killed && !t.Failed(); n += step {
		path, release := w.copy(t)
		f := cachetest.NewFaulty(t)
		f.CrashAt(n)
		d, err := cache.OpenWith(path, clock, cache.Options{Disk: f.Disk()})
		if err == nil {
			_, err = d.GC(t.Context(), cache.Limits{Max: 1})
		}
		hit, struck := f.Hit()
		killed = struck
		if err != nil && !cachetest.IsKilled(err) {
			t.Errorf("killed at %v: %v", hit, err)
		}
		if n%2 == 0 {
			f.LosePower()
		}
		w.check(t, path, true)
		if t.Failed() {
			t.Logf("killed at call %d, %v: %v", n, hit, err)
		}
		release()
	}
	if n < 60 {
		t.Errorf("only %d calls", n)
	}
}

// Each call fails in turn, once: gc says so or goes on, and keeps what it must.
func TestGCWithAFailureAtEachCall(t *testing.T) {
	w := newGCWorld(t)
	step := 13
	if testing.Short() {
		step = 29
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
		for n, failed := 1, true; failed && !t.Failed(); n += step {
			path, release := w.copy(t)
			f := cachetest.NewFaulty(t)
			f.FailAt(n, errno)
			d, err := cache.OpenWith(path, clock, cache.Options{Disk: f.Disk()})
			if err == nil {
				_, err = d.GC(t.Context(), cache.Limits{Max: 1})
			}
			hit, struck := f.Hit()
			failed = struck
			if err != nil && !errors.Is(err, errno) {
				t.Errorf("%v fails with %v: the error is %v", hit, errno, err)
			}
			w.check(t, path, false)
			if t.Failed() {
				t.Logf("call %d, %v, fails with %v: %v", n, hit, errno, err)
			}
			release()
		}
	}
}

// On a disk that is full nothing can be written, and a gc makes room all the same.
func TestGCOnAFullDisk(t *testing.T) {
	w := newGCWorld(t)
	path, release := w.copy(t)
	defer release()
	f := cachetest.NewFaulty(t)
	d, err := cache.OpenWith(path, clock, cache.Options{Disk: f.Disk()})
	if err != nil {
		t.Fatal(err)
	}
	f.Refuse("create", syscall.ENOSPC)
	f.Refuse("write", syscall.ENOSPC)
	c, err := d.GC(t.Context(), cache.Limits{Max: 1})
	if err == nil || !errors.Is(err, cache.ErrFull) {
		t.Errorf("GC = %+v, %v; want it to say at last that the disk stays full", c, err)
	}
	if n := strings.Count(strings.Join(tree(t, filepath.Join(path, "blobs")), " "), "/"); n > 4 {
		t.Errorf("%d blobs are left: no room was made", n)
	}
	w.check(t, path, false)
}
