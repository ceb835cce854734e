package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// A mix is an op whose outputs depend on all its settings and on every byte of its
// inputs. An output with a small spread takes few values, so that two different runs
// may give the same bytes: early cutoff.
type mix struct {
	Seed   int
	Spread []int // for each output: number of values; 0 for a value of its own

	fickle bool // bytes of outputs of their own are other in each run
	tally  *tally
	think  func()                                                        // done before the text is made, if set
	act    func(ctx context.Context, report func(float64, string)) error // done in Run, if set
}

// A tally counts runs by seed, and keeps what they read.
type tally struct {
	mu    sync.Mutex
	runs  map[int]int
	reads map[int][]cache.Digest // of the last run
	total int
}

func newTally() *tally { return &tally{runs: make(map[int]int), reads: make(map[int][]cache.Digest)} }

// add counts a run and returns how many there were, of all ops.
func (c *tally) add(seed int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[seed]++
	c.total++
	return c.total
}

func (c *tally) read(seed int, in [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads[seed] = nil
	for _, b := range in {
		c.reads[seed] = append(c.reads[seed], cache.DigestOf(b))
	}
}

func (c *tally) lastRead(seed int) []cache.Digest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads[seed]
}

// take returns the counts and starts anew.
func (c *tally) take() map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs := c.runs
	c.runs = make(map[int]int)
	return runs
}

func (m mix) AppendText(b []byte) ([]byte, error) {
	if m.think != nil {
		m.think()
	}
	return fmt.Appendf(b, "op mix v1\nset Seed %d\nset Spread %v\n", m.Seed, m.Spread), nil
}

func (m mix) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	number := m.tally.add(m.Seed)
	if m.act != nil {
		if err := m.act(ctx, report); err != nil {
			return err
		}
	}
	contents := make([][]byte, len(in))
	for i, r := range in {
		var err error
		if contents[i], err = io.ReadAll(r); err != nil {
			return err
		}
	}
	m.tally.read(m.Seed, contents)
	for i, w := range out {
		if _, err := w.Write(m.output(i, contents)); err != nil {
			return err
		}
		if m.fickle && m.Spread[i] == 0 {
			fmt.Fprint(w, " of run ", number)
		}
	}
	return ctx.Err()
}

// output is what Run writes, as a function: the test's own idea of a cold build.
func (m mix) output(i int, in [][]byte) []byte {
	h := sha256.New()
	fmt.Fprintln(h, m.Seed, i, len(in))
	for _, b := range in {
		fmt.Fprintln(h, len(b))
		h.Write(b)
	}
	sum := h.Sum(nil)
	if n := m.Spread[i]; n > 0 {
		return fmt.Appendf(nil, "value %d", binary.BigEndian.Uint64(sum)%uint64(n))
	}
	return fmt.Appendf(nil, "own %x", sum)
}

// A shaky store is one whose blobs and results can be damaged, and that counts writes.
type shaky struct {
	*cache.Mem
	writes atomic.Int64
	open   atomic.Int64 // writers that are neither committed nor aborted

	mu   sync.Mutex
	bad  map[cache.Digest]bool
	lost map[cache.Key]bool
	keys map[cache.Key]bool // all that were ever recorded
	made map[cache.Digest]bool

	vanish []byte // for each Open, whether the blob vanishes: if the byte is 0
}

func newShaky() *shaky {
	return &shaky{
		Mem: cache.NewMem(clock), bad: make(map[cache.Digest]bool), lost: make(map[cache.Key]bool),
		keys: make(map[cache.Key]bool), made: make(map[cache.Digest]bool),
	}
}

func clock() time.Time { return time.Unix(1_800_000_000, 0) }

func (s *shaky) damaged(d cache.Digest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad[d] {
		return fmt.Errorf("blob %s: %w", d.Short(), cache.ErrCorrupt)
	}
	return nil
}

func (s *shaky) Open(d cache.Digest) (cache.Blob, error) {
	if err := s.damaged(d); err != nil {
		return nil, err
	}
	if s.vanishes() {
		_ = s.Mem.Remove(d)
	}
	return s.Mem.Open(d)
}

func (s *shaky) vanishes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.vanish) == 0 {
		return false
	}
	v := s.vanish[0]
	s.vanish = s.vanish[1:]
	return v == 0
}

func (s *shaky) Stat(d cache.Digest) (int64, error) {
	if err := s.damaged(d); err != nil {
		return 0, err
	}
	return s.Mem.Stat(d)
}

func (s *shaky) Lookup(k cache.Key) (cache.Result, error) {
	s.mu.Lock()
	lost := s.lost[k]
	s.mu.Unlock()
	if lost {
		return cache.Result{}, fmt.Errorf("result %s: %w", k.Short(), cache.ErrMiss)
	}
	return s.Mem.Lookup(k)
}

func (s *shaky) Record(k cache.Key, r cache.Result) error {
	s.writes.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lost, k)
	s.keys[k] = true
	return s.Mem.Record(k, r)
}

func (s *shaky) Remove(d cache.Digest) error {
	s.writes.Add(1)
	return s.Mem.Remove(d)
}

func (s *shaky) SetLast(id string, k cache.Key) error {
	s.writes.Add(1)
	return s.Mem.SetLast(id, k)
}

func (s *shaky) Create() (cache.Writer, error) {
	s.writes.Add(1)
	w, err := s.Mem.Create()
	s.open.Add(1)
	return &shakyWriter{Writer: w, s: s}, err
}

type shakyWriter struct {
	cache.Writer
	s    *shaky
	once sync.Once
}

func (w *shakyWriter) Abort() error {
	w.once.Do(func() { w.s.open.Add(-1) })
	return w.Writer.Abort()
}

func (w *shakyWriter) Commit() (cache.Output, error) {
	w.once.Do(func() { w.s.open.Add(-1) })
	out, err := w.Writer.Commit()
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.bad, out.Digest)
	w.s.made[out.Digest] = true
	return out, err
}

// options builds with a store that is also everything else.
func options(s *shaky) engine.Options {
	return engine.Options{Store: s, Sources: s, History: s, Locker: s, Workers: 2, Now: clock}
}

// build builds and fails the test on an error.
func build(t testing.TB, g *engine.Graph, opt engine.Options, want ...*engine.Artifact) []cache.Output {
	t.Helper()
	outs, err := engine.Build(t.Context(), g, want, opt)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return outs
}

func plan(t testing.TB, g *engine.Graph, opt engine.Options, want ...*engine.Artifact) *engine.Plan {
	t.Helper()
	p, err := engine.MakePlan(t.Context(), g, want, opt)
	if err != nil {
		t.Fatalf("MakePlan: %v", err)
	}
	return p
}

// read returns the bytes of a blob.
func read(t testing.TB, s engine.Store, d cache.Digest) string {
	t.Helper()
	blob, err := s.Open(d)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer blob.Close()
	b, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil {
		t.Fatalf("read blob %s: %v", d.Short(), err)
	}
	return string(b)
}

// file writes a file and returns its path.
func file(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// An opFunc is an op with one output that does what a test says.
type opFunc struct {
	name string
	run  func(ctx context.Context, out *writer) error
}

// A writer is what the function of an opFunc has to work with.
type writer struct {
	in     []*io.SectionReader
	out    []io.Writer
	report func(float64, string)
}

func (w *writer) print(args ...any) error {
	_, err := fmt.Fprint(w.out[0], args...)
	return err
}

func (o opFunc) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op %s v1\n", o.name), nil
}

func (o opFunc) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	return o.run(ctx, &writer{in, out, report})
}
