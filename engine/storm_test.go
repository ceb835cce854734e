package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// A stayer is a mix that goes on where it was: it counts the pieces that are done in its
// scratch folder, with a digest of what it read.
type stayer struct {
	mix
	fault func(error)
}

const stayerPieces = 4

// Resume implements engine.Resumable.
func (o stayer) Resume(ctx context.Context, scratch string, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	var read bytes.Buffer
	for _, r := range in {
		b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if err != nil {
			return err
		}
		fmt.Fprintln(&read, cache.DigestOf(b))
	}
	state := filepath.Join(scratch, "state")
	was, err := os.ReadFile(state)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	piece := 0
	if text, n, ok := bytes.Cut(was, []byte("done ")); ok {
		if string(text) != read.String() {
			o.fault(fmt.Errorf("op %d finds the scratch of other inputs", o.Seed))
		}
		fmt.Sscan(string(n), &piece)
	}
	for ; piece < stayerPieces; piece++ {
		if o.act != nil {
			if err := o.act(ctx, report); err != nil {
				return err
			}
		}
		if err := os.WriteFile(state, fmt.Appendf(read.Bytes(), "done %d", piece+1), 0o666); err != nil {
			return err
		}
	}
	rest := o.mix
	rest.act = nil
	return rest.Run(ctx, in, out, report)
}

// folders is the Scratch of a test.
type folders string

func (f folders) Scratch(k cache.Key) (string, error) {
	path := filepath.Join(string(f), k.String())
	return path, os.MkdirAll(path, 0o777)
}

func (f folders) DropScratch(k cache.Key) error {
	return os.RemoveAll(filepath.Join(string(f), k.String()))
}

// A shelf is the Logs of a test.
type shelf struct {
	mu   sync.Mutex
	logs map[cache.Key]string
}

func (s *shelf) SaveLog(k cache.Key, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs == nil {
		s.logs = make(map[cache.Key]string)
	}
	s.logs[k] = string(text)
	return nil
}

// A storm is a world in which everything happens that can, while it is built.
type storm struct {
	*world
	t       *testing.T
	store   *shaky
	scratch folders
	logs    *shelf
	edits   int

	mu   sync.Mutex // of the rest, which ops use
	dice *rand.Rand
}

// luck is what an op does in a build of a storm.
func (s *storm) luck(ctx context.Context, cancel func(), calm bool) error {
	s.mu.Lock()
	what, n := s.dice.IntN(24), s.dice.IntN(4)
	if calm {
		what = 100
	}
	if what == 5 && len(s.sources) > 0 { // somebody edits a source
		i := n % len(s.sources)
		s.sources[i] = edited(10 + s.dice.IntN(3))
		file(s.t, s.dir, fmt.Sprint("source", i), s.sources[i])
		s.edits++
	}
	s.mu.Unlock()
	switch what {
	case 0, 1:
		return errBusy
	case 2:
		return errLuck
	case 3:
		panic(errLuck)
	case 4:
		time.Sleep(2 * time.Minute) // past its limit, deaf
	case 6:
		<-ctx.Done() // past its limit, or until it is interrupted
		return ctx.Err()
	case 7:
		if n == 0 {
			cancel()
		}
	case 8, 9:
		time.Sleep(time.Duration(n) * time.Second)
	}
	return nil
}

// stormy makes the ops of a graph stayers, and gives them limits, tries and peaks.
func (s *storm) stormy(cancel func(), calm bool) (*engine.Graph, []*engine.Artifact, *tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newTally()
	s.act = func(int) func(context.Context, func(float64, string)) error {
		return func(ctx context.Context, _ func(float64, string)) error { return s.luck(ctx, cancel, calm) }
	}
	s.wrap = func(m mix) engine.Op { return stayer{m, func(err error) { s.t.Error(err) }} }
	g, want := s.graph(s.t, c)
	g.Amend(0, func(a *engine.Action) {
		a.Timeout, a.Retries, a.Peak, a.Cost = time.Minute, s.dice.IntN(3), s.dice.Int64N(60), float64(s.dice.IntN(3))
	})
	return g, want, c
}

