package cache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bonsai/cache/disk"
)

// hashBuffer is the read size when hashing a file: past 256 KiB nothing is gained.
const hashBuffer = 256 << 10

// isMarked reports whether nobody wrote to a blob since it was stored: its time is
// still a whole second. By chance one write in a billion looks so.
func isMarked(fi fs.FileInfo) bool {
	return fi.Mode().IsRegular() && fi.ModTime().Nanosecond() == 0
}

// mark sets the time that isMarked looks for.
func (d *Dir) mark(path string, now time.Time) error {
	return d.disk.Chtimes(path, now.Truncate(time.Second))
}

// checkTime hashes an open blob if its time says that it may have been changed.
func (d *Dir) checkTime(digest Digest, f *disk.File, fi fs.FileInfo) error {
	if isMarked(fi) {
		return nil
	}
	if !fi.Mode().IsRegular() {
		return d.badBlob(digest, f, "it is not a file")
	}
	if s, err := f.Stamp(); err == nil {
		if known, ok := d.trusted.Load(digest); ok && known == s {
			return nil
		}
	}
	return d.rehash(digest, f)
}

// rehash hashes an open blob. A good one is trusted from then on; a bad one, or one
// that the disk cannot read any more, is moved away.
func (d *Dir) rehash(digest Digest, f *disk.File) error {
	before, err := f.Stamp()
	if err != nil {
		return fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	out, err := hashAll(context.Background(), f)
	if disk.IsDamage(err) {
		return d.badBlob(digest, f, err.Error())
	}
	if err != nil {
		return fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	if out.Digest != digest {
		return d.badBlob(digest, f, fmt.Sprintf("its %d bytes have digest %s", out.Size, out.Digest.Short()))
	}
	// One that was written to meanwhile is looked at again next time.
	if after, err := f.Stamp(); err == nil && after.Modified == before.Modified {
		d.trust(digest, f.Name(), after)
	}
	return nil
}

// trust marks a good blob, or remembers it for this process if that is not possible.
func (d *Dir) trust(digest Digest, path string, st disk.Stamp) {
	if d.frozen || d.mark(path, d.now()) != nil {
		d.trusted.Store(digest, st)
	}
}

// badBlob moves a blob away and returns why.
func (d *Dir) badBlob(digest Digest, f *disk.File, reason string) error {
	d.quarantine(f)
	return &MissError{What: "blob " + digest.Short(), Reason: reason, Err: ErrCorrupt}
}

// quarantine moves a damaged file away, so that it is made again and can still be
// looked at. f is open under its name in the store; if another file has that name by
// now, that one stays. A file that cannot be moved stays, and stays a miss.
func (d *Dir) quarantine(f *disk.File) {
	if d.frozen {
		return
	}
	bad, err := f.Stat()
	if err != nil {
		return
	}
	if now, err := d.disk.Stat(f.Name()); err != nil || !os.SameFile(bad, now) {
		return
	}
	to := filepath.Join(d.path, quarantineDir)
	if err := d.disk.MkdirAll(to, 0o777); err != nil {
		return
	}
	name := fmt.Sprintf("%s-%d", filepath.Base(f.Name()), d.now().Unix())
	// The caller reports the damage, which matters more than a failure to tidy up.
	_ = d.disk.Rename(f.Name(), filepath.Join(to, name))
}

// hashAll hashes a file from its start, whatever its offset. It looks at ctx between
// reads.
func hashAll(ctx context.Context, f io.ReaderAt) (Output, error) {
	h := sha256.New()
	n, err := hashInto(ctx, f, h)
	if err != nil {
		return Output{}, err
	}
	return Output{Digest: sumOf(h), Size: n}, nil
}

// hashInto writes a file to h from its start, and returns its size in bytes.
func hashInto(ctx context.Context, f io.ReaderAt, h io.Writer) (int64, error) {
	buf := make([]byte, hashBuffer)
	var n int64
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := f.ReadAt(buf, n)
		n += int64(k)
		if _, err := h.Write(buf[:k]); err != nil {
			return n, err
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func sumOf(h hash.Hash) (d Digest) {
	h.Sum(d[:0])
	return d
}
