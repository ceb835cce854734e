package engine

import (
	"context"
	"time"

	"bonsai/cache"
)

// A Store holds results under their key and blobs under their digest. It is safe for
// concurrent use. One that also has a method Remove(cache.Digest) error is asked to
// drop transient artifacts that nothing needs any more; one that has a method
// CreateTransient() (cache.Writer, error) is told of them.
type Store interface {
	Lookup(k cache.Key) (cache.Result, error) // any error is a miss
	Record(k cache.Key, r cache.Result) error
	Create() (cache.Writer, error)
	Open(d cache.Digest) (cache.Blob, error)
	Stat(d cache.Digest) (size int64, err error)
}

// Sources finds the digest of a user's file.
type Sources interface {
	SourceDigest(ctx context.Context, path string) (cache.Output, error)
}

// History remembers the last key of each action, to say what changed since.
type History interface {
	Last(id string) (cache.Key, bool)
	SetLast(id string, k cache.Key) error
}

// A Locker keeps two builds from running the same action at once. Lock calls waiting
// with a description of the holder if it has to wait.
type Locker interface {
	Lock(ctx context.Context, k cache.Key, waiting func(holder string)) (unlock func(), err error)
}

// A Scratch gives an action with key k, if its op is Resumable, a folder of its own that
// outlives the process, until DropScratch.
type Scratch interface {
	Scratch(k cache.Key) (folder string, err error)
	DropScratch(k cache.Key) error
}

// Logs keeps what an action said in its last run, as text, under its key.
type Logs interface {
	SaveLog(k cache.Key, text []byte) error
}

// remover and transientCreator are what a Store may also be.
type remover interface {
	Remove(d cache.Digest) error
}

type transientCreator interface {
	CreateTransient() (cache.Writer, error)
}

// A peeker is a Store that can return a result without counting that as a use of it.
type peeker interface {
	Peek(k cache.Key) (cache.Result, error)
}

// peek returns the result of an earlier build, to compare with.
func (o *Options) peek(k cache.Key) (cache.Result, error) {
	if p, ok := o.Store.(peeker); ok {
		return p.Peek(k)
	}
	return o.Store.Lookup(k)
}

// Options say how to build. Only Store is required.
type Options struct {
	Store   Store
	Sources Sources // nil: each file is hashed anew
	History History // nil: nothing is known of earlier builds
	Locker  Locker  // nil: no other build uses the store
	Scratch Scratch // nil: an op that is Resumable is Run from the beginning
	Logs    Logs    // nil: what actions say is in events alone

	Recipe    string         // what History is told that the actions belong to
	Workers   int            // actions that run at once; below 1: as many as there are CPUs
	Pools     map[string]int // actions of a pool that run at once; a pool not listed has no limit of its own
	Memory    int64          // bytes that running actions may need together; 0: no limit
	KeepGoing bool           // after a failure, go on with what does not depend on it

	// Emit is called with every event, from one goroutine, in order. The build waits
	// for it. It may be nil.
	Emit func(Event)

	// Known, if set, is asked for a result before Store is: it may know from an earlier
	// build what Store would answer. Of such a result only Outputs, Duration and
	// Evicted are set.
	Known func(k cache.Key) (cache.Result, bool)

	// Current, if set, is called at the end of a Build that succeeded and that leaves
	// the next one with these options nothing to run.
	Current func(Current)

	Now     func() time.Time // clock; nil leaves times and durations out of results
	Version string           // of bonsai, for results
	Backend string           // what computes, such as "go" or "xla:cuda", for results

	// Strict keeps the results of each backend and version apart: both are in every
	// manifest. Otherwise a result that another machine made is as good, although its
	// last bits may differ.
	Strict bool
}

// create starts the blob of an output.
func (o *Options) create(out Output) (cache.Writer, error) {
	if s, ok := o.Store.(transientCreator); ok && out.Transient {
		return s.CreateTransient()
	}
	return o.Store.Create()
}

// platform is what Strict adds to every manifest.
func (o *Options) platform() string {
	if !o.Strict {
		return ""
	}
	return o.Backend + " " + o.Version
}
