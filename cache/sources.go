package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bonsai/cache/disk"
)

// racy is how much older than its hashing a file's times must be before they are
// trusted to tell of a later change. Two writes closer than the tick of a file system
// clock leave the same time; the coarsest in use, FAT's, is 2 s.
const racy = 2 * time.Second

// hashTries is how often a file that changes while it is hashed is tried again.
const hashTries = 3

// A fileID names a file among those that exist at the same time.
type fileID struct{ Device, Inode uint64 }

// A source is a digest and the stamp of the file when it had it.
type source struct {
	stamp  disk.Stamp
	digest Digest
}

// newSources returns the journal of the digests of users' files. Names of files are
// not in it: a file that is moved or linked is the same file.
func newSources(d *Dir, path string) *journal[fileID, source] {
	return &journal[fileID, source]{d: d, path: path, encode: formatSource, decode: parseSource}
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
	src := source{disk.Stamp{Device: device, Inode: inode, Size: size, Modified: modified, Changed: changed}, digest}
	return idOf(src.stamp), src, errors.Join(err1, err2, err3, err4, err5, err6) == nil
}

// knownSource returns the digest of the file with stamp st, if it was hashed before.
func (d *Dir) knownSource(st disk.Stamp) (Output, bool) {
	src, ok := d.sources.get(idOf(st), func(src source, _ bool) bool { return src.stamp == st })
	if !ok || src.stamp != st {
		return Output{}, false
	}
	return Output{Digest: src.digest, Size: st.Size}, true
}

// rememberSource keeps the digest of the file with stamp st. What cannot be written
// down is hashed again by the next process.
func (d *Dir) rememberSource(st disk.Stamp, digest Digest) {
	_ = d.sources.set(idOf(st), source{st, digest}, !d.frozen)
}

// SourceDigest returns the digest and size of a user's file. It hashes the file
// unless it did before and size, times of modification and change, inode and device
// are what they were. A file modified less than two seconds before it was hashed, or
// in the future, is not remembered: it could change again and look the same.
//
// Links are followed. It returns an error for what is not a regular file, and for a
// file that keeps changing while it is read.
func (d *Dir) SourceDigest(ctx context.Context, path string) (Output, error) {
	st, err := d.disk.StampAt(path)
	if err != nil {
		return Output{}, err
	}
	if out, ok := d.knownSource(st); ok {
		return out, nil
	}
	for range hashTries {
		began := d.now()
		st, out, err := d.hashSource(ctx, path)
		if errors.Is(err, errChanging) {
			continue
		}
		if err != nil {
			return Output{}, err
		}
		if st.Before(began.Add(-racy)) {
			d.rememberSource(st, out.Digest)
		}
		return out, nil
	}
	return Output{}, fmt.Errorf("hash %s: %w", path, errChanging)
}

// errChanging says that a file was written to while it was hashed.
var errChanging = errors.New("file changes while it is read")

// hashSource hashes a file and returns its stamp, the same before and after.
func (d *Dir) hashSource(ctx context.Context, path string) (disk.Stamp, Output, error) {
	f, err := d.disk.Open(path)
	if err != nil {
		return disk.Stamp{}, Output{}, err
	}
	defer f.Close()
	before, err := f.Stamp()
	if err != nil {
		return disk.Stamp{}, Output{}, err
	}
	out, err := hashAll(ctx, f)
	if err != nil {
		return disk.Stamp{}, Output{}, fmt.Errorf("hash %s: %w", path, err)
	}
	after, err := f.Stamp()
	if err == nil && (after != before || out.Size != after.Size) {
		err = errChanging
	}
	return after, out, err
}

func idOf(st disk.Stamp) fileID { return fileID{st.Device, st.Inode} }
