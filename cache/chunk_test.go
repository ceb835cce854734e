package cache_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"bonsai/cache"
	"bonsai/cache/cachetest"
)

// openChunking opens a new store that cuts blobs of more than n bytes into chunks.
func openChunking(t testing.TB, n int64) *cache.Dir {
	t.Helper()
	return reopenChunking(t, filepath.Join(t.TempDir(), "cache"), n, clock)
}

func reopenChunking(t testing.TB, path string, n int64, now func() time.Time) *cache.Dir {
	t.Helper()
	d, err := cache.OpenWith(path, now, cache.Options{ChunkAbove: n})
	if err != nil {
		t.Fatalf("OpenWith: %v", err)
	}
	return d
}

// filesOf returns the files of a folder of the store.
func filesOf(t testing.TB, d *cache.Dir, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.Path(), folder, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func blobBytes(t testing.TB, d *cache.Dir) (n int64) {
	t.Helper()
	for _, path := range filesOf(t, d, "blobs") {
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		n += fi.Size()
	}
	return n
}

func TestDirWithChunksIsAStore(t *testing.T) {
	cachetest.Run(t, func(t *testing.T) cachetest.Store { return openChunking(t, 256<<10) })
}

// Two models that differ in a few places share the rest.
func TestChunksAreShared(t *testing.T) {
	d := openChunking(t, 64<<10)
	a := sample(1<<20, "model")
	b := bytes.Clone(a)
	copy(b[300_000:], sample(20_000, "tuned"))
	b = append(append(bytes.Clone(b[:700_000]), "some bytes more"...), b[700_000:]...)
	put(t, d, a)
	one := blobBytes(t, d)
	if one < 1<<20 || len(filesOf(t, d, "lists")) != 1 || len(filesOf(t, d, "blobs")) < 256 {
		t.Errorf("a blob has %d bytes in %d chunks and %d lists", one, len(filesOf(t, d, "blobs")), len(filesOf(t, d, "lists")))
	}
	put(t, d, b)
	if more := blobBytes(t, d) - one; more < 20_000 || more > 60_000 {
		t.Errorf("the second blob takes %d bytes more of %d, for 20 kB that differ", more, len(b))
	}
	wantBlob(t, d, a)
	wantBlob(t, d, b)
	if err := errors.Join(d.Verify(cache.DigestOf(a)), d.Verify(cache.DigestOf(b))); err != nil {
		t.Error(err)
	}
}

// A blob of exactly the limit is one file, and so is a transient one of any size.
func TestWholeBlobs(t *testing.T) {
	d := openChunking(t, 64<<10)
	put(t, d, sample(64<<10, "limit"))
	w, err := d.CreateTransient()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(sample(300_000, "transient")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := len(filesOf(t, d, "blobs")); n != 2 {
		t.Errorf("2 blobs are %d files", n)
	}
	b, err := d.Open(cache.DigestOf(sample(300_000, "transient")))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, ok := b.(interface{ File() *os.File }); !ok {
		t.Error("a blob in one file has no method File")
	}
}

// Many read at once, from many more chunks than files may be open.
func TestReadAcrossChunks(t *testing.T) {
	d := openChunking(t, 64<<10)
	text := sample(500_000, "model")
	put(t, d, text)
	b, err := d.Open(cache.DigestOf(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(io.NewSectionReader(b, 0, 20_000), text[:20_000]); err != nil {
		t.Error(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for at := i * 1000; at < len(text); at += 7919 {
				p := make([]byte, min(9000, len(text)-at))
				if n, err := b.ReadAt(p, int64(at)); n != len(p) || err != nil || !bytes.Equal(p, text[at:at+n]) {
					t.Errorf("ReadAt %d = %d, %v", at, n, err)
				}
			}
		})
	}
	wg.Wait()
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		open := 0
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, d.Path()) {
				open++
			}
		}
		if open > 8 {
			t.Errorf("%d files are open", open)
		}
	}
	for _, off := range []int64{500_000, 600_000} {
		if n, err := b.ReadAt(make([]byte, 1), off); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("ReadAt %d = %d, %v, want EOF", off, n, err)
		}
	}
	if _, err := b.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("ReadAt -1: no error")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("ReadAt of a closed blob: no error")
	}
}

