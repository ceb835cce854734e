package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cache/cachetest"
	"bonsai/engine"
)

// A mishaps is a world that is built in a folder whose disk fails.
type mishaps struct {
	t     *testing.T
	w     *world
	path  string // of the cache
	disk  *cachetest.Faulty
	store *cache.Dir // nil after a crash

	kept map[string]bool // steps that are finished, and must not run again
}

func newMishaps(t *testing.T, w *world) *mishaps {
	return &mishaps{t: t, w: w, path: filepath.Join(t.TempDir(), "cache"), disk: cachetest.NewFaulty(t), kept: map[string]bool{}}
}

// open opens the cache as a new process does.
func (m *mishaps) open() (err error) {
	if m.store != nil {
		return nil
	}
	// Chunks from 32 bytes on: most outputs of toys are longer.
	m.store, err = cache.OpenWith(m.path, time.Now, cache.Options{Disk: m.disk.Disk(), ChunkAbove: 32}) //nolint:forbidigo // files get real times
	return err
}

// build builds the world once, whatever comes of it, and returns what ran.
func (m *mishaps) build(workers int) (ran map[int]int, outs []cache.Output, err error) {
	m.t.Helper()
	if err := m.open(); err != nil {
		return nil, nil, err
	}
	c := newTally()
	g, want := m.w.graph(m.t, c)
	opt := engine.Options{
		Store: m.store, Sources: m.store, History: m.store, Locker: m.store, Workers: workers, Now: clock,
		Emit: func(e engine.Event) {
			if e, ok := e.(engine.Finished); ok && !e.Hit {
				m.kept[e.Step] = true
			}
		},
	}
	outs, err = engine.Build(m.t.Context(), g, want, opt)
	return c.take(), outs, err
}

// crash ends the process, and the power if that is lost too.
func (m *mishaps) crash(power bool) {
	m.store = nil
	if power {
		m.disk.LosePower()
	}
}

// recovers builds on a sound disk: the bytes are right, nothing that was finished runs
// again, and then nothing is left to run.
func (m *mishaps) recovers(workers int) {
	m.t.Helper()
	m.disk.Reset()
	before := m.kept
	m.kept = map[string]bool{}
	ran, outs, err := m.build(workers)
	if err != nil {
		m.t.Fatalf("on a sound disk: %v", err)
	}
	for i, r := range m.w.want {
		if got, cold := read(m.t, m.store, outs[i].Digest), string(m.w.cold(r)); got != cold {
			m.t.Errorf("wanted %v: %q, and a cold build gives %q", r, got, cold)
		}
	}
	for i, toy := range m.w.toys {
		if before[fmt.Sprint("toy ", i)] && ran[toy.seed] > 0 && !slices.Contains(toy.transient, true) {
			m.t.Errorf("toy %d was finished and ran again", i)
		}
	}
	if ran, _, err = m.build(workers); err != nil || len(ran) > 0 {
		m.t.Errorf("second build ran %v, %v", ran, err)
	}
	m.kept = map[string]bool{}
}

// The process is killed, or the power lost, at each call to the file system of a small
// build, of which this takes every step-th.
func killedBuild(t *testing.T, step int) {
	struck := true
	for n := 1; struck && !t.Failed(); n += step {
		b := make([]byte, 100)
		_, _ = rand.NewChaCha8([32]byte{8}).Read(b)
		m := newMishaps(t, newWorld(&dice{b}, t.TempDir()))
		m.disk.CrashAt(n)
		_, _, err := m.build(1 + n%2)
		hit, ok := m.disk.Hit()
		if struck = ok; struck && err != nil && !cachetest.IsKilled(err) {
			t.Errorf("killed at %v: %v", hit, err)
		}
		m.crash(n%3 == 0)
		m.recovers(2)
		if t.Failed() {
			t.Logf("killed at call %d, %v: %v", n, hit, err)
		}
		if !struck && n < 100 {
			t.Errorf("only %d calls", n)
		}
	}
}

func TestBuildKilledAtEachCall(t *testing.T) { killedBuild(t, 23) }

// damage changes a file of the cache, or deletes it.
func (m *mishaps) damage(d *dice) {
	folder := []string{"blobs", "lists", "results"}[d.roll(3)]
	files, err := filepath.Glob(filepath.Join(m.path, folder, "*", "*"))
	if err != nil || len(files) == 0 {
		return
	}
	path := files[d.roll(len(files))]
	fi, err := os.Stat(path)
	if err != nil {
		m.t.Fatal(err)
	}
	err = os.Chmod(path, 0o666)
	switch d.roll(3) {
	case 0:
		err = errors.Join(err, os.Remove(path))
	case 1:
		err = errors.Join(err, os.Truncate(path, fi.Size()/2))
	default:
		f, openErr := os.OpenFile(path, os.O_WRONLY, 0)
		if openErr != nil {
			m.t.Fatal(openErr)
		}
		_, writeErr := f.WriteAt([]byte("?"), fi.Size()/3)
		err = errors.Join(err, writeErr, f.Close())
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// mishap builds on a disk that fails in a rolled way, or not.
func (m *mishaps) mishap(d *dice) {
	m.t.Helper()
	m.disk.Reset()
	n := 1 + d.roll(250) + 250*d.roll(2)
	switch kind := d.roll(6); kind {
	case 0:
		return
	case 1, 2, 3:
		m.disk.CrashAt(n)
		_, _, err := m.build(1 + d.roll(3))
		if _, struck := m.disk.Hit(); struck && err != nil && !cachetest.IsKilled(err) {
			m.t.Errorf("killed at call %d: %v", n, err)
		}
		m.crash(kind == 1)
	default:
		errno := []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EACCES}[d.roll(3)]
		m.disk.FailAt(n, errno)
		_, _, err := m.build(1 + d.roll(3))
		hit, struck := m.disk.Hit()
		if err != nil && !struck {
			m.t.Errorf("without a failure: %v", err)
		}
		if err != nil && !errors.Is(err, errno) && !errors.Is(err, cache.ErrMiss) && !errors.Is(err, fs.ErrNotExist) {
			m.t.Errorf("%v failed with %v: %v", hit, errno, err)
		}
		if errors.Is(errno, syscall.EIO) {
			m.kept = map[string]bool{} // what cannot be read is made again
		}
	}
}

// hardLife rolls a world and builds it again and again: with edits, damage, failures and
// crashes in between.
func hardLife(t *testing.T, b []byte) {
	d := &dice{b}
	m := newMishaps(t, newWorld(d, t.TempDir()))
	for edits := 0; edits < 8 && !t.Failed(); edits++ {
		m.mishap(d)
		m.recovers(1 + d.roll(3))
		if d.done() {
			return
		}
		for range 1 + d.roll(3) {
			m.w.edit(d, newShaky()) // a Dir is damaged by the next line
			if d.roll(3) == 0 {
				m.damage(d)
			}
		}
	}
}

// FuzzCrash checks builds on a disk that fails: after any edit, any damage, and a failure
// or a crash at any call to the file system, the next build gives the bytes of a cold
// one, runs nothing again that was finished, and leaves nothing to run.
func FuzzCrash(f *testing.F) {
	f.Add([]byte("a few bytes that make a small world"))
	f.Fuzz(hardLife)
}

func TestRandomHardLives(t *testing.T) {
	for seed := range 12 {
		b := make([]byte, 60+seed*10)
		_, _ = rand.NewChaCha8([32]byte{byte(seed), 3}).Read(b)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { hardLife(t, b) })
		if t.Failed() {
			return
		}
	}
}
