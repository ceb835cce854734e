package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cache/cachetest"
	"bonsai/cache/disk"
)

// A ledger is what a store has promised: each call that returned no error is in it.
type ledger struct {
	out     string // folder that blobs are exported to
	source  string // a user's file
	blobs   map[string][]byte
	results map[cache.Key][]cache.Result // the last, and before it what Record may have left
	exports map[string][]string          // by path: contents that are allowed, the last promised
	kept    map[string][]string          // on the shelf of runs, as exports
	last    map[string]bool              // ids of SetLast
}

func newLedger(t testing.TB) *ledger {
	l := &ledger{
		out: t.TempDir(), blobs: map[string][]byte{}, results: map[cache.Key][]cache.Result{},
		exports: map[string][]string{}, kept: map[string][]string{}, last: map[string]bool{},
	}
	l.source = filepath.Join(l.out, "source")
	writeFile(t, l.source, "text of a user")
	return l
}

// An act is one thing that a build asks of a store.
type act struct {
	name string
	do   func(d *cache.Dir, l *ledger) error
}

// acts are all that a store does, with blobs of one write and of many.
func acts() []act {
	k, k2 := cache.KeyOf([]byte("k")), cache.KeyOf([]byte("k2"))
	return []act{
		{"store a blob", storing("small")},
		{"store a big blob", storing("big")},
		{"store a blob that is there", storing("small")},
		{"write and abort", aborting},
		{"store in chunks", storing("chunks")},
		{"read chunks", reading("chunks")},
		{"export chunks", exporting("chunks", "chunks")},
		{"record", recording(k, 1)},
		{"record again", recording(k, 2)},
		{"record another", recording(k2, 3)},
		{"look up", lookingUp(k)},
		{"read", reading("big")},
		{"hash a source", hashing},
		{"export", exporting("big", "new")},
		{"export a source's bytes in place of a file", exporting("small", "old")},
		{"export once more", exporting("small", "old")},
		{"lock", locking(k)},
		{"keep", keeping("run", "first")},
		{"keep again", keeping("run", "second")},
		{"hold", func(d *cache.Dir, _ *ledger) error {
			release, err := d.Hold("test")
			if err == nil {
				release()
			}
			return err
		}},
		{"discard", discarding("run")},
		{"make scratch", scratching(k)},
		{"drop scratch", func(d *cache.Dir, _ *ledger) error { return d.DropScratch(k) }},
		{"remember a key", settingLast("a", k)},
		{"remember another", settingLast("a", k2)},
		{"remove a blob", removing("small")},
		{"store it again", storing("small")},
	}
}

// chunkLimit is the size above which the store of these tests uses chunks.
const chunkLimit = 250_000

func textOf(name string) []byte {
	switch name {
	case "chunks":
		return append(sample(20_000, name), make([]byte, chunkLimit)...)
	case "big":
		return bytes.Repeat(sample(1000, name), 200)
	}
	return sample(100, name)
}

func storing(name string) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, l *ledger) error {
		out, err := store(d, textOf(name))
		if err != nil {
			return err
		}
		if want := cache.DigestOf(textOf(name)); out.Digest != want {
			return fmt.Errorf("Commit = %v, want %v", out, want)
		}
		l.blobs[name] = textOf(name)
		return nil
	}
}

func aborting(d *cache.Dir, _ *ledger) error {
	w, err := d.Create()
	if err != nil {
		return err
	}
	_, err = w.Write(make([]byte, 100_000))
	return errors.Join(err, w.Abort())
}

func recording(k cache.Key, seed int) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, l *ledger) error {
		r := benchResult()
		r.Outputs = []cache.Output{{Digest: cache.DigestOf(textOf("small")), Size: 100}}
		r.Note = fmt.Sprint("recorded ", seed)
		if len(l.results[k]) == 0 {
			l.results[k] = []cache.Result{{}} // a miss
		}
		l.results[k] = append(l.results[k], r)
		err := d.Record(k, r)
		if err == nil {
			l.results[k] = []cache.Result{r}
		}
		return err
	}
}

func lookingUp(k cache.Key) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, l *ledger) error {
		r, err := d.Lookup(k)
		if err == nil && !slices.ContainsFunc(l.results[k], func(a cache.Result) bool { return a.Note == r.Note }) {
			return fmt.Errorf("Lookup = %q, which nobody recorded", r.Note)
		}
		return err
	}
}

