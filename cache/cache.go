// Package cache keeps bytes under their digest and results under their key.
//
// It knows blobs, digests and keys, and not why anything is stored: what a key
// stands for is decided by who calls. Dir is the store on disk, safe for many
// processes, for kill -9 and for lost power; Mem is the same in memory, for
// tests. Beside the store, Dir remembers the digests of users' files, the last
// key of an action, and who works on a key right now.
//
// Start with Dir, then Result; chunk.go has how large blobs are cut. Package
// cachetest holds the suite that every store passes.
package cache

import (
	"errors"
	"fmt"
	"io"
)

// ErrMiss says that the store does not have what was asked for. Errors that wrap
// it are a *MissError, which has the reason.
var ErrMiss = errors.New("not in the cache")

// ErrCorrupt says that what was stored is damaged. The damaged file has been moved
// away; whoever needs the bytes makes them again. Such an error is also an ErrMiss.
var ErrCorrupt = errors.New("damaged in the cache")

// ErrReadOnly says that the cache cannot be written.
var ErrReadOnly = errors.New("the cache is read-only")

// ErrNoLocks says that the file system of the cache has no locks, so that two builds
// at once may do the same work twice.
var ErrNoLocks = errors.New("the file system has no locks")

// ErrFull says that a disk, that of the cache or of an exported file, has no room
// left, or the quota on it.
var ErrFull = errors.New("the disk is full")

// A MissError says what a store does not have and why.
type MissError struct {
	What   string // such as "result 0123456789ab" or "blob 0123456789ab"
	Reason string // such as "no result yet"
	Err    error  // ErrCorrupt if it was there and is damaged, else nil
}

// Error implements error.
func (e *MissError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v: %s", e.What, e.Err, e.Reason)
	}
	return fmt.Sprintf("%s: %s", e.What, e.Reason)
}

// Is reports whether target is ErrMiss: every MissError is one.
func (e *MissError) Is(target error) bool { return target == ErrMiss }

// Unwrap returns ErrCorrupt if that is why.
func (e *MissError) Unwrap() error { return e.Err }

// A Writer takes the bytes of one new blob and hashes them on the way. Nothing is
// visible under the digest before Commit. A Writer is used by one goroutine.
type Writer interface {
	io.Writer

	// Commit makes the blob durable and visible, and returns its digest and size.
	// A blob that is there already is kept as it is. After an error nothing of the
	// blob is left. A second Commit is an error.
	Commit() (Output, error)

	// Abort drops what was written. After Commit or Abort it does nothing.
	Abort() error
}

// A Blob is a stored blob open for reading. Its bytes never change, and it stays
// readable until Close even if the store drops it meanwhile. That of a Dir also has
// the method File() *os.File, unless it is stored in chunks: see Dir.Open.
type Blob interface {
	io.ReaderAt
	io.Closer

	// Size returns the length in bytes.
	Size() int64
}
