package cache

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// A Damage is one thing that VerifyAll found wrong.
type Damage struct {
	What   string `json:"what"` // such as "blob 0123456789ab"
	Reason string `json:"reason"`
	Step   string `json:"step,omitempty"` // of a result that names a damaged blob
	Action string `json:"action,omitempty"`
}

// A Verification is what VerifyAll looked at.
type Verification struct {
	Blobs, Results, Pins int
	Bytes                int64
	Damaged              []Damage // in order
}

// VerifyAll reads everything in the store and hashes it, on all CPUs. What is damaged is
// moved away, so that the next build makes it anew; a damaged pin stays and is reported.
// progress is told how many bytes of how many are done, one call at a time; it may be
// nil. Nothing is marked as used.
func (d *Dir) VerifyAll(ctx context.Context, progress func(done, total int64)) (Verification, error) {
	v := &verifier{d: d, progress: progress}
	v.pins()
	s := &Survey{At: d.now(), Blobs: map[Digest]*StoredBlob{}, Other: map[string]int64{}}
	if err := d.surveyResults(ctx, s); err != nil {
		return v.sum, err
	}
	if err := d.surveyBlobs(ctx, s); err != nil {
		return v.sum, err
	}
	if err := d.surveyLists(ctx, s); err != nil {
		return v.sum, err
	}
	s.connect()
	for _, b := range s.Blobs {
		v.total += b.Size
	}
	v.results(ctx, s)
	err := v.blobs(ctx, s)
	slices.SortFunc(v.sum.Damaged, func(a, b Damage) int { return cmp.Compare(a.What, b.What) })
	return v.sum, err
}

// A verifier is one call of VerifyAll.
type verifier struct {
	d        *Dir
	progress func(done, total int64)
	total    int64

	mu  sync.Mutex
	sum Verification
}

func (v *verifier) found(damage Damage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sum.Damaged = append(v.sum.Damaged, damage)
}

// pins looks at each pin by itself.
func (v *verifier) pins() {
	names, err := v.d.KeptNames(pinShelf)
	if err != nil {
		v.found(Damage{What: "pins", Reason: err.Error()})
	}
	for _, name := range names {
		v.sum.Pins++
		b, err := v.d.Kept(pinShelf, name)
		if errors.Is(err, ErrMiss) {
			continue
		}
		if _, err := decodePin(name, b, err); err != nil {
			v.found(Damage{What: "pin " + name, Reason: err.Error()})
		}
	}
}

// results looks again at the results that the survey could not read: those that it could
// are whole.
func (v *verifier) results(ctx context.Context, s *Survey) {
	v.sum.Results = len(s.Results)
	good := make(map[Key]bool, len(s.Results))
	for i := range s.Results {
		good[s.Results[i].Key] = true
	}
	for _, shard := range v.d.list(filepath.Join(v.d.path, resultsDir)) {
		for _, e := range v.d.list(filepath.Join(v.d.path, resultsDir, shard.Name())) {
			k, err := ParseKey(e.Name())
			if err == nil && !good[k] && ctx.Err() == nil {
				v.result(k)
			}
		}
	}
}

func (v *verifier) result(k Key) {
	f, err := v.d.disk.Open(v.d.resultPath(k))
	if err != nil {
		return // it went meanwhile
	}
	defer f.Close()
	_, _, err = v.d.peek(v.d.resultPath(k))
	if _, other := errors.AsType[*FormatError](err); err == nil || other {
		return
	}
	v.sum.Results++
	v.d.quarantine(f)
	v.found(Damage{What: "result " + k.Short(), Reason: err.Error()})
}

// blobs verifies all files, and then what consists of them: a chunk that is damaged is
// moved away by then, so that its blob is told to lack it.
func (v *verifier) blobs(ctx context.Context, s *Survey) error {
	var files, lists []Digest
	for digest, b := range s.Blobs {
		if b.chunks == nil {
			files = append(files, digest)
		} else {
			lists = append(lists, digest)
		}
	}
	return cmp.Or(v.each(ctx, s, files), v.each(ctx, s, lists))
}

// each verifies blobs on all CPUs.
func (v *verifier) each(ctx context.Context, s *Survey, digests []Digest) error {
	work := make(chan Digest)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for digest := range work {
				v.blob(digest, s)
			}
		})
	}
	for _, digest := range digests {
		if ctx.Err() == nil {
			work <- digest
		}
	}
	close(work)
	wg.Wait()
	return ctx.Err()
}

// verify verifies one blob. The chunks of one are verified by themselves.
func (v *verifier) verify(digest Digest, b *StoredBlob) error {
	if b.chunks == nil {
		return v.d.Verify(digest)
	}
	_, err := v.d.openChunked(digest)
	if isAbsent(err) && v.d.dropList(digest) {
		return errors.New("not all of its chunks are there")
	}
	return err
}

func (v *verifier) blob(digest Digest, s *Survey) {
	b := s.Blobs[digest]
	err := v.verify(digest, b)
	if miss, ok := errors.AsType[*MissError](err); ok && miss.Err == nil {
		err = nil // it was dropped meanwhile
	}
	if err != nil {
		damage := Damage{What: "blob " + digest.Short(), Reason: err.Error()}
		if miss, ok := errors.AsType[*MissError](err); ok {
			damage.Reason = miss.Reason
		}
		if len(b.Results) > 0 {
			damage.Step, damage.Action = s.Results[b.Results[0]].Step, s.Results[b.Results[0]].Action
		}
		v.found(damage)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sum.Blobs++
	v.sum.Bytes += b.Size
	if v.progress != nil {
		v.progress(v.sum.Bytes, v.total)
	}
}
