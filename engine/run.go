package engine

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"slices"
	"strconv"
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
	shared bool           // another process may be at the same action: no lock could be had
	report *reporter
	begin  func() // called once the inputs are open
	given  func() // called when an op that was given up has ended after all

	starts *atomic.Int64 // runs that ever started, to see whether this one was alone
	number int64
	alone  bool

	log     *transcript // of what it says; nil if nobody keeps that
	logged  bool        // it is kept
	result  cache.Result
	warning error
	gone    []int // inputs whose bytes are not in the store
	deaf    bool  // the op was given up, and still runs
	err     error
}

// run opens the inputs, runs the op, and stores the outputs and then the result. What an
// op that is given up still holds is let go of when it ends.
func (t *attempt) run(ctx context.Context) {
	defer t.report.close()
	in, closers, err := t.open()
	if err != nil {
		closeAll(closers)
		t.err = err
		return
	}
	t.begin()
	started := t.now()
	peak := t.watchMemory()
	p := t.create()
	ended := closed()
	if p.err == nil {
		ended, p.err = t.call(ctx, in, p.plain)
	}
	select {
	case <-ended:
		t.end(ctx, p, started, peak)
		closeAll(closers)
		t.log.ends(t, t.now().Sub(started))
	default:
		t.deaf, t.err = true, p.err
		_ = peak()
		go func() {
			<-ended
			_ = p.abort()
			closeAll(closers)
			t.given()
		}()
		t.log.ends(t, t.now().Sub(started))
	}
	t.saveLog()
}

// end stores what the op wrote, and records the result. After an error nothing stays.
func (t *attempt) end(ctx context.Context, p *production, started time.Time, peak func() int64) {
	if p.err == nil {
		p.err = t.unchanged(ctx)
	}
	if p.err != nil && t.resumes() && t.unchanged(ctx) != nil {
		t.warning = t.dropScratch() // it may come of what the file is now
	}
	if p.err == nil {
		p.commit(t)
	}
	memory := peak()
	if t.err = errors.Join(p.err, p.abort()); t.err != nil {
		return
	}
	t.record(p.outs, started, memory)
}

// record records the result of a run that ended well.
func (t *attempt) record(outs []cache.Output, started time.Time, memory int64) {
	t.result = cache.Result{
		Outputs: outs, Manifest: t.text, Note: t.report.lastNote(), Backend: t.opt.Backend,
		Started: started, Duration: t.now().Sub(started), PeakMemory: memory, Version: t.opt.Version,
		Step: t.action.Step, Action: t.action.Name, Transient: allTransient(t.action.Outputs),
	}
	if err := t.opt.Store.Record(t.key, t.result); err != nil {
		t.err = fmt.Errorf("record the result: %w", err)
		return
	}
	q := query{action: t.action, opt: t.opt}
	t.warning = errors.Join(t.dropScratch(), q.remember(t.key))
}

func allTransient(outputs []Output) bool {
	return len(outputs) > 0 && !slices.ContainsFunc(outputs, func(o Output) bool { return !o.Transient })
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

// A production is the outputs of a run while they are made.
type production struct {
	writers []cache.Writer // nil where none could be created
	buffers []*bufio.Writer
	plain   []io.Writer // the buffers, as an op gets them
	outs    []cache.Output
	err     error
}

// create begins to store the outputs.
func (t *attempt) create() *production {
	n := len(t.action.Outputs)
	p := &production{
		writers: make([]cache.Writer, n), buffers: make([]*bufio.Writer, n), plain: make([]io.Writer, n),
	}
	for i := range n {
		w, err := t.opt.create(t.action.Outputs[i])
		if err != nil {
			p.err = t.outputError(i, err)
			return p
		}
		p.writers[i] = w
		p.buffers[i] = bufio.NewWriterSize(w, outputBuffer)
		p.plain[i] = p.buffers[i]
	}
	return p
}

// commit stores the outputs.
func (p *production) commit(t *attempt) {
	for i, w := range p.writers {
		out, err := commit(w, p.buffers[i])
		if err != nil {
			p.err = t.outputError(i, err)
			return
		}
		p.outs = append(p.outs, out)
	}
}

// abort drops what is not stored. After commit it does nothing.
func (p *production) abort() error {
	var errs []error
	for _, w := range p.writers {
		if w != nil {
			errs = append(errs, w.Abort())
		}
	}
	return errors.Join(errs...)
}

func commit(w cache.Writer, b *bufio.Writer) (cache.Output, error) {
	if err := b.Flush(); err != nil {
		return cache.Output{}, err
	}
	return w.Commit()
}

func (t *attempt) outputError(i int, err error) error {
	return fmt.Errorf("store output %s: %w", cmp.Or(t.action.Outputs[i].Name, strconv.Itoa(i)), err)
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
