package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// A climber is an op of many pieces that notes in its scratch folder which are done.
type climber struct {
	Pieces int

	did   func(piece int) error // done before each piece
	folds *[]string             // the folders that it was given
}

func (o climber) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op climber v1\nset Pieces %d\n", o.Pieces), nil
}

func (o climber) Run(_ context.Context, in []*io.SectionReader, out []io.Writer, _ func(float64, string)) error {
	for i := range o.Pieces {
		if err := o.did(i); err != nil {
			return err
		}
	}
	return o.write(in, out)
}

func (o climber) write(in []*io.SectionReader, out []io.Writer) error {
	for _, r := range in {
		if _, err := io.Copy(out[0], r); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out[0], " and %d pieces", o.Pieces)
	return err
}

// Resume implements engine.Resumable.
func (o climber) Resume(_ context.Context, scratch string, in []*io.SectionReader, out []io.Writer, _ func(float64, string)) error {
	if o.folds != nil {
		*o.folds = append(*o.folds, scratch)
	}
	for i := range o.Pieces {
		path := filepath.Join(scratch, fmt.Sprint("piece", i))
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := o.did(i); err != nil {
			return err
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			return err
		}
	}
	return o.write(in, out)
}

// climb adds an action that does its pieces in the scene's scratch folder.
func (s *scene) climb(did func(piece int) error, in ...*engine.Artifact) (*engine.Artifact, *[]string) {
	folds := &[]string{}
	return s.graph.Add(engine.Action{
		Step: "climb", Op: climber{5, did, folds}, In: in, Outputs: []engine.Output{{}},
	})[0], folds
}

func (s *scene) scratch() folders {
	f := folders(filepath.Join(s.dir, "scratch"))
	s.opt.Scratch = f
	return f
}

func (f folders) left() []string {
	entries, _ := os.ReadDir(string(f))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// An op that failed, panicked or was interrupted goes on where it was, and what it left is
// dropped when it has succeeded.
func TestResumableGoesOn(t *testing.T) {
	for name, stop := range map[string]func(cancel func()) error{
		"after a failure":    func(func()) error { return errLuck },
		"after a panic":      func(func()) error { panic("at the disco") },
		"after an interrupt": func(cancel func()) error { cancel(); return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			f := s.scratch()
			ctx, cancel := context.WithCancel(t.Context())
			var did []int
			a, folds := s.climb(func(piece int) error {
				if did = append(did, piece); len(did) == 3 {
					return stop(cancel)
				}
				return nil
			})
			if _, err := engine.Build(ctx, s.graph, of(a), s.opt); err == nil {
				t.Fatal("no error")
			}
			if len(f.left()) != 1 {
				t.Errorf("scratch folders: %q, want one", f.left())
			}
			outs := s.build(a)
			if fmt.Sprint(did) != "[0 1 2 2 3 4]" {
				t.Errorf("pieces done: %v", did)
			}
			if got := read(t, s.store, outs[0].Digest); got != " and 5 pieces" {
				t.Errorf("bytes are %q", got)
			}
			if len(f.left()) != 0 || len(*folds) != 2 || (*folds)[0] != (*folds)[1] {
				t.Errorf("scratch folders left: %q, given: %q", f.left(), *folds)
			}
		})
	}
}

// A retry goes on too, and so does an action that ran into its limit.
func TestResumableIsRetriedFromWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.scratch()
		var did []int
		a, _ := s.climb(func(piece int) error {
			if did = append(did, piece); len(did) == 3 {
				return errBusy
			}
			return nil
		})
		s.graph.Amend(0, func(a *engine.Action) { a.Retries = 1 })
		s.build(a)
		if fmt.Sprint(did) != "[0 1 2 2 3 4]" {
			t.Errorf("pieces done: %v", did)
		}
	})
}

// What was left by a run that may have read other bytes than the key names is not used.
func TestScratchOfOtherSourcesIsDropped(t *testing.T) {
	s := newScene(t)
	s.scratch()
	text := s.source("as it was")
	path, _ := text.Source()
	old := time.Unix(1_700_000_000, 0)
	_ = os.Chtimes(path, old, old)
	var did []int
	stop := true
	a, _ := s.climb(func(piece int) error {
		if did = append(did, piece); piece == 2 && stop {
			file(t, s.dir, "text", "of a run")
			return errLuck
		}
		return nil
	}, text)
	_ = s.fails(a)
	file(t, s.dir, "text", "as it was")
	stop = false
	s.build(a)
	if fmt.Sprint(did) != "[0 1 2 0 1 2 3 4]" {
		t.Errorf("pieces done: %v", did)
	}
	t.Run("a kill in between", func(t *testing.T) {
		s := newScene(t)
		f := s.scratch()
		text := s.source("as it was")
		a, _ := s.climb(func(int) error { return nil }, text)
		key := s.plan(a).Entries[0].Key
		folder, _ := f.Scratch(key) // a killed run left it: one piece, and the sources of another day
		_ = os.MkdirAll(filepath.Join(folder, "work"), 0o777)
		file(t, filepath.Join(folder, "work"), "piece0", "")
		file(t, folder, "sources", "another day")
		n := 0
		b, _ := s.climb(func(int) error { n++; return nil }, text)
		s.build(b)
		if n != 5 {
			t.Errorf("%d pieces done, want all 5", n)
		}
	})
}

