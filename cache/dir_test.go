package cache_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
)

func blobFile(d *cache.Dir, digest cache.Digest) string {
	return filepath.Join(d.Path(), "blobs", digest.String()[:2], digest.String())
}

func resultFile(d *cache.Dir, k cache.Key) string {
	return filepath.Join(d.Path(), "results", k.String()[:2], k.String())
}

// overwrite does to a file what a program does that may: it writes in place.
func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// decay changes a file as a failing disk does: its times stay.
func decay(t *testing.T, path string, b []byte) {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, b)
	if err := os.Chtimes(path, time.Time{}, fi.ModTime()); err != nil {
		t.Fatal(err)
	}
}

func TestBlobChangedInPlaceIsCorrupt(t *testing.T) {
	b := sample(5000, "blob")
	flipped := slices.Clone(b)
	flipped[4321] ^= 1
	for _, test := range []struct {
		name string
		b    []byte
	}{
		{"one bit", flipped},
		{"cut short", b[:4999]},
		{"longer", append(slices.Clone(b), 0)},
		{"empty", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := openDir(t)
			out := put(t, d, b)
			overwrite(t, blobFile(d, out.Digest), test.b)

			_, err := d.Open(out.Digest)
			wantErr(t, "Open", err, cache.ErrCorrupt, out.Digest.Short())
			wantErr(t, "Open", err, cache.ErrMiss)
			_, err = d.Stat(out.Digest)
			wantErr(t, "Stat afterwards", err, cache.ErrMiss)
			if errors.Is(err, cache.ErrCorrupt) {
				t.Errorf("Stat afterwards: error %v, but the damaged blob is gone", err)
			}
			wantQuarantined(t, d, out.Digest.String(), test.b)
			if got := put(t, d, b); got != out {
				t.Errorf("stored again as %v, want %v", got, out)
			}
			wantBlob(t, d, b)
		})
	}
}

// wantQuarantined fails unless the damaged file can still be looked at.
func wantQuarantined(t *testing.T, d *cache.Dir, name string, b []byte) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.Path(), "quarantine", name+"-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d files of %s in quarantine, %v; want one", len(found), name, err)
	}
	if got, err := os.ReadFile(found[0]); err != nil || !bytes.Equal(got, b) {
		t.Errorf("quarantine has %.40q, %v; want %.40q", got, err, b)
	}
}

func TestCorruptBlobIsWrittenAnew(t *testing.T) {
	d := openDir(t)
	b := sample(5000, "blob")
	out := put(t, d, b)
	overwrite(t, blobFile(d, out.Digest), b[1:])
	put(t, d, b)
	wantBlob(t, d, b)
}

func TestFolderInPlaceOfABlobIsCorrupt(t *testing.T) {
	d := openDir(t)
	out := put(t, d, []byte("blob"))
	path := blobFile(d, out.Digest)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	_, err := d.Open(out.Digest)
	wantErr(t, "Open", err, cache.ErrCorrupt)
	put(t, d, []byte("blob"))
	wantBlob(t, d, []byte("blob"))
}

func TestDecayedSizeIsNoticedByLookup(t *testing.T) {
	d := openDir(t)
	k, out := cache.KeyOf(nil), put(t, d, sample(5000, "blob"))
	if err := d.Record(k, cache.Result{Outputs: []cache.Output{out}}); err != nil {
		t.Fatal(err)
	}
	decay(t, blobFile(d, out.Digest), sample(4096, "blob"))
	_, err := d.Lookup(k)
	wantErr(t, "Lookup", err, cache.ErrCorrupt, k.Short(), "4096", "5000")
	wantErr(t, "Lookup", err, cache.ErrMiss)
	wantQuarantined(t, d, out.Digest.String(), sample(4096, "blob"))
}

func TestDecayedByteIsFoundByVerify(t *testing.T) {
	d := openDir(t)
	b := sample(5000, "blob")
	out := put(t, d, b)
	if err := d.Verify(out.Digest); err != nil {
		t.Errorf("Verify of a whole blob: %v", err)
	}
	b[17] ^= 0x40
	decay(t, blobFile(d, out.Digest), b)
	wantErr(t, "Verify", d.Verify(out.Digest), cache.ErrCorrupt, out.Digest.Short())
	wantErr(t, "Verify afterwards", d.Verify(out.Digest), cache.ErrMiss)
}

