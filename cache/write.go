package cache

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bonsai/cache/disk"
)

// writeBuffer joins small writes: ops write headers and rows of a few bytes.
const writeBuffer = 64 << 10

// openTemp makes a new file and locks it, so that sweep can tell it from a leftover.
func (d *Dir) openTemp(path string) (*disk.File, error) {
	f, err := d.disk.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	// Where locks do not exist, the age alone tells.
	_, _ = f.TryLock()
	return f, nil
}

// temp makes a new file in the file system of the store.
func (d *Dir) temp() (*disk.File, error) {
	if d.frozen {
		return nil, d.writeError(ErrReadOnly)
	}
	path := filepath.Join(d.path, tempDir, fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()))
	f, err := d.openTemp(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.disk.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			f, err = d.openTemp(path)
		}
	}
	return f, d.writeError(err)
}

// Create starts a new blob. A large one is stored in chunks, those of which that other
// blobs have are shared: see Options. Nothing is read from it before Commit, but chunks
// are blobs of their own, and stay after Abort until a gc.
func (d *Dir) Create() (Writer, error) { return d.create(false) }

// CreateTransient starts a new blob that will not stay for long: it is one file, however
// large it is.
func (d *Dir) CreateTransient() (Writer, error) { return d.create(true) }

func (d *Dir) create(whole bool) (Writer, error) {
	f, err := d.temp()
	if err != nil {
		return nil, err
	}
	w := &dirWriter{d: d, file: f, hash: sha256.New(), whole: whole}
	w.buf = bufio.NewWriterSize(writerFunc(w.flush), writeBuffer)
	return w, nil
}

// A dirWriter is a Writer of a Dir; file is nil once it is finished.
type dirWriter struct {
	d    *Dir
	file *disk.File
	buf  *bufio.Writer
	hash hash.Hash
	size int64

	whole  bool         // never in chunks
	chunks *chunkWriter // once it is large enough
}

// writerFunc makes a function a writer.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Write implements io.Writer. An error stays: all later calls return it.
func (w *dirWriter) Write(p []byte) (int, error) {
	if w.file == nil {
		return 0, errFinished
	}
	n, err := w.buf.Write(p)
	return n, w.d.writeError(err)
}

// flush writes and hashes what the buffer holds.
func (w *dirWriter) flush(p []byte) (n int, err error) {
	if w.chunks == nil && !w.whole && w.size+int64(len(p)) > w.d.chunkAbove {
		if err := w.split(); err != nil {
			return 0, err
		}
	}
	if w.chunks != nil {
		n, err = w.chunks.Write(p)
	} else {
		n, err = w.file.Write(p)
	}
	w.hash.Write(p[:n])
	w.size += int64(n)
	return n, err
}

// split goes on in chunks. What was written so far is written again, most likely before
// the first of it has reached the disk; the file is for the list then.
func (w *dirWriter) split() error {
	w.chunks = w.d.newChunkWriter()
	if _, err := io.Copy(w.chunks, io.NewSectionReader(w.file, 0, w.size)); err != nil {
		return err
	}
	return w.file.Truncate(0)
}

// Commit implements Writer.
func (w *dirWriter) Commit() (Output, error) {
	if w.file == nil {
		return Output{}, errFinished
	}
	err := w.buf.Flush()
	if err == nil && w.chunks != nil {
		err = w.list()
	}
	if err != nil {
		return Output{}, errors.Join(w.d.writeError(err), w.Abort())
	}
	f := w.file
	w.file = nil
	out := Output{Digest: sumOf(w.hash), Size: w.size}
	if size, err := w.d.Stat(out.Digest); err == nil && size == out.Size {
		if path, ok := w.d.renewBlob(out.Digest); ok {
			// Whoever made it may not have come so far as to make its name durable.
			err := w.d.disk.SyncDir(filepath.Dir(path))
			return out, errors.Join(w.d.writeError(err), w.d.discard(f))
		}
	}
	if w.chunks != nil {
		return out, w.d.publish(f, w.d.listPath(out.Digest), true)
	}
	return out, w.d.publish(f, w.d.blobPath(out.Digest), true)
}