// Without a lock another process may be in the same folder: it is not used.
func TestNoScratchWithoutALock(t *testing.T) {
	s := newScene(t)
	f := s.scratch()
	s.opt.Locker = brokenLocks{}
	a, folds := s.climb(func(int) error { return nil })
	s.build(a)
	if len(f.left()) != 0 || len(*folds) != 0 {
		t.Errorf("folders left %q, given %q", f.left(), *folds)
	}
}

type noScratch struct{}

func (noScratch) Scratch(cache.Key) (string, error) { return "", cache.ErrReadOnly }
func (noScratch) DropScratch(cache.Key) error       { return cache.ErrReadOnly }

func TestScratchThatCannotBeMade(t *testing.T) {
	s := newScene(t)
	s.opt.Scratch = noScratch{}
	a, _ := s.climb(func(int) error { return nil })
	if err := s.fails(a); !errors.Is(err, cache.ErrReadOnly) || !strings.Contains(err.Error(), "climb: scratch folder: ") {
		t.Errorf("error is %v", err)
	}
}

// Its log says what an action did, in each of its tries, and how it ended.
func TestLogOfAnAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		logs := &shelf{}
		s.opt.Now, s.opt.Logs = now, logs
		n := 0
		a := s.add("codes.body", 1, nil, retries(1), doing(func(_ context.Context, report func(float64, string)) error {
			report(0.25, "loss 2.31")
			report(0.26, "loss 2.31")
			time.Sleep(time.Second)
			report(0.5, "loss\x1b[31m 2.30\nand more")
			if n++; n == 1 {
				return errBusy
			}
			panic("at the disco")
		}))
		err := s.fails(a)
		e, ok := errors.AsType[*engine.ActionError](err)
		if !ok || !e.Logged {
			t.Fatalf("error %#v does not say that there is a log", err)
		}
		text := logs.logs[e.Key]
		for _, want := range []string{
			"2000-01-01T00:00:00.000Z start codes.body, key " + e.Key.String() + ", try 1 of 2\n",
			"2000-01-01T00:00:00.000Z because no result yet\n",
			"2000-01-01T00:00:00.000Z  25% loss 2.31\n",
			"2000-01-01T00:00:01.000Z  50% loss\uFFFD[31m 2.30\n    and more\n",
			"2000-01-01T00:00:01.000Z failed after 1s: read the dataset: lookup : server misbehaving\n",
			"2000-01-01T00:00:02.000Z start codes.body, key " + e.Key.String() + ", try 2 of 2\n",
			"failed after 1s: panic: at the disco\n",
			"stack of the panic:\n    goroutine ",
			"resume_test.go:",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in the log:\n%s", want, text)
			}
		}
		if n := strings.Count(text, "25% loss 2.31\n"); n != 2 {
			t.Errorf("the note stands there %d times, want once a try:\n%s", n, text)
		}
	})
}

func TestLogOfASuccess(t *testing.T) {
	s := newScene(t)
	logs := &shelf{}
	s.opt.Logs = logs
	a := s.add("a", 1, nil)
	s.build(a)
	key := s.plan(a).Entries[0].Key
	if text := logs.logs[key]; !strings.Contains(text, "finished after 0s: ") {
		t.Errorf("log is %q", text)
	}
	logs.logs = nil
	s.build(a)
	if len(logs.logs) > 0 {
		t.Error("a hit wrote a log")
	}
}

// However much an op says, the log is bounded, and has its beginning and its end.
func TestLogIsBounded(t *testing.T) {
	s := newScene(t)
	logs := &shelf{}
	s.opt.Logs = logs
	a := s.add("a", 1, nil, doing(func(_ context.Context, report func(float64, string)) error {
		for i := range 20_000 {
			report(0.5, fmt.Sprint("line ", i, strings.Repeat("x", i%3000)))
		}
		return nil
	}))
	s.build(a)
	text := logs.logs[s.plan(a).Entries[0].Key]
	if len(text) > 50<<10 {
		t.Errorf("the log has %d bytes", len(text))
	}
	for _, want := range []string{"start a,", "line 0\n", "lines are left out\n", "line 19999", "finished after"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the log", want)
		}
	}
}

type fullShelf struct{}

func (fullShelf) SaveLog(cache.Key, []byte) error { return cache.ErrFull }

func TestLogThatCannotBeKept(t *testing.T) {
	s := newScene(t)
	s.opt.Logs = fullShelf{}
	s.build(s.add("a", 1, nil))
	if !strings.Contains(s.story(), "warned a") {
		t.Errorf("events:\n%s", s.story())
	}
	if e, _ := errors.AsType[*engine.ActionError](s.fails(s.add("b", 2, nil, failing(9, errLuck)))); e == nil || e.Logged {
		t.Errorf("error %#v says that there is a log", e)
	}
}
