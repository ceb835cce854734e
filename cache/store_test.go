package cache_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cache/cachetest"
)

func TestDirIsAStore(t *testing.T) {
	cachetest.Run(t, func(t *testing.T) cachetest.Store { return openDir(t) })
}

func TestMemIsAStore(t *testing.T) {
	cachetest.Run(t, func(*testing.T) cachetest.Store { return cache.NewMem(clock) })
}

// clock is the clock of tests that do not care about time.
func clock() time.Time { return time.Now() } //nolint:forbidigo // the files of a test have real times

// later returns a clock that is ahead by a duration.
func later(by time.Duration) func() time.Time {
	return func() time.Time { return clock().Add(by) }
}

// openDir opens a new store in a folder of its own.
func openDir(t testing.TB) *cache.Dir {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "cache"), clock)
}

// reopen opens the store at path.
func reopen(t testing.TB, path string, now func() time.Time) *cache.Dir {
	t.Helper()
	d, err := cache.OpenDir(path, now)
	if err != nil {
		t.Fatalf("OpenDir: %v", err)
	}
	return d
}

// store puts b into s.
func store(s cachetest.Store, b []byte) (cache.Output, error) {
	w, err := s.Create()
	if err != nil {
		return cache.Output{}, err
	}
	if _, err := w.Write(b); err != nil {
		return cache.Output{}, errors.Join(err, w.Abort())
	}
	return w.Commit()
}

// put puts b into s.
func put(t testing.TB, s cachetest.Store, b []byte) cache.Output {
	t.Helper()
	out, err := store(s, b)
	if err != nil {
		t.Fatalf("store %d bytes: %v", len(b), err)
	}
	return out
}

// wantBlob fails unless s has b.
func wantBlob(t testing.TB, s cachetest.Store, b []byte) {
	t.Helper()
	blob, err := s.Open(cache.DigestOf(b))
	if err != nil {
		t.Errorf("Open: %v", err)
		return
	}
	defer blob.Close()
	got, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("read %.40q, %v; want %.40q", got, err, b)
	}
}

// wantErr fails unless err is want and its text has all the words.
func wantErr(t testing.TB, call string, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want one that is %q", call, err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %q does not say %q", call, err, w)
		}
	}
}

// sample returns n bytes that depend on seed.
func sample(n int, seed string) []byte {
	b := make([]byte, 0, n+sha256.Size)
	for h := sha256.Sum256([]byte(seed)); len(b) < n; h = sha256.Sum256(h[:]) {
		b = append(b, h[:]...)
	}
	return b[:n]
}

// tree lists the files under a folder, with slashes.
func tree(t testing.TB, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// canceled returns a context that is done: a source that must be hashed fails under it.
func canceled(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
