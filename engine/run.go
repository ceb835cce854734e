package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"time"

	"bonsai/cache"
)

// outputBuffer is how many bytes of an output are gathered before they go to the
// store: ops write headers and rows, stores hash and write.
const outputBuffer = 64 << 10

// sampleEvery is how often memory is looked at while an action runs alone.
const sampleEvery = 50 * time.Millisecond

// An attempt is one run of an action. It is filled in by the loop, run by a worker, and
// read by the loop again.
type attempt struct {
	action *Action
	opt    *Options
	key    cache.Key
	text   string
	in     []cache.Output // digest and size of each input
	report *reporter
	begin  func() // called once the inputs are open

	starts *atomic.Int64 // runs that ever started, to see whether this one was alone
	number int64
	alone  bool

	result  cache.Result
	warning error
	gone    []int // inputs whose bytes are not in the store
	err     error
}

// run opens the inputs, runs the op, and stores the outputs and then the result.
func (t *attempt) run(ctx context.Context) {
	defer t.report.close()
	in, closers, err := t.open()
	defer closeAll(closers)
	if err != nil {
		t.err = err
		return
	}
	t.begin()
	started := t.now()
	peak := t.watchMemory()
	outs, err := t.produce(ctx, in)
	memory := peak()
	if err != nil {
		t.err = err
		return
	}
	t.result = cache.Result{
		Outputs: outs, Manifest: t.text, Note: t.report.lastNote(), Backend: t.opt.Backend,
		Started: started, Duration: t.now().Sub(started), PeakMemory: memory, Version: t.opt.Version,
		Step: t.action.Step, Action: t.action.Name,
	}
	if err := t.opt.Store.Record(t.key, t.result); err != nil {
		t.err = fmt.Errorf("record the result: %w", err)
		return
	}
	q := query{action: t.action, opt: t.opt}
	t.warning = q.remember(t.key)
}

func (t *attempt) now() time.Time {
	if t.opt.Now == nil {
		return time.Time{}
	}
	return t.opt.Now()
}

// open opens all inputs. Blobs that are not in the store any more are listed in t.gone.
func (t *attempt) open() (in []*io.SectionReader, closers []io.Closer, err error) {
	for i, a := range t.action.In {
		r, c, err := t.openOne(a, t.in[i])
		if err != nil {
			return nil, closers, err
		}
		if c == nil {
			t.gone = append(t.gone, i)
			continue
		}
		closers = append(closers, c)
		in = append(in, io.NewSectionReader(r, 0, t.in[i].Size))
	}
	if len(t.gone) > 0 {
		return nil, closers, fmt.Errorf("input %s: %w", t.action.In[t.gone[0]], cache.ErrMiss)
	}
	return in, closers, nil
}

// openOne opens one input; the closer is nil if a blob is not there.
func (t *attempt) openOne(a *Artifact, want cache.Output) (io.ReaderAt, io.Closer, error) {
	if path, ok := a.Source(); ok {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, &SourceError{Path: path, Err: err}
		}
		return f, f, nil
	}
	blob, err := t.opt.Store.Open(want.Digest)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // a blob that cannot be opened is made again
	}
	if blob.Size() != want.Size {
		blob.Close()
		return nil, nil, nil
	}
	if f, ok := blob.(interface{ File() *os.File }); ok {
		return f.File(), blob, nil
	}
	return blob, blob, nil
}

func closeAll(closers []io.Closer) {
	for _, c := range closers {
		c.Close()
	}
}

// produce runs the op and stores what it wrote. Nothing stays after an error.
func (t *attempt) produce(ctx context.Context, in []*io.SectionReader) (outs []cache.Output, err error) {
	writers := make([]cache.Writer, len(t.action.Outputs))
	defer func() {
		for _, w := range writers {
			if w != nil {
				err = errors.Join(err, w.Abort()) // after Commit it does nothing
			}
		}
	}()
	buffers := make([]*bufio.Writer, len(writers))
	plain := make([]io.Writer, len(writers))
	for i := range writers {
		if writers[i], err = t.opt.Store.Create(); err != nil {
			return nil, t.outputError(i, err)
		}
		buffers[i] = bufio.NewWriterSize(writers[i], outputBuffer)
		plain[i] = buffers[i]
	}
	if err := t.call(ctx, in, plain); err != nil {
		return nil, err
	}
	if err := t.unchanged(ctx); err != nil {
		return nil, err
	}
	for i, w := range writers {
		out, err := commit(w, buffers[i])
		if err != nil {
			return nil, t.outputError(i, err)
		}
		outs = append(outs, out)
	}
	return outs, nil
}

func commit(w cache.Writer, b *bufio.Writer) (cache.Output, error) {
	if err := b.Flush(); err != nil {
		return cache.Output{}, err
	}
	return w.Commit()
}

func (t *attempt) outputError(i int, err error) error {
	return fmt.Errorf("store output %d %s: %w", i, t.action.Outputs[i].Name, err)
}

// call runs the op and makes an error of a panic, or of an op that ends its goroutine.
func (t *attempt) call(ctx context.Context, in []*io.SectionReader, out []io.Writer) error {
	end := make(chan error, 1)
	go func() {
		returned := false
		var err error
		defer func() {
			if !returned {
				err = &PanicError{Value: recover(), Stack: debug.Stack()}
			}
			end <- err
		}()
		err = t.action.Op.Run(ctx, in, out, t.report.report)
		returned = true
	}()
	return <-end
}

// unchanged returns an error that names a source that is not what it was when it was
// hashed. It also looks when the build has been interrupted, for a result that is
// finished is kept.
func (t *attempt) unchanged(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for i, a := range t.action.In {
		path, ok := a.Source()
		if !ok {
			continue
		}
		now, err := t.opt.Sources.SourceDigest(ctx, path)
		if err == nil && now != t.in[i] {
			err = ErrChanged
		}
		if err != nil {
			return &SourceError{Path: path, Err: err}
		}
	}
	return nil
}

// watchMemory samples the memory that Go holds until the function it returns is
// called, which returns the most it saw, in bytes: 0 if another action ran at the same
// time. Files that are mapped and memory of C libraries are not in it.
func (t *attempt) watchMemory() (stop func() int64) {
	if !t.alone {
		return func() int64 { return 0 }
	}
	var peak int64
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			peak = max(peak, memoryHeld())
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	return func() int64 {
		close(quit)
		<-ended
		if t.starts.Load() != t.number {
			return 0
		}
		return max(peak, memoryHeld())
	}
}

func memoryHeld() int64 {
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// cleanNote makes a note fit for a result, which is text.
func cleanNote(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
