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

	// quarantineAge is how long a damaged file can be looked at.
	quarantineAge = 7 * 24 * time.Hour
)

// sweep deletes what killed processes left behind, and damaged files that were kept
// long enough. What it cannot delete it leaves.
func (d *Dir) sweep() {
	d.sweepUnlocked(tempDir)
	d.sweepUnlocked(locksDir)
	d.sweepQuarantine()
}

// sweepUnlocked deletes the old files of a folder that no process holds.
func (d *Dir) sweepUnlocked(folder string) {
	for _, e := range d.list(folder) {
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() || d.now().Sub(fi.ModTime()) < leftoverAge {
			continue
		}
		f, err := os.OpenFile(filepath.Join(d.path, folder, e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if ok, err := tryLock(f); ok && err == nil && isAt(f, f.Name()) {
			unlockFile(f)
			continue
		}
		f.Close()
	}
}

// sweepQuarantine goes by the time in a file's name: its own is that of the blob.
func (d *Dir) sweepQuarantine() {
	for _, e := range d.list(quarantineDir) {
		_, stamp, _ := strings.Cut(e.Name(), "-")
		at, err := strconv.ParseInt(stamp, 10, 64)
		if err == nil && d.now().Sub(time.Unix(at, 0)) > quarantineAge {
			os.Remove(filepath.Join(d.path, quarantineDir, e.Name()))
		}
	}
}

// list returns the entries of a folder of the store, none if it cannot be read.
func (d *Dir) list(folder string) []fs.DirEntry {
	entries, err := os.ReadDir(filepath.Join(d.path, folder))
	if err != nil {
		return nil
	}
	return entries
}