// build builds once, in whatever happens; some builds are two at once.
func (s *storm) build() {
	var wait sync.WaitGroup
	for range 1 + s.roll(4)/3 {
		ctx, cancel := context.WithCancel(s.t.Context())
		g, want, _ := s.stormy(cancel, false)
		opt := s.options()
		opt.KeepGoing = s.roll(2) == 0
		wait.Go(func() {
			defer cancel()
			open := make(map[string]int)
			opt.Emit = func(e engine.Event) { count(open, e) }
			if _, err := engine.Build(ctx, g, want, opt); err == nil {
				for step, n := range open {
					if n != 0 {
						s.t.Errorf("%s: %d more Started than ends", step, n)
					}
				}
			}
		})
	}
	wait.Wait()
	time.Sleep(time.Hour) // what was given up ends
	if n := s.store.open.Load(); n != 0 {
		s.t.Errorf("%d outputs are neither stored nor dropped", n)
	}
}

func count(open map[string]int, e engine.Event) {
	switch e := e.(type) {
	case engine.Started:
		open[e.Step]++
	case engine.Retried:
		open[e.Step]--
	case engine.Failed:
		open[e.Step]--
	case engine.Finished:
		if !e.Hit {
			open[e.Step]--
		}
	}
}

func (s *storm) options() engine.Options {
	opt := options(s.store)
	opt.Workers, opt.Scratch, opt.Logs, opt.Memory = 1+s.roll(3), s.scratch, s.logs, 100
	opt.Now = time.Now //nolint:forbidigo // the clock of a synctest bubble
	return opt
}

func (s *storm) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dice.IntN(n)
}

// settle builds in a calm, and checks that it gives what a cold build gives, as its plan
// said, and that then nothing is left to do and nothing left over.
func (s *storm) settle() {
	g, want, c := s.stormy(func() {}, true)
	opt := s.options()
	p := plan(s.t, g, opt, want...)
	outs := build(s.t, g, opt, want...)
	s.checkPlan(s.t, p, c.take())
	for i, r := range s.want {
		if got, cold := read(s.t, s.store, outs[i].Digest), string(s.cold(r)); got != cold {
			s.t.Errorf("wanted %v: warm build gives %q, cold build %q", r, got, cold)
		}
	}
	build(s.t, g, opt, want...)
	if again := c.take(); len(again) > 0 {
		s.t.Errorf("second build ran %v", again)
	}
}

// change is an edit of the world, or of the store: one more is a gc.
func (s *storm) change(d *dice) {
	s.edits++
	if d.roll(6) > 0 {
		s.edit(d, s.store)
		return
	}
	for k := range s.store.keys {
		if res, err := s.store.Lookup(k); err == nil && d.roll(3) == 0 {
			res.Evicted = clock()
			_ = s.store.Mem.Record(k, res)
			for _, out := range res.Outputs {
				_ = s.store.Mem.Remove(out.Digest)
			}
		}
	}
}

// stormyLife rolls a world and its life. It returns the number of edits.
func stormyLife(t *testing.T, b []byte) (edits int) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &dice{b}
		s := &storm{t: t, store: newShaky(), scratch: folders(filepath.Join(dir, "scratch")), logs: &shelf{}}
		s.world = newWorld(d, dir)
		var seed [32]byte
		copy(seed[:], b)
		s.dice = rand.New(rand.NewChaCha8(seed)) //nolint:gosec // of a test
		for round := 0; round < 6 && !t.Failed(); round++ {
			for range d.roll(3) {
				s.build()
			}
			s.settle()
			if d.done() {
				break
			}
			for range 1 + d.roll(3) {
				s.change(d)
			}
		}
		edits = s.edits
	})
	return edits
}

// FuzzStorm checks builds in which everything happens: ops that fail for good or for a
// while, panic, hang and do not heed their limit; that go on from a scratch folder; sources
// edited while they are read; interrupts; two builds at once; bytes and results damaged,
// lost, or dropped by a gc. In the calm after it a build gives what a cold one gives.
func FuzzStorm(f *testing.F) {
	f.Add([]byte("a few bytes that make a small world"))
	f.Fuzz(func(t *testing.T, b []byte) { stormyLife(t, b) })
}

func stormOf(seed int) []byte {
	b := make([]byte, 60+seed%200)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), 3}).Read(b)
	return b
}

func TestRandomStorms(t *testing.T) {
	lives := 200
	if testing.Short() {
		lives = 30
	}
	edits := 0
	for seed := range lives {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { edits += stormyLife(t, stormOf(seed)) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d lives with %d edits", lives, edits)
}
