//go:build unix

package cache_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

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
