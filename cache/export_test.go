package cache_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
)

// wantExport exports and fails unless path then has b and nothing is beside it.
func wantExport(t *testing.T, d *cache.Dir, b []byte, path string, want ...string) {
	t.Helper()
	how, err := d.Export(cache.DigestOf(b), path)
	if err != nil || !slices.Contains(want, how) {
		t.Errorf("Export = %q, %v; want %v", how, err, want)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(b) {
		t.Errorf("the file has %.40q, %v; want %.40q", got, err, b)
	}
	if files := tree(t, filepath.Dir(path)); len(files) != 1 {
		t.Errorf("the folder has %v, want the file alone", files)
	}
}

func TestExport(t *testing.T) {
	d := openDir(t)
	a, b := sample(5000, "a"), sample(5000, "b")
	put(t, d, a)
	put(t, d, b)
	path := filepath.Join(t.TempDir(), "out", "deep", "model.gguf")
	anew := []string{cache.Reflink, cache.Hardlink}

	wantExport(t, d, a, path, anew...)
	wantExport(t, d, a, path, cache.Present)
	wantExport(t, d, b, path, anew...)
	wantExport(t, reopen(t, d.Path(), clock), b, path, cache.Present)
	wantBlob(t, d, a)
	wantBlob(t, d, b)
}

func TestExportReplacesAUsersFile(t *testing.T) {
	d := openDir(t)
	b := sample(5000, "a")
	put(t, d, b)
	path := filepath.Join(t.TempDir(), "model.gguf")
	writeFile(t, path, string(sample(5000, "of the user")))
	wantExport(t, d, b, path, cache.Reflink, cache.Hardlink)
}

func TestExportReplacesALinkNotItsTarget(t *testing.T) {
	d := openDir(t)
	b := sample(5000, "a")
	put(t, d, b)
	target := filepath.Join(t.TempDir(), "precious")
	writeFile(t, target, "precious")
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	wantExport(t, d, b, path, cache.Reflink, cache.Hardlink)
	if got, err := os.ReadFile(target); err != nil || string(got) != "precious" {
		t.Errorf("the target of the link has %q, %v", got, err)
	}
}

// Whoever is not stopped by the mode of an exported file and writes to it damages the
// blob; the store must find out and never serve the damage.
func TestWriteThroughAnExportIsNoticed(t *testing.T) {
	d := openDir(t)
	b := sample(5000, "a")
	out := put(t, d, b)
	path := filepath.Join(t.TempDir(), "model.gguf")
	how, err := d.Export(out.Digest, path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || how == cache.Hardlink && fi.Mode().Perm()&0o222 != 0 {
		t.Errorf("mode %v, %v of a %s", fi.Mode(), err, how)
	}
	edited := flip(b, 77)
	overwrite(t, path, edited)
	if how == cache.Hardlink {
		_, err := d.Open(out.Digest)
		wantErr(t, "Open", err, cache.ErrCorrupt)
		_, err = d.Export(out.Digest, path)
		wantErr(t, "Export", err, cache.ErrMiss)
		put(t, d, b)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(edited) {
		t.Errorf("the user's file is now %.40q, %v", got, err)
	}
	wantExport(t, d, b, path, cache.Reflink, cache.Hardlink)
}

func TestExportErrors(t *testing.T) {
	d := openDir(t)
	out := put(t, d, []byte("a"))
	path := filepath.Join(t.TempDir(), "model.gguf")
	_, err := d.Export(cache.DigestOf([]byte("unknown")), path)
	wantErr(t, "Export of an unknown blob", err, cache.ErrMiss)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = d.Export(out.Digest, path)
	if err == nil {
		t.Error("Export over a folder: no error")
	}
	if files := tree(t, filepath.Dir(path)); len(files) > 0 {
		t.Errorf("Export left %v", files)
	}
	writeFile(t, path+"2", "")
	_, err = d.Export(out.Digest, filepath.Join(path+"2", "file"))
	if err == nil {
		t.Error("Export into a file: no error")
	}
}

// On another file system the blob is copied, once.
func TestExportToAnotherFileSystem(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "bonsai") //nolint:usetesting // a file system that t.TempDir is not on
	if err != nil {
		t.Skipf("no second file system: %v (Linux has one)", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := openDir(t)
	a, b := sample(300_000, "a"), sample(300_000, "b")
	out := put(t, d, a)
	put(t, d, b)
	path := filepath.Join(dir, "model.gguf")
	if os.Link(blobFile(d, out.Digest), path) == nil {
		t.Skip("the second file system is the first (on Linux it is not)")
	}

	wantExport(t, d, a, path, cache.Copy)
	wantExport(t, d, a, path, cache.Present)
	wantExport(t, d, b, path, cache.Copy)
	wantExport(t, reopen(t, d.Path(), clock), b, path, cache.Present)
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm()&0o200 == 0 {
		t.Errorf("mode %v, %v; want the copy writable", fi.Mode(), err)
	}

	// What a killed copy left goes with the next one.
	put(t, d, sample(300_000, "c"))
	left := filepath.Join(dir, fmt.Sprintf(".model.gguf.%d-AAAAAAAA.partial", clock().Add(-time.Hour).Unix()))
	writeFile(t, left, "killed")
	wantExport(t, d, sample(300_000, "c"), path, cache.Copy)
	wantExport(t, d, b, path, cache.Copy)

	// An edit, however soon and of the same size, is noticed.
	writeFile(t, path, string(flip(b, 7)))
	wantExport(t, d, b, path, cache.Copy)

	// A copy checks what it reads.
	decay(t, blobFile(d, out.Digest), flip(a, 123_456))
	_, err = d.Export(out.Digest, path)
	wantErr(t, "Export of a decayed blob", err, cache.ErrCorrupt, path)
	if got, err := os.ReadFile(path); err != nil || string(got) != string(b) {
		t.Errorf("the user's file is now %.40q, %v", got, err)
	}
}

// What a killed export left goes with a later one to the same path; what another
// process may be at, and what is not ours, stays.
func TestExportSweepsWhatKilledOnesLeft(t *testing.T) {
	d, dir := openDir(t), t.TempDir()
	name := func(base string, age time.Duration) string {
		return filepath.Join(dir, fmt.Sprintf(".%s.%d-AAAAAAAA.partial", base, clock().Add(-age).Unix()))
	}
	left, fresh, other := name("a", time.Hour), name("a", time.Second), name("b", time.Hour)
	for _, path := range []string{left, fresh, other} {
		writeFile(t, path, "killed")
	}
	link := strings.Replace(left, "AAAAAAAA", "BBBBBBBB", 1)
	if err := os.Link(left, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(link, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Export(put(t, d, []byte("bytes")).Digest, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{left: false, link: false, fresh: true, other: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", filepath.Base(path), err == nil, want)
		}
	}
}

func TestBlobOfADirHasItsFile(t *testing.T) {
	d := openDir(t)
	blob, err := d.Open(put(t, d, []byte("bytes")).Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	f, ok := blob.(interface{ File() *os.File })
	if !ok {
		t.Fatalf("%T has no method File", blob)
	}
	if fi, err := f.File().Stat(); err != nil || fi.Size() != 5 {
		t.Errorf("Stat of the file = %v, %v", fi, err)
	}
}
