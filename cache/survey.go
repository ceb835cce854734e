package cache

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"bonsai/cache/disk"
)

// A Survey is what a store holds at one moment: what gc, ls and du go by. Builds that
// run beside it may have changed some of it since.
type Survey struct {
	At      time.Time
	Results []Stored // in order of their keys
	Blobs   map[Digest]*StoredBlob
	Pins    []Pin
	Leases  []Lease
	Other   map[string]int64 // bytes of files that are neither, by folder; "" is the store's own
	Foreign int              // results that cannot be read now: of a later bonsai, or for an error of the disk
}

// A Stored is one result, and what is there of its blobs.
type Stored struct {
	Key       Key
	Step      string // that first ran it; "" if it was recorded before bonsai kept that
	Action    string
	Outputs   []Output
	There     []bool // for each output, whether its blob is in the store
	Took      time.Duration
	Transient bool      // a build drops its blobs once nothing needs them
	Used      time.Time // last, within an hour
	Evicted   time.Time // when blobs were dropped to make room; zero: they were not
	Size      int64     // bytes of the result itself
	Pins      []string  // names of the pins that keep it
	buried    bool      // evicted by whoever made the survey
}

// Bytes returns the bytes of its blobs that are there; one that it shares with other
// results counts in full.
func (s *Stored) Bytes() (n int64) {
	for i, o := range s.Outputs {
		if s.There[i] {
			n += o.Size
		}
	}
	return n
}

// A StoredBlob is one blob.
type StoredBlob struct {
	Size    int64
	Stored  time.Time // or last made again and found to be there
	Results []int     // in Survey.Results, those that name it
	Pins    []string  // names of the pins that keep it, by themselves or by a result
	links   int       // names it has, in the store and outside; 1 if that is not known

	chunks []Digest // if it is stored in chunks; Size is then that of their list
	lists  int      // lists that name it as a chunk
	direct bool     // a result names it, and not only one of a blob that it is a chunk of
}

// Bytes returns the bytes of all that the store holds.
func (s *Survey) Bytes() (n int64) {
	for _, b := range s.Blobs {
		n += b.Size
	}
	for i := range s.Results {
		n += s.Results[i].Size
	}
	for _, size := range s.Other {
		n += size
	}
	return n
}

// Survey looks at the whole store. It changes nothing, and marks nothing as used.
func (d *Dir) Survey(ctx context.Context) (*Survey, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &Survey{At: d.now(), Blobs: map[Digest]*StoredBlob{}, Other: map[string]int64{}}
	var err error
	if s.Pins, err = d.Pins(); err != nil {
		return nil, err
	}
	if s.Leases, err = d.Leases(); err != nil {
		return nil, err
	}
	// Results come first: a blob is stored before the result that names it, and one
	// that is dropped meanwhile is missed and not counted.
	if err := d.surveyResults(ctx, s); err != nil {
		return nil, err
	}
	if err := d.surveyBlobs(ctx, s); err != nil {
		return nil, err
	}
	if err := d.surveyLists(ctx, s); err != nil {
		return nil, err
	}
	d.surveyOther(s)
	s.connect()
	return s, nil
}

func (d *Dir) surveyResults(ctx context.Context, s *Survey) error {
	var mu sync.Mutex
	err := d.eachFile(ctx, resultsDir, func(path string, _ fs.FileInfo) {
		k, err := ParseKey(filepath.Base(path))
		if err != nil {
			return
		}
		r, fi, err := d.peek(path)
		mu.Lock()
		defer mu.Unlock()
		if isForeign(err) {
			s.Foreign++
		}
		if fi == nil {
			return
		}
		if err != nil { // damaged, or of a later bonsai: it takes room
			s.Other[resultsDir] += fi.Size()
			return
		}
		s.Results = append(s.Results, Stored{
			Key: k, Step: r.Step, Action: r.Action, Outputs: r.Outputs, There: make([]bool, len(r.Outputs)),
			Took: r.Duration, Transient: r.Transient, Used: fi.ModTime(), Evicted: r.Evicted, Size: fi.Size(),
		})
	})
	slices.SortFunc(s.Results, func(a, b Stored) int { return slices.Compare(a.Key[:], b.Key[:]) })
	return err
}

// isForeign reports whether a result that could not be read for err may be a good one.
func isForeign(err error) bool {
	_, format := errors.AsType[*FormatError](err)
	_, call := errors.AsType[*fs.PathError](err)
	return format || call && !errors.Is(err, fs.ErrNotExist)
}

// peek reads a result without any effect on it. The file's state is nil if it could not
// be had.
func (d *Dir) peek(path string) (Result, fs.FileInfo, error) {
	f, err := d.disk.Open(path)
	if err != nil {
		return Result{}, nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return Result{}, nil, err
	}
	b := make([]byte, fi.Size())
	if _, err := f.ReadAt(b, 0); err != nil && fi.Size() > 0 {
		return Result{}, fi, err
	}
	r, err := decodeResult(b)
	return r, fi, err
}

