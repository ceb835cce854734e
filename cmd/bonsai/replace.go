package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replaceFile gives a file that there is other bytes, at once: whoever reads it, and
// whenever the power fails, it is the old file or the new. Its mode stays, and a link to
// it a link.
func replaceFile(path string, text []byte) error {
	old, err := os.OpenFile(path, os.O_RDWR, 0) // a file that may not be written to stays
	if err != nil {
		return err
	}
	old.Close()
	err = writeWhole(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

// writeWhole lets write fill the file path, which is there as a whole or not at all. The
// mode of a file that is there stays, and a link to it a link. What is neither a file nor
// a folder, as a pipe or /dev/stdout, is written to and stays what it is.
func writeWhole(path string, write func(io.Writer) error) error {
	mode := fs.FileMode(0o644)
	switch fi, err := os.Stat(path); {
	case err != nil: // there is none yet, or making one says what is wrong
	case fi.IsDir():
		return &fs.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	case !fi.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	default:
		mode = fi.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after a rename there is none
	err = write(f)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
