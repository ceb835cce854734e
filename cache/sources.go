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

// sources remembers the digests of users' files.
type sources struct {
	journal
	known map[fileID]source
}

// A source is a digest and the stamp of the file when it had it.
type source struct {
	stamp  stamp
	digest Digest
}

func newSources(path string) *sources {
	s := &sources{known: make(map[fileID]source)}
	s.path = path
	s.take = s.learn
	return s
}

// learn takes a line of the journal. One that it cannot read is one of a later bonsai.
func (s *sources) learn(text string) {
	if src, ok := parseSource(text); ok {
		s.known[src.stamp.id()] = src
	}
}

// find returns what is known of the file with stamp st.
func (s *sources) find(st stamp) (Output, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[st.id()].stamp != st {
		// What cannot be read is hashed anew.
		_ = s.refresh()
	}
	src, ok := s.known[st.id()]
	if !ok || src.stamp != st {
		return Output{}, false
	}
	return Output{Digest: src.digest, Size: st.Size}, true
}

// add remembers a digest and, if keep is set, writes it down.
func (s *sources) add(src source, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[src.stamp.id()] = src
	if keep {
		// What cannot be written down is hashed again by the next process.
		_ = s.append(src.String())
	}
}

// String returns the line of the journal that parseSource reads.
func (src source) String() string {
	st := src.stamp
	return fmt.Sprintf("%d %d %d %d %d %s", st.Device, st.Inode, st.Size, st.Modified, st.Changed, src.digest)
}

func parseSource(text string) (src source, ok bool) {
	words := strings.Fields(text)
	if len(words) != 6 {
		return source{}, false
	}
	var ints [5]int64
	for i := range ints {
		// Device and inode use all 64 bits.
		n, err := strconv.ParseUint(strings.TrimPrefix(words[i], "-"), 10, 64)
		if err != nil {
			return source{}, false
		}
		if ints[i] = int64(n); words[i][0] == '-' {
			ints[i] = -ints[i]
		}
	}
	digest, err := ParseDigest(words[5])
	return source{
		stamp: stamp{
			Device: uint64(ints[0]), Inode: uint64(ints[1]), Size: ints[2], Modified: ints[3], Changed: ints[4],
		},
		digest: digest,
	}, err == nil
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
	if out, ok := d.sources.find(st); ok {
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
			d.sources.add(source{st, out.Digest}, !d.frozen)
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
