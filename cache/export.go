package cache

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"bonsai/cache/disk"
)

// How Export put a blob at a user's path.
const (
	Present  = "present"  // the file was there already, with these bytes
	Reflink  = "reflink"  // a file that shares its blocks with the blob until one is written
	Hardlink = "hardlink" // a second, read-only name of the blob
	Copy     = "copy"     // a file of its own
)

// partial ends the name of a file that is being exported. One that a killed process
// left is deleted by a later export to the same path.
const partial = ".partial"

// Export puts a blob at path, which it replaces, and says how: Present, Reflink,
// Hardlink or Copy, the first that is possible. The folder is made if it is missing.
// At any moment path is absent, the old file, or the whole new one.
//
// A hard link is read-only for everyone, since a write through it would change the
// blob under its digest; whoever wants to edit the file copies it. A write by someone
// whom that does not stop is noticed: see Dir. A link costs no room but must be on
// the file system of the cache.
//
// A blob in chunks is put together: always a Copy, checked on the way.
func (d *Dir) Export(digest Digest, path string) (how string, err error) {
	b, err := d.Open(digest)
	if err != nil {
		return "", err
	}
	defer b.Close()
	if d.isPresent(digest, b, path) {
		return Present, nil
	}
	how, err = d.export(digest, b, path)
	switch {
	case err == nil:
		return how, nil
	case disk.IsFull(err):
		return "", fmt.Errorf("export %s: %w: %w", path, ErrFull, err)
	default:
		return "", fmt.Errorf("export %s: %w", path, err)
	}
}

// isPresent reports whether path is the blob already, or a file with its bytes.
func (d *Dir) isPresent(digest Digest, blob Blob, path string) bool {
	fi, err := d.disk.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() != blob.Size() {
		return false
	}
	if b, ok := blob.(*fileBlob); ok {
		if mine, err := b.file.Stat(); err == nil && os.SameFile(fi, mine) {
			return true
		}
	}
	st, err := d.disk.StampAt(path)
	if err != nil {
		return false
	}
	out, ok := d.knownSource(st)
	return ok && out.Digest == digest
}

// export makes the file beside path and renames it.
func (d *Dir) export(digest Digest, blob Blob, path string) (how string, err error) {
	dir, base := filepath.Split(path)
	dir = filepath.Clean(dir)
	if err := d.makeDir(dir); err != nil {
		return "", err
	}
	if fi, err := d.disk.Lstat(path); err == nil && fi.IsDir() {
		return "", syscall.EISDIR
	}
	d.sweepPartials(dir, base)
	temp := filepath.Join(dir, fmt.Sprintf(".%s.%d-%s%s", base, d.now().Unix(), rand.Text()[:8], partial))
	defer d.disk.Remove(temp)
	file, whole := blob.(*fileBlob)
	switch {
	case whole && file.file.Reflink(temp) == nil:
		how, err = Reflink, d.place(digest, temp, path)
	case whole && d.disk.Link(file.file.Name(), temp) == nil:
		how, err = Hardlink, d.disk.Rename(temp, path)
	default:
		how, err = Copy, d.copyBlob(digest, blob, temp)
		if err == nil {
			err = d.place(digest, temp, path)
		}
	}
	if err != nil {
		return "", err
	}
	return how, d.disk.SyncDir(dir)
}

// place renames a finished file and remembers its digest, so that it is not exported
// again. That is safe at once because its time is set to one in the past: whoever
// writes to the file, however soon, sets another.
func (d *Dir) place(digest Digest, temp, path string) error {
	at := d.now().Add(-racy).Truncate(time.Second)
	marked := d.mark(temp, at) == nil
	if err := d.disk.Rename(temp, path); err != nil {
		return err
	}
	if st, err := d.disk.StampAt(path); err == nil && marked && st.Modified == at.UnixNano() {
		d.rememberSource(st, digest)
	}
	return nil
}

// copyBlob copies a blob, and checks its digest since it reads it all. One that is
// damaged is moved away.
func (d *Dir) copyBlob(digest Digest, blob Blob, path string) error {
	f, err := d.openTemp(path)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = hashInto(context.Background(), blob, io.MultiWriter(f, h))
	if err == nil && sumOf(h) != digest {
		err = &MissError{What: "blob " + digest.Short(), Reason: "its bytes have another digest", Err: ErrCorrupt}
		_ = d.Verify(digest)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
