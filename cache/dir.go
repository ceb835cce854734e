package cache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/cache/disk"
)

// The folders of a Dir.
const (
	blobsDir      = "blobs"      // ab/abcd…: bytes, named by digest, read-only
	listsDir      = "lists"      // ab/abcd…: the chunks of a large blob, named by its digest
	resultsDir    = "results"    // ab/abcd…: JSON, named by key
	locksDir      = "locks"      // abcd…: one file a key that is being worked on
	tempDir       = "tmp"        // what is being written
	quarantineDir = "quarantine" // what was found damaged, kept for a week
	leasesDir     = "leases"     // one file a running build, locked by it
	scratchDir    = "scratch"    // abcd…: a folder for an action that can go on later, named by key
	sourcesFile   = "sources"    // journal: digests of users' files
	historyFile   = "history"    // journal: last key of each action
)

// resultBuffer holds the file of nearly every result.
const resultBuffer = 8 << 10

// cacheTag marks the folder for backup programs, which leave out what can be made
// again (bford.info/cachedir).
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n# Written by bonsai: made again when missing.\n"

// A Dir is a store in a folder. It is safe for concurrent use, by any number of
// processes. Nothing is visible before it is whole and durable, and nothing in the
// folder needs a human's hand after a crash: locks die with their process, and
// leftovers are swept on a later opening.
//
// A blob is written once, made read-only, and its modification time is set to a whole
// second. A later write by anyone, say through a hard link that Export made, gives it
// a time with a fraction; such a blob is hashed again before it is trusted. On file
// systems that keep no fractions, and against decay of the disk, only sizes are
// checked on use; Verify hashes.
type Dir struct {
	path   string
	now    func() time.Time
	disk   *disk.Disk
	frozen bool // opened by OpenReadOnly

	chunkAbove int64 // bytes

	lockless atomic.Bool // Lock found that there are no locks

	sources *journal[fileID, source]
	history *journal[string, Key]
	trusted sync.Map // Digest → disk.Stamp of a blob that was hashed but could not be marked
}

// OpenDir opens the store in the folder path, which is made if it is missing, and
// sweeps what killed writers left behind. now is the clock.
//
// A folder that exists and cannot be written serves reads; what would write then
// returns an ErrReadOnly. One that cannot be read is an error.
func OpenDir(path string, now func() time.Time) (*Dir, error) {
	return OpenWith(path, now, Options{})
}

// Options say how a Dir works. The zero value is what OpenDir takes.
type Options struct {
	Disk *disk.Disk // makes the calls to file systems; nil makes them as they are

	// ChunkAbove is the size from which on a new blob is stored in chunks, in bytes;
	// 0 is 64 MiB. Chunks are of a 32nd to a 16th of it.
	ChunkAbove int64
}

// OpenWith is OpenDir with options.
func OpenWith(path string, now func() time.Time, o Options) (*Dir, error) {
	d, err := newDir(path, now, o)
	if err != nil {
		return nil, err
	}
	if err := d.prepare(); err != nil {
		return nil, err
	}
	if err := d.admits(); err != nil {
		return nil, err
	}
	d.sweep()
	return d, nil
}

// OpenReadOnly opens the store in the folder path to look at it. It makes, changes
// and deletes nothing, now and later; what would write returns an ErrReadOnly. A
// folder that is missing is an empty store, one that cannot be read an error.
func OpenReadOnly(path string, now func() time.Time) (*Dir, error) {
	d, err := newDir(path, now, Options{})
	if err != nil {
		return nil, err
	}
	if err := d.admits(); err != nil {
		return nil, err
	}
	d.frozen = true
	return d, nil
}

// admits returns an error if there is a store that this user may not look into: all that
// it holds would seem to be missing.
func (d *Dir) admits() error {
	for _, name := range []string{blobsDir, resultsDir} {
		if _, err := d.disk.Stat(filepath.Join(d.path, name, "00")); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("cache %s: %w", d.path, err)
		}
	}
	return nil
}

func newDir(path string, now func() time.Time, o Options) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if o.Disk == nil {
		o.Disk = &disk.Disk{}
	}
	d := &Dir{path: path, now: now, disk: o.Disk, chunkAbove: cmp.Or(o.ChunkAbove, chunkAbove)}
	d.sources = newSources(d, filepath.Join(path, sourcesFile))
	d.history = newHistory(d, filepath.Join(path, historyFile))
	return d, nil
}

