package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bonsai/cache"
)

// keepModel stores an action "model" whose blob is in chunks.
func keepModel(t testing.TB, d *cache.Dir) cache.Output {
	t.Helper()
	out := put(t, d, sample(200_000, "model"))
	r := cache.Result{Outputs: []cache.Output{out}, Manifest: "model", Duration: time.Second, Step: "model"}
	if err := d.Record(cache.KeyOf([]byte("model")), r); err != nil {
		t.Fatal(err)
	}
	if len(filesOf(t, d, "lists")) == 0 {
		t.Fatal("the blob is not stored in chunks")
	}
	return out
}

// A large blob that was stored just now makes room as a small one does: that its list
// alone went would cost the blob and gain nothing.
func TestGCOfNewChunks(t *testing.T) {
	d := openChunking(t, 64<<10)
	keepModel(t, d)
	c, names := gc(t, d, cache.Limits{Max: 1})
	if names != "model" || c.Bytes() < 200_000 || c.After > 10_000 {
		t.Errorf("dropped %q of %d bytes, %d are left; want the model with its chunks", names, c.Bytes(), c.After)
	}
	if n := len(filesOf(t, d, "blobs")) + len(filesOf(t, d, "lists")); n > 0 {
		t.Errorf("%d files are left", n)
	}
}

// What a pin keeps of a large blob are its chunks, and what a build uses too.
func TestGCCountsChunksThatAreKept(t *testing.T) {
	d := openChunking(t, 64<<10)
	keepModel(t, d)
	if err := d.Pin(cache.Pin{Name: "release", Keys: []cache.Key{cache.KeyOf([]byte("model"))}}); err != nil {
		t.Fatal(err)
	}
	if c, names := gc(t, d, cache.Limits{Max: 1}); names != "" || c.Pinned < 200_000 || c.InUse != 0 {
		t.Errorf("dropped %q, %d bytes pinned, %d in use; want all pinned", names, c.Pinned, c.InUse)
	}
	if err := d.Unpin("release"); err != nil {
		t.Fatal(err)
	}
	release, err := d.Hold("bonsai build")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if c, names := gc(t, d, cache.Limits{Max: 1}); names != "" || c.InUse < 200_000 || c.Pinned != 0 {
		t.Errorf("dropped %q, %d bytes pinned, %d in use; want all in use", names, c.Pinned, c.InUse)
	}
}

// A large blob is found by its digest, as one that is a file.
func TestFindChunked(t *testing.T) {
	d := openChunking(t, 64<<10)
	out := keepModel(t, d)
	_, digests, err := d.Find(out.Digest.String())
	if err != nil || len(digests) != 1 || digests[0] != out.Digest {
		t.Errorf("Find = %v, %v; want %s", digests, err, out.Digest.Short())
	}
}

// A damaged chunk is told with the blob that it is of, in whatever order they are read.
func TestVerifyAllWithADamagedChunk(t *testing.T) {
	for range 10 {
		d := openChunking(t, 64<<10)
		out := keepModel(t, d)
		chunk := filesOf(t, d, "blobs")[0]
		wear(t, chunk, 100)
		v, err := d.VerifyAll(t.Context(), nil)
		told := map[string]bool{}
		for _, damage := range v.Damaged {
			told[damage.What] = damage.Step == "model"
		}
		if err != nil || len(told) != 2 || !told["blob "+out.Digest.Short()] || !told["blob "+filepath.Base(chunk)[:12]] {
			t.Fatalf("VerifyAll = %+v, %v; want the chunk and the blob of model", v.Damaged, err)
		}
	}
}

// What a gc drops while all is verified is not damage.
func TestVerifyAllBesideAGC(t *testing.T) {
	d := openChunking(t, 64<<10)
	keepModel(t, d)
	dropped := false
	v, err := d.VerifyAll(t.Context(), func(int64, int64) {
		if !dropped {
			dropped = true
			gc(t, d, cache.Limits{Max: 1})
		}
	})
	if err != nil || len(v.Damaged) > 0 {
		t.Errorf("VerifyAll = %+v, %v; want no damage", v.Damaged, err)
	}
	if n := len(filesOf(t, d, "lists")); n > 0 {
		t.Errorf("the gc left %d lists", n)
	}
}

// To delete something looks at pins and builds when it is done, not only at those of the
// survey.
func TestDeleteBesideABuild(t *testing.T) {
	for name, begin := range map[string]func(*cache.Dir, cache.Key) error{
		"pin new": func(d *cache.Dir, k cache.Key) error {
			return d.Pin(cache.Pin{Name: "new", Keys: []cache.Key{k}})
		},
		"used by ": func(d *cache.Dir, _ cache.Key) error {
			_, err := d.Hold("bonsai build")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDir(t)
			a := kept{"a", 10 * kib, 1, 0}
			keep(t, d, a)
			s, err := d.Survey(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := begin(d, a.key()); err != nil {
				t.Fatal(err)
			}
			_, err1 := d.Delete(s, a.key())
			_, err2 := d.DeleteBlob(s, a.digest())
			for _, err := range []error{err1, err2} {
				if e, ok := errors.AsType[*cache.KeptError](err); !ok || len(e.By) < len(name) || e.By[:len(name)] != name {
					t.Errorf("deleting what came into use: %v, want a KeptError by %q", err, name)
				}
			}
			wantBlob(t, d, a.bytes())
		})
	}
}

// A tombstone whose blob came back, as the output of another action, keeps the blob if
// it was used since the survey.
func TestEvictWhatATombstoneNamesAgain(t *testing.T) {
	d := openDir(t)
	a := kept{"a", 10 * kib, 1, day}
	keep(t, d, a)
	gc(t, d, cache.Limits{Max: 1})
	wantTombstone(t, d, a)
	out := put(t, d, a.bytes())
	setTime(t, blobPath(d, out.Digest), clock().Add(-day).Truncate(time.Second))
	other := cache.KeyOf([]byte("other"))
	if err := d.Record(other, cache.Result{Outputs: []cache.Output{out}, Manifest: "other"}); err != nil {
		t.Fatal(err)
	}
	for _, k := range []cache.Key{a.key(), other} {
		setTime(t, resultPath(d, k), clock().Add(-day))
	}
	s, err := d.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lookup(a.key()); err != nil { // marks it as used
		t.Fatal(err)
	}
	if _, err := d.DeleteBlob(s, out.Digest); err == nil {
		t.Error("a blob that was used since the survey was dropped")
	}
	if _, err := os.Stat(blobPath(d, out.Digest)); err != nil {
		t.Error(err)
	}
}