func TestMissingBlobLeavesTheResult(t *testing.T) {
	d := openDir(t)
	k, out := cache.KeyOf(nil), put(t, d, []byte("blob"))
	if err := d.Record(k, cache.Result{Outputs: []cache.Output{out}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Remove(out.Digest); err != nil {
			t.Fatalf("Remove: %v", err)
		}
	}
	if r, err := d.Lookup(k); err != nil || len(r.Outputs) != 1 || r.Outputs[0] != out {
		t.Errorf("Lookup = %v, %v; want the output, known though evicted", r, err)
	}
	_, err := d.Stat(out.Digest)
	wantErr(t, "Stat", err, cache.ErrMiss)
}

// A cache copied without its times is hashed once, not for ever.
func TestTouchedBlobIsTrustedAgain(t *testing.T) {
	d := openDir(t)
	b := sample(5000, "blob")
	path := blobFile(d, put(t, d, b).Digest)
	touched := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	if err := os.Chtimes(path, touched, touched); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, d, b)
	if fi, err := os.Stat(path); err != nil || fi.ModTime().Nanosecond() != 0 {
		t.Errorf("modified %v, %v; want a whole second again", fi.ModTime(), err)
	}
}

func TestBlobsAreReadOnlyAndMarked(t *testing.T) {
	d := openDir(t)
	fi, err := os.Stat(blobFile(d, put(t, d, []byte("blob")).Digest))
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode().Perm()&0o222 != 0 {
		t.Errorf("mode %v, want no write permission", fi.Mode())
	}
	if fi.ModTime().Nanosecond() != 0 || clock().Sub(fi.ModTime()) > time.Minute {
		t.Errorf("modified %v, want this second", fi.ModTime())
	}
}

func TestDamagedResultIsNeverTakenForAnother(t *testing.T) {
	d := openDir(t)
	k := cache.KeyOf(nil)
	r := cache.Result{Outputs: []cache.Output{{Digest: cache.DigestOf(nil), Size: 12}}, Manifest: "op"}
	if err := d.Record(k, r); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(resultFile(d, k))
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for _, damaged := range [][]byte{flip(whole, i), whole[:i]} {
			overwriteOrCreate(t, resultFile(d, k), damaged)
			if r, err := d.Lookup(k); !errors.Is(err, cache.ErrMiss) || !errors.Is(err, cache.ErrCorrupt) {
				t.Fatalf("%q is read as %+v, %v; want an ErrCorrupt", damaged, r, err)
			}
		}
	}
	if err := d.Record(k, r); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lookup(k); err != nil {
		t.Errorf("Lookup of a new result: %v", err)
	}
}

func flip(b []byte, i int) []byte {
	b = slices.Clone(b)
	b[i] ^= 1
	return b
}