// prepare makes the folders. That they cannot be made is an error only if there is
// nothing to read either.
func (d *Dir) prepare() error {
	for _, name := range []string{blobsDir, resultsDir, locksDir, tempDir} {
		err := d.disk.MkdirAll(filepath.Join(d.path, name), 0o777)
		if err == nil {
			continue
		}
		fi, statErr := d.disk.Stat(d.path)
		if statErr != nil || !fi.IsDir() || !disk.IsReadOnly(err) {
			return d.writeError(err)
		}
		return nil
	}
	tag := filepath.Join(d.path, "CACHEDIR.TAG")
	if _, err := d.disk.Lstat(tag); errors.Is(err, fs.ErrNotExist) {
		// A cache without its tag works as well. To write it makes the folders durable.
		_ = d.disk.SyncDir(filepath.Dir(d.path))
		_ = d.writeFile(tag, []byte(cacheTag))
	}
	return nil
}

// Path returns the absolute path of the folder.
func (d *Dir) Path() string { return d.path }

// Lookup returns the result of an action, and marks it as used now: see Touch. A result
// that is missing, damaged, or of another format is an ErrMiss with the reason. The sizes
// of the blobs that are there are checked against the result; whether all are there is
// not: see Stat.
func (d *Dir) Lookup(k Key) (Result, error) {
	path := d.resultPath(k)
	f, err := d.disk.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, noResult(k)
	}
	if err != nil {
		return Result{}, fmt.Errorf("result %s: %w", k.Short(), err)
	}
	defer f.Close()
	var b bytes.Buffer
	b.Grow(resultBuffer)
	if _, err := b.ReadFrom(f); disk.IsDamage(err) {
		return Result{}, d.badResult(k, f, err)
	} else if err != nil {
		return Result{}, fmt.Errorf("result %s: %w", k.Short(), err)
	}
	r, err := decodeResult(b.Bytes())
	if err != nil {
		return Result{}, d.badResult(k, f, err)
	}
	if err := d.checkSizes(k, r); err != nil {
		return Result{}, err
	}
	d.used(f)
	return r, nil
}

// Peek is Lookup without a mark of use, of the result alone, as to say what changed since.
func (d *Dir) Peek(k Key) (Result, error) {
	r, fi, err := d.peek(d.resultPath(k))
	if fi == nil && errors.Is(err, fs.ErrNotExist) {
		return Result{}, noResult(k)
	}
	if err != nil {
		return Result{}, &MissError{What: "result " + k.Short(), Reason: err.Error()}
	}
	return r, nil
}

// badResult moves a result that cannot be read away, unless a newer bonsai reads it.
func (d *Dir) badResult(k Key, f *disk.File, err error) error {
	miss := &MissError{What: "result " + k.Short(), Reason: err.Error()}
	if _, other := errors.AsType[*FormatError](err); other {
		return miss
	}
	miss.Err = ErrCorrupt
	d.quarantine(f)
	return miss
}

// checkSizes compares the blobs of r that are there with what r says of them.
func (d *Dir) checkSizes(k Key, r Result) error {
	for i, o := range r.Outputs {
		size := d.sizeOf(o)
		if size == o.Size {
			continue
		}
		for _, path := range []string{d.blobPath(o.Digest), d.listPath(o.Digest)} {
			if f, err := d.disk.Open(path); err == nil {
				d.quarantine(f)
				f.Close()
			}
		}
		return &MissError{
			What:   "result " + k.Short(),
			Reason: fmt.Sprintf("output %d has %d bytes, not %d", i, size, o.Size),
			Err:    ErrCorrupt,
		}
	}
	return nil
}

// sizeOf returns the size of an output's blob: that of the output if it is not there.
func (d *Dir) sizeOf(o Output) int64 {
	fi, err := d.disk.Stat(d.blobPath(o.Digest))
	if err == nil {
		return fi.Size()
	}
	if o.Size <= d.chunkAbove {
		return o.Size // it has no chunks, and is looked for each time: see BenchmarkLookup
	}
	if l, err := d.chunksOf(o.Digest); err == nil {
		return l.size
	}
	return o.Size
}

// Record keeps the result of an action, in place of an earlier one, durably.
func (d *Dir) Record(k Key, r Result) error {
	b, err := encodeResult(r)
	if err != nil {
		return fmt.Errorf("result %s: %w", k.Short(), err)
	}
	// The clock that marks are compared with is the caller's, not the file system's.
	return d.writeFileAt(d.resultPath(k), b, d.now())
}

// encodeResult returns the file of a result: two JSON values, one a line. The second
// is the SHA-256 of the first, so that a damaged result is not taken for another.
func encodeResult(r Result) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(b, checksum(b)...), nil
}