// damages are what may happen to a file of the store.
func damages() map[string]func(path string) error {
	open := func(path string) error { return os.Chmod(path, 0o666) }
	return map[string]func(path string) error{
		"deleted":   os.Remove,
		"cut short": func(path string) error { return errors.Join(open(path), os.Truncate(path, 100)) },
		"changed": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("damage"), 50)
			return errors.Join(err, f.Close())
		},
	}
}

// A blob that lacks a chunk, or its list, is missing, and can be stored again.
func TestDamagedChunks(t *testing.T) {
	for name, damage := range damages() {
		for _, folder := range []string{"blobs", "lists"} {
			t.Run(fmt.Sprint(folder, " ", name), func(t *testing.T) {
				d := openChunking(t, 64<<10)
				text := sample(200_000, "model")
				out := put(t, d, text)
				if err := d.Record(cache.KeyOf(nil), cache.Result{Outputs: []cache.Output{out}}); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(filesOf(t, d, folder)[0], 0o666); err != nil {
					t.Fatal(err)
				}
				if err := damage(filesOf(t, d, folder)[0]); err != nil {
					t.Fatal(err)
				}
				_, err := d.Open(out.Digest)
				wantErr(t, "Open", err, cache.ErrMiss, out.Digest.Short())
				_, err = d.Stat(out.Digest)
				wantErr(t, "Stat", err, cache.ErrMiss)
				wantErr(t, "Verify", d.Verify(out.Digest), cache.ErrMiss)
				_, err = d.Export(out.Digest, filepath.Join(t.TempDir(), "out"))
				wantErr(t, "Export", err, cache.ErrMiss)
				put(t, d, text)
				wantBlob(t, d, text)
				if _, err := d.Lookup(cache.KeyOf(nil)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A change that left no trace in the time of a chunk is found by hashing.
func TestVerifyChunks(t *testing.T) {
	d := openChunking(t, 64<<10)
	text := sample(200_000, "model")
	out := put(t, d, text)
	path := filesOf(t, d, "blobs")[3]
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o666), damages()["changed"](path), os.Chtimes(path, time.Time{}, fi.ModTime())); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Stat(out.Digest); err != nil {
		t.Errorf("Stat: %v", err)
	}
	_, err = d.Export(out.Digest, filepath.Join(t.TempDir(), "out"))
	wantErr(t, "Export", err, cache.ErrCorrupt)
	_, err = d.Stat(out.Digest)
	wantErr(t, "Stat after Export", err, cache.ErrMiss)
	put(t, d, text)
	if err := d.Verify(out.Digest); err != nil {
		t.Error(err)
	}
}

func TestExportChunks(t *testing.T) {
	d := openChunking(t, 64<<10)
	text := sample(200_000, "model")
	out := put(t, d, text)
	path := filepath.Join(t.TempDir(), "folder", "model")
	for _, want := range []string{cache.Copy, cache.Present} {
		if how, err := d.Export(out.Digest, path); how != want || err != nil {
			t.Errorf("Export = %q, %v, want %q", how, err, want)
		}
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, text) {
		t.Errorf("exported %d bytes, %v", len(b), err)
	}
}

// A result that says another size of a blob in chunks is a miss.
func TestLookupKnowsSizesOfChunks(t *testing.T) {
	d := openChunking(t, 64<<10)
	out := put(t, d, sample(200_000, "model"))
	out.Size++
	if err := d.Record(cache.KeyOf(nil), cache.Result{Outputs: []cache.Output{out}}); err != nil {
		t.Fatal(err)
	}
	_, err := d.Lookup(cache.KeyOf(nil))
	wantErr(t, "Lookup", err, cache.ErrCorrupt, "200000 bytes, not 200001")
}

// gc drops a blob with those of its chunks that no other blob has.
func TestChunksAreCollected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	d := reopenChunking(t, path, 64<<10, clock)
	a := sample(400_000, "model")
	b := bytes.Clone(a)
	copy(b[100_000:], sample(20_000, "tuned"))
	for i, text := range [][]byte{a, b} {
		r := cache.Result{Outputs: []cache.Output{put(t, d, text)}, Duration: time.Second}
		if err := d.Record(cache.KeyOf([]byte{byte(i)}), r); err != nil {
			t.Fatal(err)
		}
	}
	both := blobBytes(t, d)
	gc := func(after time.Duration, l cache.Limits) cache.Collection {
		t.Helper()
		c, err := reopenChunking(t, path, 64<<10, later(after)).GC(t.Context(), l)
		if err != nil {
			t.Fatalf("GC: %v", err)
		}
		return c
	}
	gc(3*time.Hour, cache.Limits{})
	wantBlob(t, d, a)
	wantBlob(t, d, b)

	soon := reopenChunking(t, path, 64<<10, later(48*time.Hour))
	if _, err := soon.Lookup(cache.KeyOf([]byte{1})); err != nil { // the second is in use
		t.Fatal(err)
	}
	c := gc(49*time.Hour, cache.Limits{Age: 24 * time.Hour})
	left := blobBytes(t, d)
	if _, err := d.Stat(cache.DigestOf(a)); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("the blob that nobody used is there: %v", err)
	}
	wantBlob(t, d, b)
	if both-left < 20_000 || both-left > 60_000 {
		t.Errorf("dropping a blob of which 20 kB are its own freed %d bytes", both-left)
	}
	if len(c.Dropped) != 1 || c.Bytes() < both-left || c.Before-c.After < both-left {
		t.Errorf("GC says that it dropped %+v, from %d to %d bytes", c.Dropped, c.Before, c.After)
	}
	gc(300*time.Hour, cache.Limits{Age: 24 * time.Hour})
	if n := len(filesOf(t, d, "blobs")) + len(filesOf(t, d, "lists")); n > 0 {
		t.Errorf("%d files are left", n)
	}
}

// Chunks of a blob that was never finished go once they are old.
func TestChunksOfNothingAreCollected(t *testing.T) {
	d := openChunking(t, 64<<10)
	w, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(sample(200_000, "model")); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(t, d.Path(), later(3*time.Hour)).GC(t.Context(), cache.Limits{}); err != nil {
		t.Fatal(err)
	}
	if left := tree(t, d.Path()); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// All of a store is verified chunk by chunk, and a list that lacks one is told.
func TestVerifyAllWithChunks(t *testing.T) {
	d := openChunking(t, 64<<10)
	out := put(t, d, sample(200_000, "model"))
	if err := d.Record(cache.KeyOf(nil), cache.Result{Outputs: []cache.Output{out}, Step: "codes.body"}); err != nil {
		t.Fatal(err)
	}
	v, err := d.VerifyAll(t.Context(), nil)
	if err != nil || len(v.Damaged) > 0 || v.Bytes < 200_000 || v.Blobs < 50 {
		t.Errorf("VerifyAll = %+v, %v", v, err)
	}
	if err := os.Remove(filesOf(t, d, "blobs")[0]); err != nil {
		t.Fatal(err)
	}
	v, err = d.VerifyAll(t.Context(), nil)
	if err != nil || len(v.Damaged) != 1 || v.Damaged[0].What != "blob "+out.Digest.Short() {
		t.Errorf("VerifyAll without a chunk = %+v, %v", v, err)
	}
	if n := len(filesOf(t, d, "lists")); n != 0 {
		t.Errorf("%d lists are left", n)
	}
	put(t, d, sample(200_000, "model"))
	if err := damages()["cut short"](filesOf(t, d, "lists")[0]); err != nil {
		t.Fatal(err)
	}
	v, err = d.VerifyAll(t.Context(), nil)
	if err != nil || len(v.Damaged) != 1 || v.Damaged[0].What != "blob "+out.Digest.Short() {
		t.Errorf("VerifyAll with a damaged list = %+v, %v", v, err)
	}
}

// To delete a result deletes the chunks of its blobs, and one alone is not deleted.
func TestDeleteChunks(t *testing.T) {
	d := openChunking(t, 64<<10)
	out := put(t, d, sample(200_000, "model"))
	if err := d.Record(cache.KeyOf(nil), cache.Result{Outputs: []cache.Output{out}}); err != nil {
		t.Fatal(err)
	}
	soon := reopenChunking(t, d.Path(), 64<<10, later(3*time.Hour))
	s, err := soon.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := cache.ParseDigest(filepath.Base(filesOf(t, d, "blobs")[0]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := soon.DeleteBlob(s, chunk); err == nil {
		t.Error("a chunk of a blob was deleted")
	}
	freed, err := soon.Delete(s, cache.KeyOf(nil))
	if err != nil || freed < 200_000 {
		t.Errorf("Delete = %d, %v", freed, err)
	}
	if n := len(filesOf(t, d, "blobs")); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
}
