package cache_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
)

// used returns when the store at path says that a result was used last.
func used(t testing.TB, path string, k cache.Key) time.Time {
	t.Helper()
	fi, err := os.Stat(filepath.Join(path, "results", k.String()[:2], k.String()))
	if err != nil {
		t.Fatal(err)
	}
	return fi.ModTime()
}

func TestLastUse(t *testing.T) {
	d := openDir(t)
	k := cache.KeyOf([]byte("a"))
	if err := d.Record(k, cache.Result{Manifest: "a"}); err != nil {
		t.Fatal(err)
	}
	recorded := used(t, d.Path(), k)
	lookup := func(d *cache.Dir) {
		t.Helper()
		if _, err := d.Lookup(k); err != nil {
			t.Fatal(err)
		}
	}

	lookup(reopen(t, d.Path(), later(59*time.Minute)))
	if got := used(t, d.Path(), k); !got.Equal(recorded) {
		t.Errorf("a use within the hour sets the mark from %v to %v", recorded, got)
	}
	readOnly, err := cache.OpenReadOnly(d.Path(), later(5*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	lookup(readOnly)
	if err := readOnly.Touch(slices.Values([]cache.Key{k})); err != nil {
		t.Errorf("Touch of a read-only Dir: %v", err)
	}
	if got := used(t, d.Path(), k); !got.Equal(recorded) {
		t.Errorf("a look sets the mark from %v to %v", recorded, got)
	}
	lookup(reopen(t, d.Path(), later(2*time.Hour)))
	if got := used(t, d.Path(), k).Sub(recorded); got < 2*time.Hour {
		t.Errorf("a use two hours later moves the mark by %v", got)
	}

	absent := cache.KeyOf([]byte("absent"))
	if err := reopen(t, d.Path(), later(9*time.Hour)).Touch(slices.Values([]cache.Key{absent, k})); err != nil {
		t.Errorf("Touch: %v", err)
	}
	if got := used(t, d.Path(), k).Sub(recorded); got < 9*time.Hour {
		t.Errorf("Touch nine hours later moves the mark by %v", got)
	}
	lookup(d) // its clock is nine hours behind
	if got := used(t, d.Path(), k).Sub(recorded); got > time.Minute {
		t.Errorf("after the clock went back the mark stays %v ahead", got)
	}
}

func TestHold(t *testing.T) {
	d := openDir(t)
	if leases, err := d.Leases(); err != nil || len(leases) != 0 {
		t.Errorf("Leases = %v, %v; want none", leases, err)
	}
	release, err := d.Hold("bonsai build")
	if err != nil {
		t.Fatal(err)
	}
	other := reopen(t, d.Path(), clock)
	releaseOther, err := other.Hold("bonsai eval")
	if err != nil {
		t.Fatal(err)
	}
	leases, err := other.Leases()
	if err != nil || len(leases) != 2 {
		t.Fatalf("Leases = %v, %v; want two", leases, err)
	}
	for _, l := range leases {
		if l.Process != os.Getpid() || clock().Sub(l.Since).Abs() > time.Minute || !strings.Contains(l.String(), ", bonsai ") {
			t.Errorf("lease %+v (%s) is not of this process, now", l, l)
		}
	}
	release()
	release()
	releaseOther()
	if leases, err := d.Leases(); err != nil || len(leases) != 0 {
		t.Errorf("Leases after all are released = %v, %v", leases, err)
	}
}

// A lease of a process that died is none, and its file goes. One that cannot be read is
// taken to be as old as its file.
func TestLeaseOfTheDead(t *testing.T) {
	d := openDir(t)
	release, err := d.Hold("bonsai build")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	folder := filepath.Join(d.Path(), "leases")
	held, err := os.ReadDir(folder)
	if err != nil || len(held) != 1 {
		t.Fatalf("%v, %v", held, err)
	}
	writeFile(t, filepath.Join(folder, "1-dead"), `{"process":1}`)
	writeFile(t, filepath.Join(folder, held[0].Name()), "{damaged")
	leases, err := d.Leases()
	if err != nil || len(leases) != 1 || clock().Sub(leases[0].Since).Abs() > time.Minute {
		t.Errorf("Leases = %v, %v; want the one that is held, since now", leases, err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("%d leases are left, want 1", len(left))
	}
}