func (d *Dir) surveyBlobs(ctx context.Context, s *Survey) error {
	var mu sync.Mutex
	return d.eachFile(ctx, blobsDir, func(path string, fi fs.FileInfo) {
		digest, err := ParseDigest(filepath.Base(path))
		if err != nil || fi == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		s.Blobs[digest] = &StoredBlob{Size: fi.Size(), Stored: fi.ModTime(), links: disk.Links(fi)}
	})
}

// surveyLists finds the blobs that are stored in chunks. They come after the chunks,
// and after the results, which are stored last.
func (d *Dir) surveyLists(ctx context.Context, s *Survey) error {
	var mu sync.Mutex
	err := d.eachFile(ctx, listsDir, func(path string, fi fs.FileInfo) {
		digest, err := ParseDigest(filepath.Base(path))
		if err != nil || fi == nil {
			return
		}
		chunks, err := d.peekChunks(path)
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, errLaterList) {
			s.Other[listsDir] += fi.Size()
			s.Foreign++
			return
		}
		if err != nil {
			chunks = []Digest{} // damaged: so whoever reads it finds
		}
		if s.Blobs[digest] == nil { // else it is there in both forms, and the file is read
			s.Blobs[digest] = &StoredBlob{Size: fi.Size(), Stored: fi.ModTime(), links: 1, chunks: chunks}
		}
		for _, c := range chunks {
			if b := s.Blobs[c]; b != nil {
				b.lists++
			}
		}
	})
	return err
}

// eachFile calls visit with every file of a sharded folder, from several goroutines.
func (d *Dir) eachFile(ctx context.Context, folder string, visit func(path string, fi fs.FileInfo)) error {
	shards, err := d.disk.ReadDir(filepath.Join(d.path, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	work := make(chan string)
	errs := make([]error, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for shard := range work {
				errs[i] = errors.Join(errs[i], d.eachIn(shard, visit))
			}
		})
	}
	for _, shard := range shards {
		if shard.IsDir() && ctx.Err() == nil {
			work <- filepath.Join(d.path, folder, shard.Name())
		}
	}
	close(work)
	wg.Wait()
	return cmp.Or(ctx.Err(), errors.Join(errs...))
}

func (d *Dir) eachIn(shard string, visit func(path string, fi fs.FileInfo)) error {
	entries, err := d.disk.ReadDir(shard)
	for _, e := range entries {
		fi, _ := e.Info() // nil if it went meanwhile
		visit(filepath.Join(shard, e.Name()), fi)
	}
	return err
}

// surveyOther adds up the files of all other folders.
func (d *Dir) surveyOther(s *Survey) {
	for _, e := range d.list(d.path) {
		switch {
		case slices.Contains([]string{blobsDir, listsDir, resultsDir, locksDir, leasesDir}, e.Name()):
		case e.IsDir():
			size, _ := d.measure(filepath.Join(d.path, e.Name()))
			s.Other[e.Name()] += size
		default:
			if fi, err := e.Info(); err == nil {
				s.Other[""] += fi.Size()
			}
		}
	}
}

// measure returns the bytes of a file, or of all files in a folder and below it, and
// when one was last written. What goes meanwhile does not count.
func (d *Dir) measure(path string) (n int64, newest time.Time) {
	fi, err := d.disk.Lstat(path)
	if err != nil {
		return 0, newest
	}
	newest = fi.ModTime()
	if !fi.IsDir() {
		return fi.Size(), newest
	}
	for _, e := range d.list(path) {
		size, at := d.measure(filepath.Join(path, e.Name()))
		n += size
		if at.After(newest) {
			newest = at
		}
	}
	return n, newest
}

// connect finds which results name which blobs, and what pins keep.
func (s *Survey) connect() {
	keys := map[Key][]string{}
	for _, p := range s.Pins {
		for _, k := range p.Keys {
			keys[k] = append(keys[k], p.Name)
		}
	}
	for i := range s.Results {
		r := &s.Results[i]
		r.Pins = keys[r.Key]
		for j, o := range r.Outputs {
			b := s.Blobs[o.Digest]
			if b == nil || !s.isWhole(b) {
				continue
			}
			r.There[j], b.direct = true, true
			b.name(i, r.Pins)
			for _, c := range b.chunks {
				s.Blobs[c].name(i, r.Pins)
			}
		}
	}
	for _, p := range s.Pins {
		for _, digest := range p.Digests {
			b := s.Blobs[digest]
			if b == nil {
				continue
			}
			b.Pins = append(b.Pins, p.Name)
			for _, c := range b.chunks {
				if b := s.Blobs[c]; b != nil {
					b.Pins = append(b.Pins, p.Name)
				}
			}
		}
	}
	for _, b := range s.Blobs {
		slices.SortFunc(b.Pins, cmp.Compare)
		b.Pins = slices.Compact(b.Pins)
	}
}

// name says that a result names a blob, and what keeps that result.
func (b *StoredBlob) name(result int, pins []string) {
	if n := len(b.Results); n == 0 || b.Results[n-1] != result {
		b.Results = append(b.Results, result)
	}
	b.Pins = append(b.Pins, pins...)
}

// isWhole reports whether all chunks of a blob are there.
func (s *Survey) isWhole(b *StoredBlob) bool {
	return !slices.ContainsFunc(b.chunks, func(c Digest) bool { return s.Blobs[c] == nil })
}
