//go:build unix

package cache_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cache/cachetest"
	"bonsai/cache/disk"
)

// poorDisks are file systems that lack something.
func poorDisks() map[string]map[disk.Op]error {
	return map[string]map[disk.Op]error{
		"no locks (NFS)":       {disk.Lock: syscall.ENOLCK},
		"no locks (SMB)":       {disk.Lock: syscall.ENOTSUP},
		"no locks (FUSE)":      {disk.Lock: syscall.ENOSYS},
		"no links (FAT)":       {disk.Link: syscall.EPERM, disk.Reflink: syscall.ENOTTY},
		"no links (FUSE)":      {disk.Link: syscall.ENOTSUP, disk.Reflink: syscall.ENOTSUP},
		"another file system":  {disk.Link: syscall.EXDEV, disk.Reflink: syscall.EXDEV},
		"too many links":       {disk.Link: syscall.EMLINK, disk.Reflink: syscall.ENOTTY},
		"no permissions":       {disk.Chmod: syscall.EPERM},
		"no times":             {disk.Chtimes: syscall.EPERM},
		"nothing but files":    {disk.Lock: syscall.ENOSYS, disk.Link: syscall.EPERM, disk.Reflink: syscall.ENOSYS, disk.Chmod: syscall.ENOTSUP, disk.Chtimes: syscall.ENOSYS},
		"a sound disk as well": {},
	}
}

// A store works on each of them: all that a build asks of it, with right bytes, no error,
// and one warning where there are no locks.
func TestPoorDisks(t *testing.T) {
	for name, refused := range poorDisks() {
		t.Run(name, func(t *testing.T) {
			f := cachetest.NewFaulty(t)
			for op, err := range refused {
				f.Refuse(op, err)
			}
			path, l := filepath.Join(t.TempDir(), "cache"), newLedger(t)
			d, err := cache.OpenWith(path, later(time.Minute), cache.Options{Disk: f.Disk(), ChunkAbove: chunkLimit})
			if err != nil {
				t.Fatal(err)
			}
			warned := 0
			for range 2 {
				for _, a := range acts() {
					err := a.do(d, l)
					if a.name == "lock" && err != nil {
						wantErr(t, a.name, err, cache.ErrNoLocks, d.Path())
						warned++
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", a.name, err)
					}
				}
			}
			if lockless := refused[disk.Lock] != nil; warned > 1 || lockless != (warned == 1) {
				t.Errorf("%d warnings", warned)
			}
			l.check(t, d)
			f.Reset()
			l.recovers(t, path)
		})
	}
}

// Without links, a blob is placed as a copy, and that is said.
func TestExportWithoutLinks(t *testing.T) {
	f := cachetest.NewFaulty(t)
	f.Refuse(disk.Link, syscall.EPERM)
	f.Refuse(disk.Reflink, syscall.ENOTTY)
	d := openOn(t, filepath.Join(t.TempDir(), "cache"), f)
	path := filepath.Join(t.TempDir(), "out")
	how, err := d.Export(put(t, d, []byte("blob")).Digest, path)
	if how != cache.Copy || err != nil {
		t.Errorf("Export = %q, %v", how, err)
	}
}

// Without locks, a lock keeps no one out, and two stores may do the same at once.
func TestTwoWithoutLocks(t *testing.T) {
	f := cachetest.NewFaulty(t)
	f.Refuse(disk.Lock, syscall.ENOLCK)
	path := filepath.Join(t.TempDir(), "cache")
	k, text := cache.KeyOf(nil), sample(100_000, "same")
	var wg sync.WaitGroup
	for range 4 {
		d := openOn(t, path, f)
		wg.Go(func() {
			for range 5 {
				if unlock, err := d.Lock(t.Context(), k, nil); err == nil {
					defer unlock()
				}
				out, err := store(d, text)
				if err == nil {
					err = d.Record(k, cache.Result{Outputs: []cache.Output{out}})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantWhole(t, reopen(t, path, clock))
}

// Without locks, what is being written is swept by another process only after a week,
// and a lease counts as long.
func TestSweepWithoutLocks(t *testing.T) {
	f := cachetest.NewFaulty(t)
	f.Refuse(disk.Lock, syscall.ENOLCK)
	path := filepath.Join(t.TempDir(), "cache")
	d := openOn(t, path, f)
	w, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Hold("a build"); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{-30 * 24 * time.Hour, 6 * 24 * time.Hour, 8 * 24 * time.Hour} {
		other, err := cache.OpenWith(path, later(after), cache.Options{Disk: f.Disk()})
		if err != nil {
			t.Fatal(err)
		}
		leases, err := other.Leases()
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(path, "tmp", "*"))
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if after > 7*24*time.Hour {
			want = 0
		}
		if len(leases) != want || len(files) != want {
			t.Errorf("%v later: %d leases and %d files, want %d", after, len(leases), len(files), want)
		}
	}
	_ = w.Abort()
}

// The clock goes back, or far ahead and back: what is alive stays.
func TestClockGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	d := reopen(t, path, later(365*24*time.Hour)) // a year ahead
	release, err := d.Hold("a build")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	w, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(sample(100_000, "live")); err != nil {
		t.Fatal(err)
	}
	used := put(t, d, []byte("used"))
	if err := d.Record(cache.KeyOf(nil), cache.Result{Outputs: []cache.Output{used}}); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{0, -48 * time.Hour, 2 * 365 * 24 * time.Hour} {
		other := reopen(t, path, later(by))
		if _, err := other.GC(t.Context(), cache.Limits{Max: 1, Age: time.Second}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Lookup(cache.KeyOf(nil)); err != nil {
			t.Errorf("clock at %v: %v", by, err)
		}
		wantBlob(t, other, []byte("used"))
	}
	if _, err := w.Commit(); err != nil {
		t.Errorf("Commit: %v", err)
	}
	wantBlob(t, d, sample(100_000, "live"))
}

// A source is hashed again when it was written to since, although the clock went back
// between, or the file system keeps times in two seconds.
func TestSourcesUnderPoorClocks(t *testing.T) {
	for name, test := range map[string]struct {
		written, hashed [4]time.Duration // what the clock says at each version, from now
		tick            time.Duration
	}{
		"two-second times":            {tick: 2 * time.Second},
		"goes back after each write":  {written: [4]time.Duration{time.Hour, time.Hour, time.Hour, time.Hour}},
		"goes back after each hash":   {written: [4]time.Duration{3 * time.Second, 2 * time.Second, time.Second}, hashed: [4]time.Duration{3 * time.Second, 2 * time.Second, time.Second}},
		"back, with two-second times": {written: [4]time.Duration{time.Hour, 0, time.Hour, 0}, tick: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			path, src := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "source")
			for i := range 4 {
				d, err := cache.OpenWith(path, later(test.hashed[i]), cache.Options{Disk: &disk.Disk{Tick: test.tick}})
				if err != nil {
					t.Fatal(err)
				}
				text := []byte{'v', byte('0' + i)}
				if err := os.WriteFile(src, text, 0o666); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(src, time.Time{}, later(test.written[i])()); err != nil {
					t.Fatal(err)
				}
				if out, err := d.SourceDigest(t.Context(), src); err != nil || out.Digest != cache.DigestOf(text) {
					t.Errorf("version %d: digest %s, %v", i, out.Digest.Short(), err)
				}
			}
		})
	}
}