// list writes which chunks there are into the file, once they are stored.
func (w *dirWriter) list() error {
	if err := w.chunks.finish(); err != nil {
		return err
	}
	_, err := w.file.WriteAt(w.chunks.list.encode(), 0)
	return err
}

// renewBlob renews the file of a blob, or the list of its chunks.
func (d *Dir) renewBlob(digest Digest) (path string, ok bool) {
	if path = d.blobPath(digest); d.renew(path) {
		return path, true
	}
	path = d.listPath(digest)
	return path, d.renew(path)
}

// renew gives a blob that is stored once more the time of now, so that a gc does not take
// it for an old one. It returns false if the blob is gone.
func (d *Dir) renew(path string) bool {
	fi, err := d.disk.Stat(path)
	if err == nil && isMarked(fi) && d.isStale(fi) {
		err = d.mark(path, d.now())
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// Abort implements Writer.
func (w *dirWriter) Abort() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	if w.chunks != nil {
		w.chunks.stop()
	}
	return w.d.discard(f)
}

// discard drops a temporary file. That it could not be closed does not matter.
func (d *Dir) discard(f *disk.File) error {
	f.Close()
	return d.writeError(d.disk.Remove(f.Name()))
}

// writeFile replaces the file path with b, atomically and durably.
func (d *Dir) writeFile(path string, b []byte) error {
	return d.writeFileAt(path, b, time.Time{})
}

// writeFileAt is writeFile of a file that was last changed at a time; zero is now, by
// the file system's clock.
func (d *Dir) writeFileAt(path string, b []byte, at time.Time) error {
	f, err := d.temp()
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(d.writeError(err), d.discard(f))
	}
	if !at.IsZero() {
		_ = d.disk.Chtimes(f.Name(), at) // one that cannot be set is off by the difference of clocks
	}
	return d.publish(f, path, false)
}

// publish gives a temporary file its name in the store, durably; blobs become
// read-only and get their mark. If that fails nothing of the file is left.
func (d *Dir) publish(f *disk.File, path string, blob bool) error {
	if err := d.name(f, path, blob); err != nil {
		return err
	}
	return d.writeError(d.disk.SyncDir(filepath.Dir(path)))
}

// name is publish, but for making the name durable.
func (d *Dir) name(f *disk.File, path string, blob bool) error {
	err := f.Sync()
	if err == nil && blob {
		err = d.seal(f.Name())
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = d.rename(f.Name(), path)
	}
	if err != nil {
		d.disk.Remove(f.Name())
	}
	return d.writeError(err)
}

// seal marks a file and makes it read-only.
func (d *Dir) seal(path string) error {
	// A blob that cannot be marked is hashed again when it is used.
	_ = d.mark(path, d.now())
	fi, err := d.disk.Stat(path)
	if err != nil {
		return err
	}
	if err := d.disk.Chmod(path, fi.Mode().Perm()&0o444); !disk.IsUnsupported(err) {
		return err
	}
	return nil // its mark tells of writes
}

// rename renames a file into a folder, which is made if it is missing.
func (d *Dir) rename(from, to string) error {
	err := d.disk.Rename(from, to)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.makeDir(filepath.Dir(to)); err != nil {
		return err
	}
	return d.disk.Rename(from, to)
}

// makeDir makes a folder and those above it that are missing, durably.
func (d *Dir) makeDir(path string) error {
	var missing []string
	for dir := path; ; dir = filepath.Dir(dir) {
		_, err := d.disk.Stat(dir)
		if err == nil || dir == filepath.Dir(dir) {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, dir)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := d.disk.MkdirAll(path, 0o777); err != nil {
		return err
	}
	for _, dir := range missing {
		if err := d.disk.SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// writeError says what a failed write to the store means for its caller.
func (d *Dir) writeError(err error) error {
	switch prefix := "cache " + d.path + ": "; {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), prefix):
		return err // of a chunk
	case errors.Is(err, ErrReadOnly), errors.Is(err, ErrFull), errors.Is(err, ErrNoLocks):
	case disk.IsReadOnly(err):
		err = fmt.Errorf("%w: %w", ErrReadOnly, err)
	case disk.IsFull(err):
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("cache %s: %w", d.path, err)
}