func reading(name string) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, _ *ledger) error {
		b, err := d.Open(cache.DigestOf(textOf(name)))
		if err != nil {
			return err
		}
		defer b.Close()
		got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		if err == nil && !bytes.Equal(got, textOf(name)) {
			return fmt.Errorf("read %d bytes that were not stored", len(got))
		}
		return err
	}
}

func hashing(d *cache.Dir, l *ledger) error {
	out, err := d.SourceDigest(context.Background(), l.source)
	if want := cache.DigestOf([]byte("text of a user")); err == nil && out.Digest != want {
		return fmt.Errorf("SourceDigest = %s", out.Digest)
	}
	return err
}

func exporting(name, file string) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, l *ledger) error {
		path, text := filepath.Join(l.out, "folder", file), string(textOf(name))
		if len(l.exports[path]) == 0 {
			l.exports[path] = []string{""} // not there
		}
		l.exports[path] = append(l.exports[path], text)
		_, err := d.Export(cache.DigestOf(textOf(name)), path)
		if err == nil {
			l.exports[path] = []string{text}
		}
		return err
	}
}

func locking(k cache.Key) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, _ *ledger) error {
		unlock, err := d.Lock(context.Background(), k, nil)
		if err == nil {
			unlock()
		}
		return err
	}
}

func keeping(name, text string) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, l *ledger) error {
		if len(l.kept[name]) == 0 {
			l.kept[name] = []string{""}
		}
		l.kept[name] = append(l.kept[name], text)
		err := d.Keep(cache.Runs, name, []byte(text))
		if err == nil {
			l.kept[name] = []string{text}
		}
		return err
	}
}

func discarding(name string) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, l *ledger) error {
		l.kept[name] = append(l.kept[name], "")
		err := d.Discard(cache.Runs, name)
		if err == nil {
			l.kept[name] = []string{""}
		}
		return err
	}
}

func scratching(k cache.Key) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, _ *ledger) error {
		path, err := d.Scratch(k)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(path, "checkpoint"), []byte("half done"), 0o666)
	}
}

func settingLast(id string, k cache.Key) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, _ *ledger) error {
		if err := d.SetLast(id, k); err != nil {
			return err
		}
		if got, ok := d.Last(id); got != k || !ok {
			return fmt.Errorf("Last(%q) = %s, %v, want %s", id, got.Short(), ok, k.Short())
		}
		return nil
	}
}

func removing(name string) func(*cache.Dir, *ledger) error {
	return func(d *cache.Dir, l *ledger) error {
		delete(l.blobs, name)
		return d.Remove(cache.DigestOf(textOf(name)))
	}
}

// check fails unless the store keeps all promises and shows nothing else.
func (l *ledger) check(t *testing.T, d *cache.Dir) {
	t.Helper()
	wantWhole(t, d)
	for name, b := range l.blobs {
		if err := d.Verify(cache.DigestOf(b)); err != nil {
			t.Errorf("the blob %s was committed: %v", name, err)
		}
	}
	for k, rs := range l.results {
		r, err := d.Lookup(k)
		if !slices.ContainsFunc(rs, func(a cache.Result) bool { return a.Note == r.Note }) {
			t.Errorf("Lookup = %q, %v; want one of %d recorded", r.Note, err, len(rs))
		}
	}
	for path, allowed := range l.exports {
		if b, _ := os.ReadFile(path); !slices.Contains(allowed, string(b)) {
			t.Errorf("%s has %d bytes of no file that was exported to it", path, len(b))
		}
	}
	for name, allowed := range l.kept {
		b, err := d.Kept(cache.Runs, name)
		if !slices.Contains(allowed, string(b)) || err != nil && !errors.Is(err, cache.ErrMiss) {
			t.Errorf("on the shelf is %q, %v; want one of %q", b, err, allowed)
		}
	}
}

// recovers opens the store on a sound disk, checks it, does all again, and looks a day
// later for what is left over.
func (l *ledger) recovers(t *testing.T, path string) {
	t.Helper()
	d := reopen(t, path, clock)
	l.check(t, d)
	if leases, err := d.Leases(); len(leases) > 0 || err != nil {
		t.Errorf("leases %v, %v", leases, err)
	}
	for _, a := range acts() {
		if err := a.do(d, l); err != nil {
			t.Errorf("afterwards: %s: %v", a.name, err)
		}
	}
	l.check(t, d)
	d = reopen(t, path, later(2*24*time.Hour))
	for _, name := range tree(t, d.Path()) {
		switch folder, _, _ := strings.Cut(name, "/"); folder {
		case "blobs", "lists", "results", "history", "sources", "CACHEDIR.TAG", "runs":
		default:
			t.Errorf("%s is left over", name)
		}
	}
}

