package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A Shelf is a kind of small files that a Dir keeps beside results, each under a name.
// They are written whole and durably, and may be lost without harm.
type Shelf string

// The shelves.
const (
	Runs  Shelf = "runs"  // records of builds, named so that they sort by time
	Logs  Shelf = "logs"  // what an action said while it ran, by key
	Plans Shelf = "plans" // what a recipe came to when nothing was left to do
)

// Keep puts a file on a shelf, in place of an earlier one of that name.
func (d *Dir) Keep(s Shelf, name string, b []byte) error {
	path, err := d.shelfPath(s, name)
	if err != nil {
		return err
	}
	return d.writeFile(path, b)
}

// Kept returns a file of a shelf, or an ErrMiss.
func (d *Dir) Kept(s Shelf, name string) ([]byte, error) {
	path, err := d.shelfPath(s, name)
	if err != nil {
		return nil, err
	}
	b, err := d.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissError{What: string(s) + " " + name, Reason: "not kept"}
	}
	return b, err
}

func (d *Dir) readFile(path string) ([]byte, error) {
	f, err := d.disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// KeptNames returns the names on a shelf, in order.
func (d *Dir) KeptNames(s Shelf) ([]string, error) {
	entries, err := d.disk.ReadDir(filepath.Join(d.path, string(s)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, err
}

// Discard removes a file from a shelf, if it is there.
func (d *Dir) Discard(s Shelf, name string) error {
	path, err := d.shelfPath(s, name)
	if err != nil {
		return err
	}
	if d.frozen {
		return d.writeError(ErrReadOnly)
	}
	if err := d.disk.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return d.writeError(err)
	}
	return nil
}

func (d *Dir) shelfPath(s Shelf, name string) (string, error) {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\:`) {
		return "", fmt.Errorf("cache: no file of %s can be called %q", s, name)
	}
	return filepath.Join(d.path, string(s), name), nil
}

// Scratch returns a folder in which the action with key k may keep what it needs to go
// on after it was interrupted or killed. It is made if it is missing, and stays until
// DropScratch.
func (d *Dir) Scratch(k Key) (path string, err error) {
	if d.frozen {
		return "", d.writeError(ErrReadOnly)
	}
	path = d.scratchPath(k)
	return path, d.writeError(d.disk.MkdirAll(path, 0o777))
}

// DropScratch removes the scratch folder of k, if there is one.
func (d *Dir) DropScratch(k Key) error {
	if d.frozen {
		return d.writeError(ErrReadOnly)
	}
	return d.writeError(d.disk.RemoveAll(d.scratchPath(k)))
}

func (d *Dir) scratchPath(k Key) string { return filepath.Join(d.path, scratchDir, k.String()) }

// Trim removes the files of a shelf that were written longest ago, until there are at
// most so many and they have at most so many bytes together. The newest stays whatever
// its size is.
func (d *Dir) Trim(s Shelf, files int, bytes int64) error {
	if d.frozen {
		return d.writeError(ErrReadOnly)
	}
	var kept []fs.FileInfo
	for _, e := range d.list(filepath.Join(d.path, string(s))) {
		if fi, err := e.Info(); err == nil {
			kept = append(kept, fi)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var sum int64
	for i, fi := range kept {
		if sum += fi.Size(); i > 0 && (i >= files || sum > bytes) {
			if err := d.Discard(s, fi.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
