package cache

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bonsai/cache/disk"
)

const (
	// leftoverAge is how long a file that nobody holds is left alone: longer than
	// any pause between making a file and locking it.
	leftoverAge = 24 * time.Hour

	// partialAge is the same in a user's folder, where a leftover is in the way.
	partialAge = time.Minute

	// locklessAge is how long a file is left alone on a file system without locks:
	// longer than any action writes nothing to an output that it has begun.
	locklessAge = 7 * 24 * time.Hour

	// quarantineAge is how long a damaged file can be looked at.
	quarantineAge = 7 * 24 * time.Hour
)

// sweep deletes what killed processes left behind, and damaged files that were kept
// long enough. What it cannot delete it leaves.
func (d *Dir) sweep() {
	for _, folder := range []string{tempDir, locksDir} {
		d.sweepUnlocked(filepath.Join(d.path, folder))
	}
	d.sweepQuarantine()
}

// sweepUnlocked deletes the files of a folder that were not written to for a while, or
// only in the future, and that no process holds.
func (d *Dir) sweepUnlocked(folder string) {
	for _, e := range d.list(folder) {
		fi, err := e.Info()
		if err == nil && fi.Mode().IsRegular() && d.now().Sub(fi.ModTime()).Abs() >= leftoverAge {
			d.removeUnlocked(filepath.Join(folder, e.Name()), fi)
		}
	}
}

// removeUnlocked deletes a file unless a process holds it.
func (d *Dir) removeUnlocked(path string, fi fs.FileInfo) {
	f, err := d.disk.OpenFile(path, os.O_RDWR, 0)
	if disk.IsReadOnly(err) {
		f, err = d.disk.Open(path) // a blob that a gc was about to delete
	}
	if err != nil {
		return
	}
	if d.isLeft(f, fi) && d.isAt(f, path) {
		d.unlockFile(f)
		return
	}
	f.Close()
}

// sweepPartials deletes what killed exports to the file base left in a folder. How old
// they are stands in their names, since a link has the times of its blob.
func (d *Dir) sweepPartials(folder, base string) {
	for _, e := range d.list(folder) {
		rest, ours := strings.CutPrefix(e.Name(), "."+base+".")
		stamp, _, named := strings.Cut(rest, "-")
		at, err := strconv.ParseInt(stamp, 10, 64)
		if !ours || !named || err != nil || !strings.HasSuffix(rest, partial) || d.now().Sub(time.Unix(at, 0)).Abs() < partialAge {
			continue
		}
		path := filepath.Join(folder, e.Name())
		fi, err := e.Info()
		if err == nil && fi.Mode().Perm()&0o222 == 0 {
			d.disk.Remove(path) // a link, which takes no time to make
		} else if err == nil {
			d.removeUnlocked(path, fi)
		}
	}
}

// isLeft locks an open file that processes hold by its lock, and reports whether none
// does. Without locks its age tells; one from before the clock went back has none.
func (d *Dir) isLeft(f *disk.File, fi fs.FileInfo) bool {
	ok, err := f.TryLock()
	if disk.IsUnsupported(err) {
		return d.now().Sub(fi.ModTime()) > locklessAge
	}
	return ok && err == nil
}

// sweepQuarantine goes by the time in a file's name: its own is that of the blob.
func (d *Dir) sweepQuarantine() {
	for _, e := range d.list(filepath.Join(d.path, quarantineDir)) {
		if at, ok := quarantinedAt(e.Name()); ok && d.now().Sub(at).Abs() > quarantineAge {
			d.disk.Remove(filepath.Join(d.path, quarantineDir, e.Name()))
		}
	}
}

func quarantinedAt(name string) (time.Time, bool) {
	_, stamp, _ := strings.Cut(name, "-")
	at, err := strconv.ParseInt(stamp, 10, 64)
	return time.Unix(at, 0), err == nil
}

// list returns the entries of a folder, none if it cannot be read.
func (d *Dir) list(folder string) []fs.DirEntry {
	entries, err := d.disk.ReadDir(folder)
	if err != nil {
		return nil
	}
	return entries
}
