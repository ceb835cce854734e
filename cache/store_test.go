package cache_test

import (
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cache/cachetest"
)

// clock is the clock of tests that do not care about time.
func clock() time.Time { return time.Now() } //nolint:forbidigo // the files of a test have real times

// openDir opens a new store in a folder of its own.
func openDir(t testing.TB) *cache.Dir {
	t.Helper()
	return reopen(t, t.TempDir(), clock)
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

func TestDirIsAStore(t *testing.T) {
	cachetest.Run(t, func(t *testing.T) cachetest.Store { return openDir(t) })
}

func TestMemIsAStore(t *testing.T) {
	cachetest.Run(t, func(*testing.T) cachetest.Store { return cache.NewMem(clock) })
}
