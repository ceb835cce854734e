// Package cachetest holds the suite that every store passes: what the engine relies
// on, whatever keeps the bytes. It does not know how a store is damaged, filled up or
// shared; each store tests that itself.
//
// Start with Run.
package cachetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"bonsai/cache"
)

// A Store is what the engine needs of a store: the same methods as engine.Store,
// declared again so that neither package needs the other.
type Store interface {
	// Lookup returns the result recorded under a key, or an ErrMiss.
	Lookup(cache.Key) (cache.Result, error)

	// Record keeps a result under a key, in place of an earlier one.
	Record(cache.Key, cache.Result) error

	// Create starts a new blob.
	Create() (cache.Writer, error)

	// Open returns a blob, or an ErrMiss.
	Open(cache.Digest) (cache.Blob, error)

	// Stat returns the size of a blob in bytes, or an ErrMiss.
	Stat(cache.Digest) (int64, error)
}

// Run tests the stores that newStore makes, each of them empty at first.
func Run(t *testing.T, newStore func(t *testing.T) Store) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s Store)
	}{
		{"an unknown key is a miss with a reason", lookupMiss},
		{"a result comes back as recorded", recordLookup},
		{"a second result replaces the first", recordAgain},
		{"an unknown blob is a miss with a reason", openMiss},
		{"a blob of any size comes back as written", sizes},
		{"a blob can be read at any place by many", readAt},
		{"a blob is not there before Commit", invisible},
		{"Abort leaves nothing", abort},
		{"a finished writer refuses more", finished},
		{"a blob that is there is kept", commitExisting},
		{"the caller may change what it passed and got", aliasing},
		{"writers of one blob do not disturb each other", concurrentWriters},
		{"recorders of one key do not disturb each other", concurrentRecords},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newStore(t)) })
	}
}

// put stores b.
func put(t *testing.T, s Store, b []byte) {
	t.Helper()
	w, err := s.Create()
	if err != nil {
		t.Errorf("Create: %v", err)
		return
	}
	if n, err := w.Write(b); n != len(b) || err != nil {
		t.Errorf("Write of %d bytes = %d, %v", len(b), n, err)
	}
	out, err := w.Commit()
	if want := (cache.Output{Digest: cache.DigestOf(b), Size: int64(len(b))}); out != want || err != nil {
		t.Errorf("Commit = %v, %v; want %v", out, err, want)
	}
}

// wantBlob fails unless the store has b.
func wantBlob(t *testing.T, s Store, b []byte) {
	t.Helper()
	d := cache.DigestOf(b)
	if size, err := s.Stat(d); size != int64(len(b)) || err != nil {
		t.Errorf("Stat = %d, %v; want %d", size, err, len(b))
	}
	blob, err := s.Open(d)
	if err != nil {
		t.Errorf("Open: %v", err)
		return
	}
	defer blob.Close()
	if blob.Size() != int64(len(b)) {
		t.Errorf("Size = %d, want %d", blob.Size(), len(b))
	}
	got, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("read %d bytes, %v; want the %d that were written", len(got), err, len(b))
	}
}

// wantMiss fails unless err is a miss that says what is missing and why.
func wantMiss(t *testing.T, call string, err error, name string) {
	t.Helper()
	if !errors.Is(err, cache.ErrMiss) {
		t.Errorf("%s: error %v, want an ErrMiss", call, err)
		return
	}
	if errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("%s: error %v is an ErrCorrupt, but nothing is damaged", call, err)
	}
	miss, ok := errors.AsType[*cache.MissError](err)
	if !ok || miss.Reason == "" || !strings.Contains(miss.What, name) {
		t.Errorf("%s: error %#v, want a *MissError about %s with a reason", call, err, name)
	}
}

