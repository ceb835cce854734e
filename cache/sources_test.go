package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
)

// isKnown reports whether the digest of a source is known without reading it.
func isKnown(t testing.TB, d *cache.Dir, path string) bool {
	t.Helper()
	_, err := d.SourceDigest(canceled(t), path)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("SourceDigest: %v", err)
	}
	return err == nil
}

// wantSource fails unless the digest of a source is that of text.
func wantSource(t testing.TB, d *cache.Dir, path, text string) {
	t.Helper()
	want := cache.Output{Digest: cache.DigestOf([]byte(text)), Size: int64(len(text))}
	if got, err := d.SourceDigest(t.Context(), path); got != want || err != nil {
		t.Errorf("SourceDigest of %q = %v, %v; want %v", text, got, err, want)
	}
}

func TestSourceIsHashedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "source")
	writeFile(t, path, "weights")
	d := reopen(t, filepath.Join(t.TempDir(), "cache"), later(time.Minute))
	if isKnown(t, d, path) {
		t.Error("a new file is known")
	}
	wantSource(t, d, path, "weights")
	for name, d := range map[string]*cache.Dir{
		"this process": d,
		"the next one": reopen(t, d.Path(), later(time.Minute)),
	} {
		if !isKnown(t, d, path) {
			t.Errorf("%s does not know the file", name)
		}
		wantSource(t, d, path, "weights")
	}
}

func TestSourceIsKnownByAnyName(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "source"), filepath.Join(dir, "link")
	writeFile(t, path, "weights")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	d := reopen(t, filepath.Join(t.TempDir(), "cache"), later(time.Minute))
	wantSource(t, d, path, "weights")
	if !isKnown(t, d, link) {
		t.Error("the file is not known by a link to it")
	}
}

func TestChangedSourceIsHashedAgain(t *testing.T) {
	stamp := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, change := range map[string]func(path string) error{
		"rewritten, same size": func(path string) error {
			return os.WriteFile(path, []byte("changed"), 0o666)
		},
		"rewritten, same size and time": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("changed"), 0o666), os.Chtimes(path, stamp, stamp))
		},
		"replaced, same size and time": func(path string) error {
			next := path + ".next"
			return errors.Join(os.WriteFile(next, []byte("changed"), 0o666), os.Chtimes(next, stamp, stamp), os.Rename(next, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "source")
			writeFile(t, path, "weights")
			if err := os.Chtimes(path, stamp, stamp); err != nil {
				t.Fatal(err)
			}
			d := reopen(t, filepath.Join(t.TempDir(), "cache"), later(time.Minute))
			wantSource(t, d, path, "weights")
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			wantSource(t, d, path, "changed")
			if !isKnown(t, d, path) {
				t.Error("the changed file is not known")
			}
		})
	}
}

// A file that was just written could change again within the tick of the clock of its
// file system, so it is not remembered, and each change is seen.
func TestFreshSourceIsNotTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "source")
	for name, now := range map[string]func() time.Time{
		"just now":      clock,
		"a second ago":  later(time.Second),
		"in the future": later(-time.Hour),
	} {
		d := reopen(t, filepath.Join(t.TempDir(), "cache"), now)
		for i := range 5 {
			text := fmt.Sprint("weights", i)
			writeFile(t, path, text)
			wantSource(t, d, path, text)
		}
		if isKnown(t, d, path) {
			t.Errorf("a file written %s is known", name)
		}
	}
	d := openDir(t)
	old := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	wantSource(t, d, path, "weights4")
	if isKnown(t, d, path) {
		t.Error("a file whose time was set back just now is known")
	}
}

func TestSourceErrors(t *testing.T) {
	d := openDir(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "missing")
	_, err := d.SourceDigest(t.Context(), path)
	wantErr(t, "SourceDigest of a missing file", err, os.ErrNotExist, path)
	_, err = d.SourceDigest(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "not a regular file") || !strings.Contains(err.Error(), dir) {
		t.Errorf("SourceDigest of a folder: error %v, want one that says so", err)
	}
	writeFile(t, path, "weights")
	_, err = d.SourceDigest(canceled(t), path)
	wantErr(t, "SourceDigest under a canceled context", err, context.Canceled, path)
}

func TestSourceThatKeepsChanging(t *testing.T) {
	path := filepath.Join(t.TempDir(), "source")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := range int64(1 << 40) {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				f.WriteAt([]byte{1}, i)
			}
		}
	}()
	_, err = openDir(t).SourceDigest(t.Context(), path)
	close(stop)
	<-stopped
	if err == nil || !strings.Contains(err.Error(), "changes while it is read") || !strings.Contains(err.Error(), path) {
		t.Errorf("SourceDigest: error %v, want one that says that %s changes", err, path)
	}
}

func TestSourcesInAReadOnlyView(t *testing.T) {
	path := filepath.Join(t.TempDir(), "source")
	writeFile(t, path, "weights")
	d, err := cache.OpenReadOnly(filepath.Join(t.TempDir(), "cache"), later(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	wantSource(t, d, path, "weights")
	if !isKnown(t, d, path) {
		t.Error("the process forgot the digest")
	}
	if files := tree(t, d.Path()); len(files) > 0 {
		t.Errorf("looking wrote %v", files)
	}
}

func TestMemHashesSources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "source")
	writeFile(t, path, "weights")
	m := cache.NewMem(clock)
	if out, err := m.SourceDigest(t.Context(), path); out.Digest != cache.DigestOf([]byte("weights")) || out.Size != 7 || err != nil {
		t.Errorf("SourceDigest = %v, %v", out, err)
	}
	_, err := m.SourceDigest(t.Context(), path+"x")
	wantErr(t, "SourceDigest of a missing file", err, os.ErrNotExist)
}