func overwriteOrCreate(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// A result of a later bonsai is left for it.
func TestResultOfAnotherFormatIsAMiss(t *testing.T) {
	d := openDir(t)
	k := cache.KeyOf(nil)
	if err := d.Record(k, cache.Result{}); err != nil {
		t.Fatal(err)
	}
	body := `{"format":2,"outputs":{}}`
	file := body + "\n\"" + cache.DigestOf([]byte(body)).String() + "\"\n"
	writeFile(t, resultFile(d, k), file)
	_, err := d.Lookup(k)
	wantErr(t, "Lookup", err, cache.ErrMiss, "format 2")
	if errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("Lookup: error %v is an ErrCorrupt", err)
	}
	if b, err := os.ReadFile(resultFile(d, k)); err != nil || string(b) != file {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

func TestAbortedAndRepeatedBlobsLeaveNoFile(t *testing.T) {
	d := openDir(t)
	put(t, d, []byte("blob"))
	put(t, d, []byte("blob"))
	w, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(sample(200_000, "aborted")); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	blob := cache.DigestOf([]byte("blob")).String()
	want := []string{"CACHEDIR.TAG", "blobs/" + blob[:2] + "/" + blob}
	if got := tree(t, d.Path()); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestSweep(t *testing.T) {
	d := openDir(t)
	w, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	leftovers := []string{"tmp/1-LEFTOVER", "locks/" + cache.KeyOf(nil).String()}
	for _, name := range leftovers {
		writeFile(t, filepath.Join(d.Path(), name), "killed")
	}
	sixDays := "quarantine/x-" + seconds(clock().Add(-6*24*time.Hour))
	for _, name := range []string{sixDays, "quarantine/x-" + seconds(clock().Add(-8*24*time.Hour)), "quarantine/x"} {
		path := filepath.Join(d.Path(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, "damaged")
	}

	reopen(t, d.Path(), later(23*time.Hour))
	left := tree(t, d.Path())
	for _, name := range leftovers {
		if !slices.Contains(left, name) {
			t.Errorf("%s is gone within a day", name)
		}
	}

	reopen(t, d.Path(), later(25*time.Hour))
	left = tree(t, d.Path())
	for _, name := range leftovers {
		if slices.Contains(left, name) {
			t.Errorf("%s is there after a day", name)
		}
	}
	if !slices.Contains(left, "quarantine/x") || len(left) != 3 {
		t.Errorf("left are %v; want the tag, the file of a living writer, and what is not ours to sweep", left)
	}
	if _, err := w.Commit(); err != nil {
		t.Errorf("Commit of the living writer: %v", err)
	}
	wantBlob(t, d, nil)
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func TestFoldersComeBack(t *testing.T) {
	d := openDir(t)
	put(t, d, []byte("old"))
	if err := os.RemoveAll(d.Path()); err != nil {
		t.Fatal(err)
	}
	_, err := d.Open(cache.DigestOf([]byte("old")))
	wantErr(t, "Open", err, cache.ErrMiss)
	put(t, d, []byte("new"))
	wantBlob(t, d, []byte("new"))
	if err := d.Record(cache.KeyOf(nil), cache.Result{}); err != nil {
		t.Errorf("Record: %v", err)
	}
	unlock, err := d.Lock(t.Context(), cache.KeyOf(nil), nil)
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	unlock()
}

func TestOpenDirRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, "")
	_, err := cache.OpenDir(path, clock)
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("OpenDir of a file: error %v, want one that names %s", err, path)
	}
}

func TestDefaultPath(t *testing.T) {
	home := t.TempDir()
	abs := func(names ...string) string { return filepath.Join(append([]string{home}, names...)...) }
	for _, test := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"BONSAI_CACHE first", map[string]string{"BONSAI_CACHE": abs("b"), "XDG_CACHE_HOME": abs("x"), "HOME": home}, abs("b")},
		{"then XDG_CACHE_HOME", map[string]string{"XDG_CACHE_HOME": abs("x"), "HOME": home}, abs("x", "bonsai")},
		{"a relative one is ignored", map[string]string{"XDG_CACHE_HOME": "x", "HOME": home}, abs(".cache", "bonsai")},
		{"then HOME", map[string]string{"HOME": home, "USERPROFILE": "u"}, abs(".cache", "bonsai")},
		{"then USERPROFILE", map[string]string{"USERPROFILE": home}, abs(".cache", "bonsai")},
	} {
		got, err := cache.DefaultPath(func(name string) string { return test.env[name] })
		if got != test.want || err != nil {
			t.Errorf("%s: DefaultPath = %s, %v; want %s", test.name, got, err, test.want)
		}
	}
	if got, err := cache.DefaultPath(func(string) string { return "" }); err == nil {
		t.Errorf("DefaultPath without variables = %s, want an error", got)
	}
	got, err := cache.DefaultPath(func(string) string { return "relative" })
	if !filepath.IsAbs(got) || err != nil {
		t.Errorf("DefaultPath of a relative BONSAI_CACHE = %s, %v; want it absolute", got, err)
	}
}
