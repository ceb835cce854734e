package cache_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"bonsai/cache"
)

// packed returns a store of some actions, and the bundle of the first two: one with its
// blob, one as a tombstone.
func packed(t testing.TB) (d *cache.Dir, actions []kept, bundle []byte) {
	t.Helper()
	d = openDir(t)
	actions = []kept{{"a", 2 * kib, time.Second, time.Hour}, {"b", 3 * kib, time.Minute, time.Hour}, {"c", kib, 1, 1}}
	keep(t, d, actions...)
	var b bytes.Buffer
	err := d.Pack(t.Context(), &b, cache.Bundle{
		Note: "target a", Results: []cache.Key{actions[1].key(), actions[0].key(), actions[0].key()},
		Blobs: []cache.Output{{Digest: actions[0].digest(), Size: 2 * kib}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, actions, b.Bytes()
}

func TestBundle(t *testing.T) {
	d, actions, bundle := packed(t)
	again := &bytes.Buffer{}
	if err := d.Pack(t.Context(), again, cache.Bundle{
		Note: "target a", Results: []cache.Key{actions[0].key(), actions[1].key()},
		Blobs: []cache.Output{{Digest: actions[0].digest(), Size: 2 * kib}},
	}, nil); err != nil || !bytes.Equal(again.Bytes(), bundle) {
		t.Errorf("the same contents in another order give other bytes (%v)", err)
	}

	to := openDir(t)
	u, err := to.Unpack(t.Context(), bytes.NewReader(bundle), nil)
	if err != nil || u.Note != "target a" || u.NewBlobs != 1 || u.NewBytes != 2*kib || u.NewResults != 2 {
		t.Fatalf("Unpack = %+v, %v", u, err)
	}
	wantBlob(t, to, actions[0].bytes())
	if r, err := to.Lookup(actions[0].key()); err != nil || !r.Evicted.IsZero() || r.Step != "a" || r.Duration != time.Second {
		t.Errorf("the result with its blob: %+v, %v", r, err)
	}
	wantTombstone(t, to, actions[1])
	if _, err := to.Lookup(actions[2].key()); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("a result that was not packed: %v", err)
	}
	u, err = to.Unpack(t.Context(), bytes.NewReader(bundle), nil)
	if err != nil || u.NewBlobs != 0 {
		t.Errorf("a second time writes %d blobs, %v; want none", u.NewBlobs, err)
	}
	// Where all is there already a tombstone makes nothing worse.
	if u, err = d.Unpack(t.Context(), bytes.NewReader(bundle), nil); err != nil || u.NewResults != 0 {
		t.Errorf("into its own store: %+v, %v", u, err)
	}
	if r, err := d.Lookup(actions[1].key()); err != nil || !r.Evicted.IsZero() {
		t.Errorf("a whole result became a tombstone: %+v, %v", r, err)
	}
}

// Any byte that is altered, and any byte that is missing or too many, is noticed, and no
// result is kept.
func TestDamagedBundle(t *testing.T) {
	_, actions, bundle := packed(t)
	to := openDir(t)
	refuse := func(what string, at int, b []byte) {
		t.Helper()
		_, err := to.Unpack(t.Context(), bytes.NewReader(b), nil)
		if !errors.Is(err, cache.ErrBundle) {
			t.Fatalf("byte %d of %d %s: error %v, want an ErrBundle", at, len(bundle), what, err)
		}
	}
	step := 7
	if testing.Short() {
		step = 97
	}
	for at := 0; at < len(bundle); at += step {
		b := bytes.Clone(bundle)
		b[at] ^= 0x40
		refuse("altered", at, b)
	}
	for at := 0; at < len(bundle); at += 61 {
		refuse("and all after it missing", at, bundle[:at])
	}
	refuse("missing", len(bundle)-1, bundle[:len(bundle)-1])
	refuse("is one too many", len(bundle), append(bytes.Clone(bundle), 0))
	refuse("is another file", 0, []byte("a text"))
	for _, a := range actions {
		if _, err := to.Lookup(a.key()); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("%s: Lookup after damaged bundles: %v, want a miss", a.name, err)
		}
	}
	for _, name := range tree(t, to.Path()+"/tmp") {
		t.Errorf("%s is left", name)
	}
	if v, err := to.VerifyAll(t.Context(), nil); err != nil || len(v.Damaged) != 0 {
		t.Errorf("VerifyAll: %+v, %v", v, err)
	}
	// What came whole is not written again.
	if u, err := to.Unpack(t.Context(), bytes.NewReader(bundle), nil); err != nil || u.NewBlobs != 0 || u.NewResults != 2 {
		t.Errorf("Unpack at last = %+v, %v; want two new results and no new blob", u, err)
	}
}

// A result must be of the action that its key names.
func TestForgedBundle(t *testing.T) {
	d := openDir(t)
	k := cache.KeyOf([]byte("one action"))
	if err := d.Record(k, cache.Result{Manifest: "another action"}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.Pack(t.Context(), &b, cache.Bundle{Results: []cache.Key{k}}, nil); err != nil {
		t.Fatal(err)
	}
	_, err := openDir(t).Unpack(t.Context(), &b, nil)
	wantErr(t, "Unpack", err, cache.ErrBundle, "it is of another action")
}

func TestPackOfWhatIsDamaged(t *testing.T) {
	d, actions, _ := packed(t)
	o := cache.Output{Digest: actions[0].digest(), Size: 2 * kib}
	missing := cache.Output{Digest: cache.DigestOf([]byte("missing")), Size: 7}
	err := d.Pack(t.Context(), &bytes.Buffer{}, cache.Bundle{Blobs: []cache.Output{missing}}, nil)
	wantErr(t, "Pack", err, cache.ErrMiss, missing.Digest.Short())
	wear(t, blobPath(d, o.Digest), 100)
	err = d.Pack(t.Context(), &bytes.Buffer{}, cache.Bundle{Blobs: []cache.Output{o}}, nil)
	wantErr(t, "Pack", err, cache.ErrCorrupt, o.Digest.Short())
}

// wear alters a byte of a file as the decay of a disk does: its times stay.
func wear(t testing.TB, path string, at int) {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at%len(b)] ^= 0x10
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(b))
	if err := os.Chmod(path, fi.Mode()); err != nil {
		t.Fatal(err)
	}
	setTime(t, path, fi.ModTime())
}