// everyCall calls try with 1, 1+step, … until it says that there are no more calls.
func everyCall(t *testing.T, step int, try func(n int) bool) {
	t.Helper()
	n := 1
	for try(n) && !t.Failed() {
		n += step
	}
	if n < 100 {
		t.Errorf("only %d calls", n)
	}
}

// The process is killed, or at every other call the power lost, at each call to the file
// system in turn, of which this takes every eleventh: what was promised is there, all that is there is whole, nothing is
// locked, and what is left over goes away.
func TestKilledAtEachCall(t *testing.T) {
	everyCall(t, 11, func(n int) bool { return killedAt(t, n, n%2 == 0) })
}

// killedAt kills the process at call n, and reports whether it made so many.
func killedAt(t *testing.T, n int, power bool) bool {
	t.Helper()
	path, l, f := filepath.Join(t.TempDir(), "cache"), newLedger(t), cachetest.NewFaulty(t)
	f.CrashAt(n)
	d, err := cache.OpenWith(path, later(time.Minute), cache.Options{Disk: f.Disk(), ChunkAbove: chunkLimit})
	for _, a := range acts() {
		if err != nil {
			break
		}
		err = a.do(d, l)
	}
	hit, killed := f.Hit()
	switch {
	case !killed && err != nil:
		t.Errorf("without a crash: %v", err)
	case err != nil && !cachetest.IsKilled(err):
		t.Errorf("killed at %v: %v", hit, err)
	}
	if power {
		f.LosePower()
	}
	l.recovers(t, path)
	if t.Failed() {
		t.Logf("killed at call %d, %v, after %v", n, hit, err)
	}
	return killed
}

// failures are what a file system may say of any call.
func failures() []syscall.Errno { return []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EACCES} }

// Each call to the file system fails in turn, of which this takes every thirteenth, once: what
// asked for it may fail, with one error that says why, and leaves nothing; all else goes
// on.
func TestEachCallFails(t *testing.T) {
	everyCall(t, 13, func(n int) bool { return failsAt(t, n, failures()[n%3]) })
}

// failsAt lets call n fail, and reports whether there were so many.
func failsAt(t *testing.T, n int, errno syscall.Errno) bool {
	t.Helper()
	path, l, f := filepath.Join(t.TempDir(), "cache"), newLedger(t), cachetest.NewFaulty(t)
	f.FailAt(n, errno)
	open := func() (*cache.Dir, error) {
		return cache.OpenWith(path, later(time.Minute), cache.Options{Disk: f.Disk(), ChunkAbove: chunkLimit})
	}
	d, err := open()
	if err != nil {
		wantFailure(t, f, err, errno)
		if d, err = open(); err != nil {
			t.Fatalf("opened again: %v", err)
		}
	}
	for _, a := range acts() {
		err := a.do(d, l)
		if err == nil || errors.Is(err, cache.ErrMiss) && !errors.Is(err, cache.ErrCorrupt) {
			continue // a miss: what should be there could not be made
		}
		wantFailure(t, f, err, errno)
	}
	hit, failed := f.Hit()
	if hit.Op == disk.Read && errors.Is(errno, syscall.EIO) {
		return true // the disk lost something, and said so
	}
	l.recovers(t, path)
	if t.Failed() {
		t.Logf("failed at call %d, %v", n, hit)
	}
	return failed
}

// wantFailure fails unless err is the one that the disk gave, told once.
func wantFailure(t *testing.T, f *cachetest.Faulty, err error, errno syscall.Errno) {
	t.Helper()
	hit, _ := f.Hit()
	if !errors.Is(err, errno) && !errors.Is(err, cache.ErrCorrupt) {
		t.Errorf("%v failed, and the error is %v", hit, err)
	}
	if text := err.Error(); strings.Contains(text, "\n") || strings.Count(text, errno.Error()) > 1 {
		t.Errorf("%v failed, and the error is not clear: %v", hit, text)
	}
	if errors.Is(errno, syscall.ENOSPC) && !errors.Is(err, cache.ErrFull) && hit.Op == disk.Write {
		t.Errorf("%v had no room, and the error is %v", hit, err)
	}
}
