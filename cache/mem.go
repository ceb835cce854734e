package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// errClosed is returned by a Blob that was closed.
var errClosed = errors.New("blob was closed")

// errFinished is returned by a Writer that was committed or aborted.
var errFinished = errors.New("blob was committed or aborted already")

// A Mem is a store in memory, for tests and for builds that keep nothing. It does all
// that a Dir does for a build and forgets it with the process. It is safe for
// concurrent use.
type Mem struct {
	now func() time.Time

	mu      sync.Mutex
	blobs   map[Digest][]byte
	results map[Key]Result
	last    map[string]Key
	locks   map[Key]*memLock
}

// NewMem returns an empty store. now is the clock, used to tell since when a key is
// locked.
func NewMem(now func() time.Time) *Mem {
	return &Mem{
		now:     now,
		blobs:   make(map[Digest][]byte),
		results: make(map[Key]Result),
		last:    make(map[string]Key),
		locks:   make(map[Key]*memLock),
	}
}

// Lookup returns the result of an action, or an ErrMiss.
func (m *Mem) Lookup(k Key) (Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.results[k]
	if !ok {
		return Result{}, noResult(k)
	}
	r.Outputs = slices.Clone(r.Outputs)
	return r, nil
}

// Record keeps the result of an action, in place of an earlier one.
func (m *Mem) Record(k Key, r Result) error {
	if _, err := r.MarshalJSON(); err != nil {
		return fmt.Errorf("result %s: %w", k.Short(), err)
	}
	r.Outputs = slices.Clone(r.Outputs)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.results[k] = r
	return nil
}

// Create starts a new blob.
func (m *Mem) Create() (Writer, error) { return &memWriter{m: m}, nil }

// Open returns a blob for reading, or an ErrMiss.
func (m *Mem) Open(d Digest) (Blob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.blobs[d]
	if !ok {
		return nil, noBlob(d)
	}
	return memBlob{bytes.NewReader(b)}, nil
}

// Stat returns the size of a blob in bytes, or an ErrMiss.
func (m *Mem) Stat(d Digest) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.blobs[d]
	if !ok {
		return 0, noBlob(d)
	}
	return int64(len(b)), nil
}

// Remove drops a blob, if it is there.
func (m *Mem) Remove(d Digest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, d)
	return nil
}

// Last returns the key that SetLast gave to id.
func (m *Mem) Last(id string) (Key, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.last[id]
	return k, ok
}

// SetLast remembers k as the last key of id.
func (m *Mem) SetLast(id string, k Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[id] = k
	return nil
}

// SourceDigest hashes a user's file, each time anew.
func (m *Mem) SourceDigest(ctx context.Context, path string) (Output, error) {
	f, err := os.Open(path)
	if err != nil {
		return Output{}, err
	}
	defer f.Close()
	return hashAll(ctx, f)
}

// A memLock is one key that is locked: free is closed when it is not.
type memLock struct {
	holder string
	free   chan struct{}
}

// Lock waits until no one else holds k, as Dir.Lock does between processes.
func (m *Mem) Lock(ctx context.Context, k Key, waiting func(holder string)) (unlock func(), err error) {
	for {
		mine, other := m.tryLock(ctx, k)
		if other == nil {
			return sync.OnceFunc(func() { m.unlock(k, mine) }), nil
		}
		if waiting != nil {
			waiting(other.holder)
		}
		select {
		case <-other.free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryLock returns a new lock of k, or the one that someone else holds.
func (m *Mem) tryLock(ctx context.Context, k Key) (mine, other *memLock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other = m.locks[k]; other != nil {
		return nil, other
	}
	mine = &memLock{holder: holderText(ctx, m.now()), free: make(chan struct{})}
	m.locks[k] = mine
	return mine, nil
}

func (m *Mem) unlock(k Key, l *memLock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.locks, k)
	close(l.free)
}

// A memWriter is a Writer of a Mem; m is nil once it is finished.
type memWriter struct {
	m   *Mem
	buf bytes.Buffer
}

func (w *memWriter) Write(p []byte) (int, error) {
	if w.m == nil {
		return 0, errFinished
	}
	return w.buf.Write(p)
}

func (w *memWriter) Commit() (Output, error) {
	if w.m == nil {
		return Output{}, errFinished
	}
	m, b := w.m, w.buf.Bytes()
	w.m = nil
	d := DigestOf(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blobs[d]; !ok {
		m.blobs[d] = b
	}
	return Output{Digest: d, Size: int64(len(b))}, nil
}

func (w *memWriter) Abort() error {
	w.m = nil
	return nil
}

// A memBlob is a Blob of a Mem.
type memBlob struct{ *bytes.Reader }

func (memBlob) Close() error { return nil }

var _ io.ReaderAt = memBlob{}

func noResult(k Key) error {
	return &MissError{What: "result " + k.Short(), Reason: "no result yet"}
}

func noBlob(d Digest) error {
	return &MissError{What: "blob " + d.Short(), Reason: "no such blob"}
}