// checksum returns what follows the first value in the file of a result.
func checksum(body []byte) string { return "\n\"" + DigestOf(body).String() + "\"\n" }

// checked returns the first value of a file that ends in the checksum of it.
func checked(b []byte) (body []byte, err error) {
	const tail = len("\n\"") + 2*sha256.Size + len("\"\n")
	if len(b) < tail {
		return nil, fmt.Errorf("its %d bytes are cut short", len(b))
	}
	body = b[:len(b)-tail]
	if string(b[len(body):]) != checksum(body) {
		return nil, errors.New("its checksum does not match")
	}
	return body, nil
}

func decodeResult(b []byte) (Result, error) {
	body, err := checked(b)
	if err != nil {
		return Result{}, err
	}
	var r Result
	if err := r.UnmarshalJSON(body); err != nil {
		return Result{}, fmt.Errorf("decode result: %w", err)
	}
	return r, nil
}

// Open returns a blob for reading. A blob that is missing is an ErrMiss; one that was
// changed after it was stored is moved away and an ErrCorrupt. A blob in chunks has no
// method File, and stays readable only while its chunks are not dropped: under a lease
// (see Hold) they are not.
func (d *Dir) Open(digest Digest) (Blob, error) {
	b, err := d.openFile(digest)
	if !isAbsent(err) {
		return b, err
	}
	chunked, err := d.openChunked(digest)
	if err != nil {
		return nil, err
	}
	return chunked, nil
}

// isAbsent reports whether err says that a blob is not there, and not that it is damaged.
func isAbsent(err error) bool { return errors.Is(err, ErrMiss) && !errors.Is(err, ErrCorrupt) }

// openFile opens a blob that is one file.
func (d *Dir) openFile(digest Digest) (Blob, error) {
	f, err := d.open(digest)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	if err := d.checkTime(digest, f, fi); err != nil {
		f.Close()
		return nil, err
	}
	return &fileBlob{file: f, size: fi.Size()}, nil
}

// Stat returns the size of a blob in bytes, or the error that Open would.
func (d *Dir) Stat(digest Digest) (int64, error) {
	fi, err := d.disk.Stat(d.blobPath(digest))
	if err == nil && isMarked(fi) {
		return fi.Size(), nil
	}
	b, err := d.Open(digest)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	return b.Size(), nil
}

// statFile is Stat of a blob that is one file.
func (d *Dir) statFile(digest Digest) (int64, error) {
	fi, err := d.disk.Stat(d.blobPath(digest))
	if err == nil && isMarked(fi) {
		return fi.Size(), nil
	}
	b, err := d.openFile(digest)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	return b.Size(), nil
}

// Verify hashes a blob. It returns nil if the blob is whole; a damaged one is moved
// away and an ErrCorrupt.
func (d *Dir) Verify(digest Digest) error {
	f, err := d.open(digest)
	if isAbsent(err) {
		return d.verifyChunks(digest)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return d.rehash(digest, f)
}

// Remove deletes a blob, if it is there. Whoever has it open can read on. Its chunks, if
// it is stored so, stay until a gc finds that no other blob has them.
func (d *Dir) Remove(digest Digest) error {
	if d.frozen {
		return d.writeError(ErrReadOnly)
	}
	err := d.disk.Remove(d.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		err = d.disk.Remove(d.listPath(digest))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.writeError(err)
}

func (d *Dir) open(digest Digest) (*disk.File, error) {
	f, err := d.disk.Open(d.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noBlob(digest)
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	return f, nil
}

func (d *Dir) blobPath(digest Digest) string { return d.shard(blobsDir, digest.String()) }

func (d *Dir) resultPath(k Key) string { return d.shard(resultsDir, k.String()) }

// shard is called for every action of a build; filepath.Join would take half its time.
func (d *Dir) shard(folder, name string) string {
	const sep = string(filepath.Separator)
	return d.path + sep + folder + sep + name[:2] + sep + name
}

// A fileBlob is a Blob of a Dir.
type fileBlob struct {
	file *disk.File
	size int64
}

func (b *fileBlob) ReadAt(p []byte, off int64) (int, error) { return b.file.ReadAt(p, off) }
func (b *fileBlob) Close() error                            { return b.file.Close() }
func (b *fileBlob) Size() int64                             { return b.size }

// File returns the open file, for memory maps. It is closed with the blob.
func (b *fileBlob) File() *os.File { return b.file.OS() }
