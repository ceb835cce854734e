package cache

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// leftoverAge is how long a file that nobody holds is left alone: longer than
	// any pause between making a file and locking it.
	leftoverAge = 24 * time.Hour

	// partialAge is the same in a user's folder, where a leftover is in the way.
	partialAge = time.Minute

	// quarantineAge is how long a damaged file can be looked at.
	quarantineAge = 7 * 24 * time.Hour
)

// sweep deletes what killed processes left behind, and damaged files that were kept
// long enough. What it cannot delete it leaves.
func (d *Dir) sweep() {
	for _, folder := range []string{tempDir, locksDir} {
		d.sweepUnlocked(filepath.Join(d.path, folder), leftoverAge, func(string) bool { return true })
	}
	d.sweepQuarantine()
}

// sweepUnlocked deletes the files of a folder that no process holds, if they were not
// written to for a while and their name is one of those meant.
func (d *Dir) sweepUnlocked(folder string, age time.Duration, meant func(name string) bool) {
	for _, e := range d.list(folder) {
		fi, err := e.Info()
		if err != nil || !meant(e.Name()) || !fi.Mode().IsRegular() || d.now().Sub(fi.ModTime()) < age {
			continue
		}
		f, err := d.disk.OpenFile(filepath.Join(folder, e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if ok, err := f.TryLock(); ok && err == nil && d.isAt(f, f.Name()) {
			d.unlockFile(f)
			continue
		}
		f.Close()
	}
}

// sweepQuarantine goes by the time in a file's name: its own is that of the blob.
func (d *Dir) sweepQuarantine() {
	for _, e := range d.list(filepath.Join(d.path, quarantineDir)) {
		if at, ok := quarantinedAt(e.Name()); ok && d.now().Sub(at) > quarantineAge {
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
