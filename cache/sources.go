package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// racy is how much older than its hashing a file's times must be before they are
// trusted to tell of a later change. Two writes closer than the tick of a file system
// clock leave the same time; the coarsest in use, FAT's, is 2 s.
const racy = 2 * time.Second

// hashTries is how often a file that changes while it is hashed is tried again.
const hashTries = 3

// A stamp is what a file system says of a file without reading it. Any write to the
// file changes it, but one within the same tick of the clock.
type stamp struct {
	Device, Inode uint64
	Size          int64 // bytes
	Modified      int64 // Unix time in ns
	Changed       int64 // Unix time in ns at which anything but the access time was last changed
}

// A fileID names a file among those that exist at the same time.
type fileID struct{ Device, Inode uint64 }

// A source is a digest and the stamp of the file when it had it.
type source struct {
	stamp  stamp
	digest Digest
}

// newSources returns the journal of the digests of users' files. Names of files are
// not in it: a file that is moved or linked is the same file.
func newSources(path string) *journal[fileID, source] {
	return &journal[fileID, source]{path: path, encode: formatSource, decode: parseSource}
}

func formatSource(id fileID, src source) string {
	st := src.stamp
	return fmt.Sprintf("%d %d %d %d %d %s", id.Device, id.Inode, st.Size, st.Modified, st.Changed, src.digest)
}

func parseSource(text string) (fileID, source, bool) {
	words := strings.Fields(text)
	if len(words) != 6 {
		return fileID{}, source{}, false
	}
	device, err1 := strconv.ParseUint(words[0], 10, 64)
	inode, err2 := strconv.ParseUint(words[1], 10, 64)
	size, err3 := strconv.ParseInt(words[2], 10, 64)
	modified, err4 := strconv.ParseInt(words[3], 10, 64)
	changed, err5 := strconv.ParseInt(words[4], 10, 64)
	digest, err6 := ParseDigest(words[5])
	src := source{stamp{device, inode, size, modified, changed}, digest}
	return src.stamp.id(), src, errors.Join(err1, err2, err3, err4, err5, err6) == nil
}

// knownSource returns the digest of the file with stamp st, if it was hashed before.
func (d *Dir) knownSource(st stamp) (Output, bool) {
	src, ok := d.sources.get(st.id(), func(src source, _ bool) bool { return src.stamp == st })
	if !ok || src.stamp != st {
		return Output{}, false
	}
	return Output{Digest: src.digest, Size: st.Size}, true
}

// rememberSource keeps the digest of the file with stamp st. What cannot be written
// down is hashed again by the next process.
func (d *Dir) rememberSource(st stamp, digest Digest) {
	_ = d.sources.set(st.id(), source{st, digest}, !d.frozen)
}

// SourceDigest returns the digest and size of a user's file. It hashes the file
// unless it did before and size, times of modification and change, inode and device
// are what they were. A file modified less than two seconds before it was hashed, or
// in the future, is not remembered: it could change again and look the same.
//
// Links are followed. It returns an error for what is not a regular file, and for a
// file that keeps changing while it is read.
func (d *Dir) SourceDigest(ctx context.Context, path string) (Output, error) {
	st, err := stampAt(path)
	if err != nil {
		return Output{}, err
	}
	if out, ok := d.knownSource(st); ok {
		return out, nil
	}
	for range hashTries {
		began := d.now()
		st, out, err := hashSource(ctx, path)
		if errors.Is(err, errChanging) {
			continue
		}
		if err != nil {
			return Output{}, err
		}
		if st.before(began.Add(-racy)) {
			d.rememberSource(st, out.Digest)
		}
		return out, nil
	}
	return Output{}, fmt.Errorf("hash %s: %w", path, errChanging)
}

// errNotFile says that a source is a folder, a device or the like.
var errNotFile = errors.New("not a regular file")

// errChanging says that a file was written to while it was hashed.
var errChanging = errors.New("file changes while it is read")

// hashSource hashes a file and returns its stamp, the same before and after.
func hashSource(ctx context.Context, path string) (stamp, Output, error) {
	f, err := os.Open(path)
	if err != nil {
		return stamp{}, Output{}, err
	}
	defer f.Close()
	before, err := stampOf(f)
	if err != nil {
		return stamp{}, Output{}, err
	}
	out, err := hashAll(ctx, f)
	if err != nil {
		return stamp{}, Output{}, fmt.Errorf("hash %s: %w", path, err)
	}
	after, err := stampOf(f)
	if err == nil && (after != before || out.Size != after.Size) {
		err = errChanging
	}
	return after, out, err
}

func (s stamp) id() fileID { return fileID{s.Device, s.Inode} }

// before reports whether the file was last touched before t.
func (s stamp) before(t time.Time) bool { return max(s.Modified, s.Changed) < t.UnixNano() }
