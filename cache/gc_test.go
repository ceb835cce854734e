package cache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
)

// A kept is an action whose result and blob a test stores.
type kept struct {
	name   string
	size   int
	took   time.Duration
	unused time.Duration // since its last use
}

func (a kept) key() cache.Key       { return cache.KeyOf([]byte(a.name)) }
func (a kept) bytes() []byte        { return sample(a.size, a.name) }
func (a kept) digest() cache.Digest { return cache.DigestOf(a.bytes()) }

// keep stores what actions made.
func keep(t testing.TB, d *cache.Dir, actions ...kept) {
	t.Helper()
	for _, a := range actions {
		out := put(t, d, a.bytes())
		r := cache.Result{Outputs: []cache.Output{out}, Manifest: a.name, Duration: a.took, Step: a.name}
		if err := d.Record(a.key(), r); err != nil {
			t.Fatal(err)
		}
		at := clock().Add(-a.unused)
		setTime(t, resultPath(d, a.key()), at)
		setTime(t, blobPath(d, out.Digest), at.Truncate(time.Second))
	}
}

func setTime(t testing.TB, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func resultPath(d *cache.Dir, k cache.Key) string {
	return filepath.Join(d.Path(), "results", k.String()[:2], k.String())
}

func blobPath(d *cache.Dir, digest cache.Digest) string {
	return filepath.Join(d.Path(), "blobs", digest.String()[:2], digest.String())
}

// gc runs one and returns the names of the steps whose blobs went, in order.
func gc(t testing.TB, d *cache.Dir, l cache.Limits) (cache.Collection, string) {
	t.Helper()
	c, err := d.GC(t.Context(), l)
	if err != nil {
		t.Fatalf("GC: %v", err)
	}
	var names []string
	for _, b := range c.Dropped {
		names = append(names, b.Step)
	}
	return c, strings.Join(names, " ")
}

func has(d *cache.Dir, digest cache.Digest) bool {
	_, err := d.Stat(digest)
	return err == nil
}

// wantTombstone fails unless the blob of a is gone and its result still names it.
func wantTombstone(t testing.TB, d *cache.Dir, a kept) {
	t.Helper()
	r, err := d.Lookup(a.key())
	if err != nil || len(r.Outputs) != 1 || r.Outputs[0].Digest != a.digest() || r.Evicted.IsZero() {
		t.Errorf("%s: Lookup = %+v, %v; want the result, evicted", a.name, r, err)
	}
	if has(d, a.digest()) {
		t.Errorf("%s: the blob is there", a.name)
	}
}

const (
	day = 24 * time.Hour
	kib = 1 << 10
)

func TestGCBySize(t *testing.T) {
	d := openDir(t)
	quick := kept{"quick", 100 * kib, time.Second, 5 * time.Hour}
	slow := kept{"slow", 100 * kib, time.Hour, 5 * time.Hour}
	old := kept{"old", 100 * kib, time.Second, 50 * time.Hour}
	large := kept{"large", 400 * kib, 2 * time.Second, 5 * time.Hour}
	keep(t, d, quick, slow, old, large)

	dry, names := gc(t, d, cache.Limits{Max: 150 * kib, DryRun: true})
	if names != "old large quick" || len(tree(t, d.Path())) == 0 || !has(d, old.digest()) {
		t.Errorf("a dry run drops %q; want it to say old large quick, and drop nothing", names)
	}
	if c, names := gc(t, d, cache.Limits{}); names != "" || c.Before != c.After {
		t.Errorf("a gc without limits drops %q", names)
	}
	c, names := gc(t, d, cache.Limits{Max: 250 * kib})
	if names != "old large" || c.After > 250*kib || c.Over != 0 || c.Bytes() != 500*kib {
		t.Errorf("dropped %q of %d bytes, %d are left; want old and large, and then to stop", names, c.Bytes(), c.After)
	}
	wantTombstone(t, d, old)
	wantTombstone(t, d, large)
	wantBlob(t, d, slow.bytes())
	if dry.Before != c.Before {
		t.Errorf("the dry run finds %d bytes, the other %d", dry.Before, c.Before)
	}
	if c, names := gc(t, d, cache.Limits{Max: 1}); names != "quick slow" || c.Over == 0 {
		t.Errorf("dropped %q, over by %d; want all, and to say that results take more than a byte", names, c.Over)
	}
	if c, names := gc(t, d, cache.Limits{Max: 1}); names != "" || c.Before != c.After {
		t.Errorf("the next one drops %q", names)
	}
}

func TestGCByAgeAndForTheDisk(t *testing.T) {
	d := openDir(t)
	young := kept{"young", 10 * kib, time.Second, 3 * day}
	old := kept{"old", 10 * kib, 99 * time.Hour, 30 * day}
	older := kept{"older", 10 * kib, time.Second, 60 * day}
	shared := kept{"shared", 10 * kib, time.Second, 20 * day}
	keep(t, d, young, old, older, shared)
	if how, err := d.Export(shared.digest(), filepath.Join(t.TempDir(), "out")); err != nil || how == cache.Copy {
		t.Skipf("no links here: %s, %v", how, err)
	}
	if _, names := gc(t, d, cache.Limits{Age: 45 * day}); names != "older" {
		t.Errorf("dropped %q, want older", names)
	}
	// The user's file keeps what the cache would give back.
	if c, names := gc(t, d, cache.Limits{Free: 10 * kib}); names != "young" || c.Over != 0 {
		t.Errorf("dropped %q, want young", names)
	}
	if _, names := gc(t, d, cache.Limits{Age: 10 * day}); names != "shared old" {
		t.Errorf("dropped %q, want shared and old", names)
	}
}

func TestGCKeepsWhatIsPinned(t *testing.T) {
	d := openDir(t)
	a, b, c := kept{"a", 10 * kib, 1, 9 * day}, kept{"b", 10 * kib, 1, 9 * day}, kept{"c", 10 * kib, 1, 9 * day}
	keep(t, d, a, b, c)
	pins := []cache.Pin{
		{Name: "by-key", At: clock().UTC(), Keys: []cache.Key{a.key()}},
		{Name: "by-digest", Note: "the second", At: clock().UTC(), Digests: []cache.Digest{b.digest()}},
	}
	for _, p := range pins {
		if err := d.Pin(p); err != nil {
			t.Fatal(err)
		}
	}
	got, err := d.Pins()
	if err != nil || len(got) != 2 || got[0].Name != "by-digest" || got[0].Note != "the second" || got[1].Keys[0] != a.key() {
		t.Errorf("Pins = %+v, %v", got, err)
	}
	sum, names := gc(t, d, cache.Limits{Max: 1})
	if names != "c" || sum.Pinned != 20*kib || sum.Over == 0 {
		t.Errorf("dropped %q, %d bytes pinned, over by %d; want c alone", names, sum.Pinned, sum.Over)
	}
	wantBlob(t, d, a.bytes())
	wantBlob(t, d, b.bytes())
	if err := d.Unpin("by-key"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Unpin twice", d.Unpin("by-key"), cache.ErrMiss, "by-key")
	if _, names := gc(t, d, cache.Limits{Max: 1}); names != "a" {
		t.Errorf("after Unpin dropped %q, want a", names)
	}
	if err := d.Pin(cache.Pin{Name: "../x"}); err == nil {
		t.Error("a pin may be called ../x")
	}
}

// What a damaged pin keeps is not known: nothing is dropped.
func TestGCWithDamagedPin(t *testing.T) {
	d := openDir(t)
	a := kept{"a", 10 * kib, 1, 9 * day}
	keep(t, d, a)
	if err := d.Pin(cache.Pin{Name: "release", Keys: []cache.Key{a.key()}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.Path(), "pins", "release")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 1
	writeFile(t, path, string(b))
	_, err = d.GC(t.Context(), cache.Limits{Max: 1})
	if pin, ok := errors.AsType[*cache.PinError](err); !ok || pin.Name != "release" {
		t.Errorf("GC: %v, want a PinError", err)
	}
	wantBlob(t, d, a.bytes())
}

func TestGCBesideABuild(t *testing.T) {
	d := openDir(t)
	before := kept{"before", 10 * kib, 1, 9 * day}
	used := kept{"used", 10 * kib, 1, 9 * day}
	fresh := kept{"fresh", 10 * kib, 1, 30 * time.Minute} // its mark is not set again when it is used
	keep(t, d, before, used, fresh)
	release, err := d.Hold("bonsai build")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, a := range []kept{used, fresh} {
		if _, err := d.Lookup(a.key()); err != nil {
			t.Fatal(err)
		}
	}
	other := reopen(t, d.Path(), clock)
	c, names := gc(t, other, cache.Limits{Max: 1})
	if names != "before" || c.InUse != 20*kib {
		t.Errorf("dropped %q, %d bytes in use; want before alone", names, c.InUse)
	}
	wantBlob(t, d, used.bytes())
	wantBlob(t, d, fresh.bytes())
	// Half a day later the build still runs, and needs it.
	late := reopen(t, d.Path(), later(12*time.Hour))
	if _, names := gc(t, late, cache.Limits{Max: 1}); names != "" {
		t.Errorf("dropped %q while a build runs that used it", names)
	}
	// Before it began, by a clock that went back: no mark can be trusted.
	back := reopen(t, d.Path(), later(-5*day))
	if _, names := gc(t, back, cache.Limits{Max: 1}); names != "" {
		t.Errorf("dropped %q although the clock went back", names)
	}
	release()
	if _, names := gc(t, late, cache.Limits{Max: 1}); names != "fresh used" && names != "used fresh" {
		t.Errorf("after the build dropped %q, want both", names)
	}
}

// A blob without a result may be that of an action that is about to record one.
func TestGCAndBlobsWithoutResult(t *testing.T) {
	d := openDir(t)
	out := put(t, d, sample(10*kib, "orphan"))
	for _, c := range []struct {
		age  time.Duration
		hold bool
		left bool
	}{{0, false, true}, {50 * time.Minute, false, true}, {30 * time.Hour, true, true}, {30 * time.Hour, false, false}} {
		if c.hold {
			release, err := d.Hold("bonsai build")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
		}
		gc(t, reopen(t, d.Path(), later(c.age)), cache.Limits{})
		if has(d, out.Digest) != c.left {
			t.Errorf("after %v, with a build that began before it was stored (%v), the blob is there: %v", c.age, c.hold, !c.left)
		}
		if c.hold {
			leases, _ := d.Leases()
			if len(leases) != 1 {
				t.Fatalf("%v", leases)
			}
			removeAll(t, filepath.Join(d.Path(), "leases"))
		}
	}
}

func removeAll(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// Results that share a blob go together, and not before the one that is worth most.
func TestGCOfSharedBlobs(t *testing.T) {
	d := openDir(t)
	b := sample(50*kib, "shared")
	out := put(t, d, b)
	for i, unused := range []time.Duration{90 * day, time.Hour} {
		k := cache.KeyOf([]byte{byte(i)})
		if err := d.Record(k, cache.Result{Outputs: []cache.Output{out}, Duration: time.Second, Step: "shared"}); err != nil {
			t.Fatal(err)
		}
		setTime(t, resultPath(d, k), clock().Add(-unused))
	}
	setTime(t, blobPath(d, out.Digest), clock().Add(-90*day).Truncate(time.Second))
	keep(t, d, kept{"other", 50 * kib, time.Second, day})
	if _, names := gc(t, d, cache.Limits{Max: 60 * kib}); names != "other" {
		t.Errorf("dropped %q, want other, which was used before one of those that share", names)
	}
	c, names := gc(t, d, cache.Limits{Max: 1})
	if names != "shared" || c.Bytes() != 50*kib {
		t.Errorf("dropped %q of %d bytes, want the shared blob, once", names, c.Bytes())
	}
	for i := range 2 {
		if r, err := d.Lookup(cache.KeyOf([]byte{byte(i)})); err != nil || r.Evicted.IsZero() {
			t.Errorf("result %d: %+v, %v; want a tombstone", i, r, err)
		}
	}
}

// Whoever has a blob open, or links it, while it goes has all its bytes.
func TestGCOfAnOpenBlob(t *testing.T) {
	d := openDir(t)
	a := kept{"a", 300 * kib, 1, day}
	keep(t, d, a)
	blob, err := d.Open(a.digest())
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	path := filepath.Join(t.TempDir(), "out")
	if _, err := d.Export(a.digest(), path); err != nil {
		t.Fatal(err)
	}
	gc(t, d, cache.Limits{Max: 1})
	wantTombstone(t, d, a)
	got, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil || cache.DigestOf(got) != a.digest() {
		t.Errorf("the open blob reads %d bytes, %v", len(got), err)
	}
	if got, err := os.ReadFile(path); err != nil || cache.DigestOf(got) != a.digest() {
		t.Errorf("the exported file has %d bytes, %v", len(got), err)
	}
	// Made again, it is an ordinary result.
	keep(t, d, a)
	if r, err := d.Lookup(a.key()); err != nil || !r.Evicted.IsZero() {
		t.Errorf("made again: %+v, %v", r, err)
	}
	wantBlob(t, d, a.bytes())
}

// An action that stores bytes which are there already makes them new to a gc.
func TestGCAndBytesStoredAgain(t *testing.T) {
	d := openDir(t)
	a := kept{"a", 10 * kib, 1, 40 * day}
	keep(t, d, a)
	release, err := d.Hold("bonsai build")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	put(t, d, a.bytes()) // by another action, which has recorded nothing yet
	if _, names := gc(t, reopen(t, d.Path(), clock), cache.Limits{Max: 1}); names != "" {
		t.Errorf("dropped %q", names)
	}
	wantBlob(t, d, a.bytes())
}

func TestGCForgets(t *testing.T) {
	d := openDir(t)
	a, b := kept{"a", 10 * kib, 1, 300 * day}, kept{"b", 10 * kib, 1, 100 * day}
	keep(t, d, a, b)
	gc(t, d, cache.Limits{Max: 1})
	wantTombstone(t, d, b) // this is a use
	late := reopen(t, d.Path(), later(170*day))
	if c, _ := gc(t, late, cache.Limits{}); c.Forgotten != 0 {
		t.Errorf("%d results are forgotten within half a year", c.Forgotten)
	}
	late = reopen(t, d.Path(), later(190*day))
	if c, _ := gc(t, late, cache.Limits{}); c.Forgotten != 2 {
		t.Errorf("%d results are forgotten after half a year, want 2", c.Forgotten)
	}
	_, err := d.Lookup(a.key())
	wantErr(t, "Lookup", err, cache.ErrMiss)
}

func TestGCTrims(t *testing.T) {
	d := openDir(t)
	k := cache.KeyOf([]byte("k"))
	for _, s := range []cache.Shelf{cache.Runs, cache.Logs, cache.Plans} {
		if err := d.Keep(s, "a", []byte("text")); err != nil {
			t.Fatal(err)
		}
	}
	scratch, err := d.Scratch(k)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(scratch, "checkpoint"), "half")
	for _, c := range []struct {
		age  time.Duration
		want int
	}{{29 * day, 0}, {31 * day, 2}, {91 * day, 1}, {366 * day, 1}} {
		got, _ := gc(t, reopen(t, d.Path(), later(c.age)), cache.Limits{})
		if got.Trimmed != c.want || got.Before-got.After != int64(4*c.want) {
			t.Errorf("after %v %d files and %d bytes are trimmed, want %d", c.age, got.Trimmed, got.Before-got.After, c.want)
		}
	}
}

func TestGCOfAReadOnlyStore(t *testing.T) {
	d := openDir(t)
	a := kept{"a", 10 * kib, 1, day}
	keep(t, d, a)
	frozen, err := cache.OpenReadOnly(d.Path(), clock)
	if err != nil {
		t.Fatal(err)
	}
	if _, names := gc(t, frozen, cache.Limits{Max: 1, DryRun: true}); names != "a" {
		t.Errorf("a dry run says %q, want a", names)
	}
	_, err = frozen.GC(t.Context(), cache.Limits{Max: 1})
	wantErr(t, "GC", err, cache.ErrReadOnly)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.GC(ctx, cache.Limits{Max: 1})
	wantErr(t, "GC", err, context.Canceled)
	wantBlob(t, d, a.bytes())
}

// Beside gcs in a row, builds that hold a lease store, look up and read what they need.
func TestGCBesideMany(t *testing.T) {
	path := openDir(t).Path()
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		d, err := cache.OpenDir(path, clock)
		for err == nil {
			select {
			case <-stop:
				ended <- nil
				return
			default:
				_, err = d.GC(context.Background(), cache.Limits{Max: 1})
			}
		}
		ended <- err
	}()
	for n := range 60 {
		d := reopen(t, path, clock)
		release, err := d.Hold("bonsai build")
		if err != nil {
			t.Fatal(err)
		}
		var actions []kept
		for i := range 3 {
			a := kept{name: fmt.Sprintf("%d-%d", n%4, i), size: 2 * kib}
			if r, err := d.Lookup(a.key()); err == nil && has(d, r.Outputs[0].Digest) {
				actions = append(actions, a)
				continue
			}
			out := put(t, d, a.bytes())
			if err := d.Record(a.key(), cache.Result{Outputs: []cache.Output{out}, Manifest: a.name}); err != nil {
				t.Fatal(err)
			}
			actions = append(actions, a)
		}
		for _, a := range actions {
			wantBlob(t, d, a.bytes())
		}
		release()
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Errorf("GC: %v", err)
	}
}
