package cache

import (
	"errors"
	"io/fs"
	"iter"
	"time"

	"bonsai/cache/disk"
)

// markEvery is how old the mark of the last use of a result may be before it is set
// anew: a build that looks up a hundred thousand results writes to them once an hour
// and not each time. What was used since some moment has a mark that is at most this
// much older.
const markEvery = time.Hour

// Touch marks results as used now, as Lookup does: the time of a result's file is that
// of its last use, within an hour. Results that are not there are left out; so is all
// in a Dir that was opened to be read.
func (d *Dir) Touch(keys iter.Seq[Key]) error {
	if d.frozen {
		return nil
	}
	for k := range keys {
		path := d.resultPath(k)
		fi, err := d.disk.Stat(path)
		if err == nil && d.isStale(fi) {
			err = d.disk.Chtimes(path, d.now())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return d.writeError(err)
		}
	}
	return nil
}

// used marks the open file of a result as used. That it cannot be written, as another
// user's, makes it an older one to gc and nothing else.
func (d *Dir) used(f *disk.File) {
	if d.frozen {
		return
	}
	if fi, err := f.Stat(); err == nil && d.isStale(fi) {
		_ = d.disk.Chtimes(f.Name(), d.now())
	}
}

// isStale reports whether a mark must be set anew. One in the future was set before
// the clock went back.
func (d *Dir) isStale(fi fs.FileInfo) bool {
	return d.now().Sub(fi.ModTime()).Abs() >= markEvery
}