func TestVerifyAll(t *testing.T) {
	d := openDir(t)
	a, b, c := kept{"a", 70 * kib, 1, day}, kept{"b", 10 * kib, 1, day}, kept{"c", kib, 1, day}
	keep(t, d, a, b, c)
	if err := d.Pin(cache.Pin{Name: "release", Keys: []cache.Key{a.key()}}); err != nil {
		t.Fatal(err)
	}
	var last int64
	v, err := d.VerifyAll(t.Context(), func(done, total int64) {
		if done <= last || done > total || total != 81*kib {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	})
	if err != nil || len(v.Damaged) != 0 || v.Blobs != 3 || v.Results != 3 || v.Pins != 1 || v.Bytes != 81*kib {
		t.Errorf("VerifyAll of a whole store = %+v, %v", v, err)
	}
	wear(t, blobPath(d, a.digest()), 12345)
	wear(t, resultPath(d, b.key()), 60)
	wear(t, d.Path()+"/pins/release", 20)
	v, err = d.VerifyAll(t.Context(), nil)
	if err != nil || len(v.Damaged) != 3 {
		t.Fatalf("VerifyAll = %+v, %v; want three damages", v, err)
	}
	for i, want := range []string{"blob " + a.digest().Short(), "pin release", "result " + b.key().Short()} {
		if v.Damaged[i].What != want || v.Damaged[i].Reason == "" {
			t.Errorf("damage %d is %+v, want %s with a reason", i, v.Damaged[i], want)
		}
	}
	if v.Damaged[0].Step != "a" {
		t.Errorf("the damaged blob is said to be of %q", v.Damaged[0].Step)
	}
	_, err = d.Open(a.digest())
	wantErr(t, "Open", err, cache.ErrMiss)
	if err := d.Unpin("release"); err != nil {
		t.Fatal(err)
	}
	if v, err = d.VerifyAll(t.Context(), nil); err != nil || len(v.Damaged) != 0 || v.Blobs != 2 || v.Results != 2 {
		t.Errorf("VerifyAll once more = %+v, %v", v, err)
	}
}

func TestDelete(t *testing.T) {
	d := openDir(t)
	a, b, c := kept{"a", 10 * kib, 1, day}, kept{"b", 20 * kib, 1, day}, kept{"c", 30 * kib, 1, day}
	keep(t, d, a, b, c)
	if err := d.Pin(cache.Pin{Name: "release", Keys: []cache.Key{c.key()}}); err != nil {
		t.Fatal(err)
	}
	survey := func() *cache.Survey {
		t.Helper()
		s, err := d.Survey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if n, err := d.Delete(survey(), a.key()); err != nil || n != 10*kib || has(d, a.digest()) {
		t.Errorf("Delete = %d, %v", n, err)
	}
	_, err := d.Lookup(a.key())
	wantErr(t, "Lookup", err, cache.ErrMiss)
	_, err = d.Delete(survey(), a.key())
	wantErr(t, "Delete twice", err, cache.ErrMiss)
	if n, err := d.DeleteBlob(survey(), b.digest()); err != nil || n != 20*kib {
		t.Errorf("DeleteBlob = %d, %v", n, err)
	}
	wantTombstone(t, d, b)
	_, err1 := d.Delete(survey(), c.key())
	_, err2 := d.DeleteBlob(survey(), c.digest())
	for _, err := range []error{err1, err2} {
		if e, ok := errors.AsType[*cache.KeptError](err); !ok || e.By != "pin release" {
			t.Errorf("deleting what is pinned: %v, want a KeptError", err)
		}
	}
	keys, digests, err := d.Find(c.key().String()[:8])
	if err != nil || len(keys) != 1 || len(digests) != 0 || keys[0] != c.key() {
		t.Errorf("Find = %v, %v, %v", keys, digests, err)
	}
	for _, prefix := range []string{"abc", "ABCDEF", "../../", ""} {
		if _, _, err := d.Find(prefix); err == nil {
			t.Errorf("Find(%q): no error", prefix)
		}
	}
}
