package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// replaceFile gives a file that there is other bytes, at once: whoever reads it, and
// whenever the power fails, it is the old file or the new. Its mode stays, and a link to
// it a link.
func replaceFile(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	old, err := os.OpenFile(path, os.O_RDWR, 0) // a file that may not be written to stays
	if err != nil {
		return err
	}
	stat, err := old.Stat()
	old.Close()
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Chmod(stat.Mode().Perm()), temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		os.Remove(temporary.Name())
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}