// sample returns n bytes that do not repeat soon, the same for the same seed.
func sample(n int, seed uint32) []byte {
	b := make([]byte, n)
	x := seed*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func sampleResult(seed uint32) cache.Result {
	return cache.Result{
		Outputs: []cache.Output{
			{Digest: cache.DigestOf(sample(8, seed)), Size: 8},
			{Digest: cache.DigestOf(nil), Size: 0},
		},
		Manifest:   fmt.Sprintf("op sample v1\nset seed %d\nset text \"<ä&>\"\n", seed),
		Note:       "relative error 0.279, 45.1 % zeros",
		Backend:    "go",
		Started:    time.Date(2026, 11, 30, 22, 31, 5, 123456789, time.UTC),
		Duration:   1234567 * time.Nanosecond,
		PeakMemory: 1 << 40,
		Version:    "0.1",
	}
}

// wantResult fails unless the store has r under k.
func wantResult(t *testing.T, s Store, k cache.Key, r cache.Result) {
	t.Helper()
	got, err := s.Lookup(k)
	if err != nil {
		t.Errorf("Lookup: %v", err)
		return
	}
	if !got.Started.Equal(r.Started) {
		t.Errorf("Started = %v, want %v", got.Started, r.Started)
	}
	got.Started = r.Started
	if !reflect.DeepEqual(got, r) {
		t.Errorf("Lookup = %+v, want %+v", got, r)
	}
}

func lookupMiss(t *testing.T, s Store) {
	k := cache.KeyOf([]byte("unknown"))
	_, err := s.Lookup(k)
	wantMiss(t, "Lookup", err, k.Short())
}

func recordLookup(t *testing.T, s Store) {
	k, other := cache.KeyOf([]byte("a")), cache.KeyOf([]byte("b"))
	if err := s.Record(k, sampleResult(1)); err != nil {
		t.Fatalf("Record: %v", err)
	}
	wantResult(t, s, k, sampleResult(1))
	wantResult(t, s, k, sampleResult(1))
	_, err := s.Lookup(other)
	wantMiss(t, "Lookup of another key", err, other.Short())
}

func recordAgain(t *testing.T, s Store) {
	k := cache.KeyOf([]byte("a"))
	second := sampleResult(2)
	second.Outputs = second.Outputs[:1]
	for _, r := range []cache.Result{sampleResult(1), second} {
		if err := s.Record(k, r); err != nil {
			t.Fatalf("Record: %v", err)
		}
		wantResult(t, s, k, r)
	}
}

func openMiss(t *testing.T, s Store) {
	d := cache.DigestOf([]byte("unknown"))
	_, err := s.Open(d)
	wantMiss(t, "Open", err, d.Short())
	_, err = s.Stat(d)
	wantMiss(t, "Stat", err, d.Short())
}

func sizes(t *testing.T, s Store) {
	for _, n := range []int{0, 1, 4095, 64 << 10, 64<<10 + 1, 3<<20 + 17} {
		b := sample(n, uint32(n))
		put(t, s, b)
		wantBlob(t, s, b)
	}
}

func readAt(t *testing.T, s Store) {
	b := sample(400_000, 3) // more than a store under test may keep in one piece
	put(t, s, b)
	blob, err := s.Open(cache.DigestOf(b))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer blob.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := iotest.TestReader(io.NewSectionReader(blob, 0, blob.Size()), b); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, err := blob.ReadAt(make([]byte, 10), blob.Size()-3); n != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt across the end = %d, %v; want 3, EOF", n, err)
	}
}

func invisible(t *testing.T, s Store) {
	b := sample(200_000, 4)
	d := cache.DigestOf(b)
	w, err := s.Create()
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	for len(b) > 0 {
		n := min(len(b), 33_333)
		if _, err := w.Write(b[:n]); err != nil {
			t.Fatalf("Write: %v", err)
		}
		b = b[n:]
		_, err := s.Open(d)
		wantMiss(t, "Open before Commit", err, d.Short())
	}
	if _, err := w.Commit(); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	wantBlob(t, s, sample(200_000, 4))
}

func abort(t *testing.T, s Store) {
	b := sample(100_000, 5)
	w, err := s.Create()
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatalf("Write: %v", err)
	}
	for range 2 {
		if err := w.Abort(); err != nil {
			t.Errorf("Abort: %v", err)
		}
	}
	_, err = s.Stat(cache.DigestOf(b))
	wantMiss(t, "Stat after Abort", err, cache.DigestOf(b).Short())
	if _, err := w.Commit(); err == nil {
		t.Error("Commit after Abort: no error")
	}
	_, err = s.Stat(cache.DigestOf(b))
	wantMiss(t, "Stat after Abort and Commit", err, cache.DigestOf(b).Short())
}

func finished(t *testing.T, s Store) {
	b := sample(10, 6)
	w, err := s.Create()
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatalf("Write: %v", err)
	}
	if _, err := w.Commit(); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	if _, err := w.Write(b); err == nil {
		t.Error("Write after Commit: no error")
	}
	if _, err := w.Commit(); err == nil {
		t.Error("Commit after Commit: no error")
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	wantBlob(t, s, b)
}

func commitExisting(t *testing.T, s Store) {
	b := sample(70_000, 7)
	put(t, s, b)
	blob, err := s.Open(cache.DigestOf(b))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer blob.Close()
	put(t, s, b)
	got, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("the blob opened before reads %d bytes, %v; want the same %d", len(got), err, len(b))
	}
	wantBlob(t, s, b)
}

func aliasing(t *testing.T, s Store) {
	b := sample(100, 8)
	w, err := s.Create()
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatalf("Write: %v", err)
	}
	clear(b)
	if _, err := w.Commit(); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	wantBlob(t, s, sample(100, 8))

	k, r := cache.KeyOf([]byte("a")), sampleResult(1)
	if err := s.Record(k, r); err != nil {
		t.Fatalf("Record: %v", err)
	}
	r.Outputs[0].Size = 99
	got, err := s.Lookup(k)
	if err != nil {
		t.Fatalf("Lookup: %v", err)
	}
	got.Outputs[0].Size = 98
	wantResult(t, s, k, sampleResult(1))
}

func concurrentWriters(t *testing.T, s Store) {
	same := sample(300_000, 9)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			put(t, s, same)
			own := sample(1000, uint32(100+i))
			put(t, s, own)
			wantBlob(t, s, own)
			wantBlob(t, s, same)
		})
	}
	wg.Wait()
	wantBlob(t, s, same)
}

func concurrentRecords(t *testing.T, s Store) {
	k := cache.KeyOf([]byte("a"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := s.Record(k, sampleResult(uint32(i))); err != nil {
				t.Errorf("Record: %v", err)
			}
			got, err := s.Lookup(k)
			if err != nil {
				t.Errorf("Lookup: %v", err)
				return
			}
			if len(got.Outputs) != 2 || got.Manifest == "" {
				t.Errorf("Lookup = %+v, want one of the results recorded", got)
			}
		})
	}
	wg.Wait()
	if _, err := s.Lookup(k); err != nil {
		t.Errorf("Lookup: %v", err)
	}
}
