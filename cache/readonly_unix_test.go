//go:build unix

package cache_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bonsai/cache"
)

// A cache that this user may not write, say one that a group shares.
func TestFolderWithoutWritePermission(t *testing.T) {
	path, b, k := filled(t)
	source := filepath.Join(t.TempDir(), "source")
	writeFile(t, source, "weights")
	out := filepath.Join(t.TempDir(), "out")
	withoutWrite(t, path, func() {
		d := reopen(t, path, later(time.Minute))
		wantReads(t, d, b, k)
		wantRefusals(t, d, cache.DigestOf(b))
		wantSource(t, d, source, "weights")
		if !isKnown(t, d, source) {
			t.Error("the process forgot the digest")
		}
		if how, err := d.Export(cache.DigestOf(b), out); err != nil {
			t.Errorf("Export = %q, %v", how, err)
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, b) {
			t.Errorf("exported %.40q, %v", got, err)
		}
		_, err := cache.OpenDir(filepath.Join(path, "new"), clock)
		wantErr(t, "OpenDir of a folder that cannot be made", err, cache.ErrReadOnly)
	})
}

// A cache that this user may not look into is an error, not an empty cache.
func TestFolderWithoutReadPermission(t *testing.T) {
	path, _, _ := filled(t)
	for _, folder := range []string{path, filepath.Join(path, "results"), filepath.Join(path, "blobs")} {
		if err := os.Chmod(folder, 0); err != nil {
			t.Fatal(err)
		}
		withoutPrivilege(t, func() {
			_, err := cache.OpenDir(path, clock)
			wantErr(t, "OpenDir without permission for "+folder, err, fs.ErrPermission)
			_, err = cache.OpenReadOnly(path, clock)
			wantErr(t, "OpenReadOnly without permission for "+folder, err, fs.ErrPermission)
		})
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	withoutPrivilege(t, func() {
		if _, err := cache.OpenReadOnly(path, clock); err != nil {
			t.Error(err)
		}
	})
}

// withoutWrite calls do while nothing under root can be written by this user, be it root.
func withoutWrite(t *testing.T, root string, do func()) {
	t.Helper()
	chmod(t, root, func(m fs.FileMode) fs.FileMode { return m &^ 0o222 })
	defer chmod(t, root, func(m fs.FileMode) fs.FileMode { return m | 0o200 })
	withoutPrivilege(t, do)
}

// chmod changes the modes of everything under root.
func chmod(t *testing.T, root string, mode func(fs.FileMode) fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, mode(fi.Mode().Perm()))
	})
	if err != nil {
		t.Fatal(err)
	}
}
