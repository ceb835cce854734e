package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"bonsai/cache"
)

// filled returns the path of a store with one of everything.
func filled(t *testing.T) (path string, b []byte, k cache.Key) {
	t.Helper()
	d := openDir(t)
	b, k = sample(5000, "blob"), cache.KeyOf(nil)
	out := put(t, d, b)
	if err := errors.Join(d.Record(k, cache.Result{Outputs: []cache.Output{out}}), d.SetLast("id", k)); err != nil {
		t.Fatal(err)
	}
	return d.Path(), b, k
}

// wantReads fails unless everything can be read from d.
func wantReads(t *testing.T, d *cache.Dir, b []byte, k cache.Key) {
	t.Helper()
	wantBlob(t, d, b)
	if size, err := d.Stat(cache.DigestOf(b)); size != int64(len(b)) || err != nil {
		t.Errorf("Stat = %d, %v", size, err)
	}
	if r, err := d.Lookup(k); err != nil || len(r.Outputs) != 1 {
		t.Errorf("Lookup = %v, %v", r, err)
	}
	if last, ok := d.Last("id"); last != k || !ok {
		t.Errorf("Last = %v, %v", last, ok)
	}
	if err := d.Verify(cache.DigestOf(b)); err != nil {
		t.Errorf("Verify: %v", err)
	}
	_, err := d.Lookup(cache.KeyOf([]byte("unknown")))
	wantErr(t, "Lookup of an unknown key", err, cache.ErrMiss)
}

// wantRefusals fails unless everything that writes is refused in the same words.
func wantRefusals(t *testing.T, d *cache.Dir, digest cache.Digest) {
	t.Helper()
	_, create := d.Create()
	_, lock := d.Lock(t.Context(), cache.KeyOf(nil), nil)
	for call, err := range map[string]error{
		"Create":  create,
		"Record":  d.Record(cache.KeyOf(nil), cache.Result{}),
		"SetLast": d.SetLast("id", cache.KeyOf([]byte("new"))),
		"Lock":    lock,
		"Remove":  d.Remove(digest),
	} {
		wantErr(t, call, err, cache.ErrReadOnly, "cache "+d.Path()+": the cache is read-only")
	}
}

// everything returns what a folder holds: names, bytes, times.
func everything(t *testing.T, root string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, name := range tree(t, root) {
		b, err := os.ReadFile(filepath.Join(root, name))
		fi, statErr := os.Stat(filepath.Join(root, name))
		if err := errors.Join(err, statErr); err != nil {
			t.Fatal(err)
		}
		all[name] = fi.ModTime().String() + string(b)
	}
	return all
}

func TestOpenReadOnlyChangesNothing(t *testing.T) {
	path, b, k := filled(t)
	damaged := flip(b, 3)
	touched := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	writable := reopen(t, path, clock)
	bad := put(t, writable, []byte("other")).Digest
	overwrite(t, blobFile(writable, bad), damaged)
	writeFile(t, filepath.Join(path, "tmp", "1-LEFTOVER"), "killed")
	if err := os.Chtimes(blobFile(writable, cache.DigestOf(b)), touched, touched); err != nil {
		t.Fatal(err)
	}
	before := everything(t, path)

	d, err := cache.OpenReadOnly(path, later(25*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantReads(t, d, b, k)
		_, err = d.Open(bad)
		wantErr(t, "Open of a damaged blob", err, cache.ErrCorrupt)
	}
	wantRefusals(t, d, cache.DigestOf(b))
	source := filepath.Join(t.TempDir(), "source")
	writeFile(t, source, "weights")
	wantSource(t, d, source, "weights")
	if !reflect.DeepEqual(everything(t, path), before) {
		t.Error("looking changed the folder")
	}
}

func TestOpenReadOnlyOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	d, err := cache.OpenReadOnly(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Lookup(cache.KeyOf(nil))
	wantErr(t, "Lookup", err, cache.ErrMiss)
	if _, ok := d.Last("id"); ok {
		t.Error("Last of nothing")
	}
	wantRefusals(t, d, cache.DigestOf(nil))
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat of the folder: %v, want it missing", err)
	}
}
