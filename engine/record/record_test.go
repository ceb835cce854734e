package record_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/engine"
	"bonsai/engine/record"
)

// A word writes its text and its inputs, or fails.
type word struct {
	text  string
	fails bool
}

func (o word) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op word v1\nset Text %q\n", o.text), nil
}

func (o word) Run(_ context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	report(0.5, "half")
	if o.fails {
		return errors.New("no such word")
	}
	fmt.Fprint(out[0], o.text)
	for _, r := range in {
		if _, err := io.Copy(out[0], r); err != nil {
			return err
		}
	}
	return nil
}

// chain returns a graph of actions a, b and c, each of which reads the one before.
func chain(texts ...word) (*engine.Graph, []*engine.Artifact) {
	g := &engine.Graph{}
	var last []*engine.Artifact
	for i, text := range texts {
		name := string(rune('a' + i))
		last = g.Add(engine.Action{Step: "word." + name, Op: text, In: last, Outputs: []engine.Output{{}}})
	}
	return g, last
}

// clock is a clock that goes on by a second each time it is read.
func clock() func() time.Time {
	t := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	return func() time.Time {
		t = t.Add(time.Second)
		return t
	}
}

func openStore(t testing.TB) *cache.Dir {
	t.Helper()
	d, err := cache.OpenDir(t.TempDir(), clock())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// build builds a chain and returns its record.
func build(t testing.TB, d *cache.Dir, now func() time.Time, texts ...word) *record.Run {
	t.Helper()
	g, want := chain(texts...)
	r := record.NewRecorder(now, record.Head{Command: "build", Recipe: "r"}, func() int64 { return 1 << 20 })
	_, err := engine.Build(t.Context(), g, want, engine.Options{
		Store: d, History: d, Sources: d, Locker: d, Recipe: "r", Emit: r.Event, Now: now, Workers: 1,
	})
	run := r.Finish(g, err)
	if err := record.Save(d, run); err != nil {
		t.Fatal(err)
	}
	return run
}

func TestRecordOfABuild(t *testing.T) {
	d, now := openStore(t), clock()
	first := build(t, d, now, word{text: "x"}, word{text: "y"}, word{text: "z"})
	if first.Ran != 3 || first.Head.Hits != 0 || first.Outcome != record.Built || first.Written != 1+2+3 {
		t.Errorf("first build: %+v", first.Head)
	}
	if !reflect.DeepEqual(first.Critical, []int{0, 1, 2}) {
		t.Errorf("longest chain of a chain is %v", first.Critical)
	}
	second := build(t, d, now, word{text: "x"}, word{text: "Y"}, word{text: "z"})
	if second.Ran != 2 || second.Head.Hits != 1 || second.Saved <= 0 {
		t.Errorf("second build: %+v", second.Head)
	}
	b, c := second.Actions[0], second.Actions[1]
	if b.Step != "word.b" || b.Follows != 0 || len(b.Reasons) != 1 || b.Reasons[0].Old != `"y"` || b.Reasons[0].New != `"Y"` {
		t.Errorf("what changed: %+v", b)
	}
	if c.Step != "word.c" || c.Follows != 1 || c.Reasons[0].Kind != "input" {
		t.Errorf("what followed: %+v", c)
	}
	if c.Took() <= 0 || c.From < b.To || len(second.Memory) == 0 {
		t.Errorf("times: %v to %v after %v, memory %v", c.From, c.To, b.To, second.Memory)
	}
	ids, err := record.List(d)
	if err != nil || len(ids) != 2 || ids[0] != second.ID {
		t.Fatalf("List = %v, %v; want %s first", ids, err, second.ID)
	}
	for _, want := range []*record.Run{first, second} {
		got, err := record.Load(d, want.ID)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Load(%s) = %+v, %v; want %+v", want.ID, got, err, want)
		}
		head, err := record.LoadHead(d, want.ID)
		if err != nil || !reflect.DeepEqual(head, want.Head) {
			t.Errorf("LoadHead(%s) = %+v, %v; want %+v", want.ID, head, err, want.Head)
		}
	}
	if _, err := record.Load(d, "19990101-000000.000-abcdef"); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("Load of none: %v", err)
	}
}

func TestRecordOfAFailure(t *testing.T) {
	d := openStore(t)
	run := build(t, d, clock(), word{text: "x"}, word{fails: true}, word{text: "z"})
	if run.Outcome != record.Failed || run.Failed != 1 || run.Ran != 1 || !strings.Contains(run.Error, "no such word") {
		t.Errorf("%+v", run.Head)
	}
	last := run.Actions[len(run.Actions)-1]
	if last.Step != "word.b" || last.Outcome != record.Failed || last.Error != "no such word" {
		t.Errorf("%+v", last)
	}
}

// What was not told the end of an action, because the build was stopped, says so.
func TestRecordOfAnInterruption(t *testing.T) {
	now := clock()
	r := record.NewRecorder(now, record.Head{}, nil)
	r.Event(engine.Started{Step: "a", Key: cache.Key{1}})
	r.Event(engine.Waiting{Step: "b", Key: cache.Key{2}, Holder: "process 7"})
	r.Event(engine.Started{Step: "b", Key: cache.Key{2}})
	r.Event(engine.Failed{Step: "b", Key: cache.Key{2}, Err: context.Canceled})
	r.Event(engine.Waiting{Step: "c", Key: cache.Key{3}, Holder: "process 8"})
	r.Event(engine.Finished{Step: "c", Key: cache.Key{3}, Hit: true})
	run := r.Finish(nil, fmt.Errorf("interrupted: %w", context.Canceled))
	if run.Outcome != record.Interrupted || run.Failed != 0 {
		t.Errorf("%+v", run.Head)
	}
	for _, a := range run.Actions {
		if a.Outcome != record.Interrupted || a.To <= a.From {
			t.Errorf("%+v", a)
		}
	}
	if w := run.Actions[1].Waits; len(w) != 1 || w[0].Holder != "process 7" || w[0].To <= w[0].From {
		t.Errorf("waits %+v", w)
	}
	if w := run.Waits; len(w) != 1 || w[0].Step != "c" || w[0].Holder != "process 8" || w[0].To <= w[0].From {
		t.Errorf("waits of hits %+v", w)
	}
	if run.Actions[0].Lane == run.Actions[1].Lane {
		t.Errorf("two actions at once are in lane %d", run.Actions[0].Lane)
	}
}

// Each try of an action is one of the run, with the times that the events say.
func TestRecordOfTries(t *testing.T) {
	now := clock()
	r := record.NewRecorder(now, record.Head{}, nil)
	at := func(s int) time.Time { return time.Date(2026, 12, 1, 2, 0, 1+s, 0, time.UTC) }
	r.Event(engine.Started{Step: "a", Key: cache.Key{1}, Pool: "gpu", Try: 1, Time: at(1)})
	r.Event(engine.Retried{Step: "a", Key: cache.Key{1}, Err: errors.New("no network"), Time: at(3)})
	r.Event(engine.Started{Step: "a", Key: cache.Key{1}, Pool: "gpu", Try: 2, Time: at(10)})
	r.Event(engine.Finished{Step: "a", Key: cache.Key{1}, Time: at(15)})
	run := r.Finish(nil, nil)
	want := []record.Action{
		{Step: "a", Key: cache.Key{1}, Outcome: record.Retried, Error: "no network", From: time.Second, To: 3 * time.Second, Pool: "gpu"},
		{Step: "a", Key: cache.Key{1}, Outcome: record.Built, From: 10 * time.Second, To: 15 * time.Second, Pool: "gpu"},
	}
	if !reflect.DeepEqual(run.Actions, want) || run.Ran != 1 || run.Failed != 0 || run.Outcome != record.Built {
		t.Errorf("%+v of %+v", run.Actions, run.Head)
	}
}

// A record that is damaged or of another version is an error and no panic.
func TestDecodeRefuses(t *testing.T) {
	b, err := record.Encode(build(t, openStore(t), clock(), word{text: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := record.Decode(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes decode", n, len(b))
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, err := record.Encode(build(f, openStore(f), clock(), word{text: "x"}, word{text: "y"}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := record.Decode(b)
		if err != nil {
			return
		}
		again, err := record.Encode(r)
		if err != nil {
			// A time that is in JSON's range in its own zone can be out of it in another.
			if !strings.Contains(err.Error(), "outside of range") {
				t.Errorf("Encode of what Decode gave: %v", err)
			}
			return
		}
		if got, err := record.Decode(again); err != nil || !reflect.DeepEqual(got.Head, r.Head) {
			t.Errorf("%+v decodes, and after another round is %+v, %v", r.Head, got, err)
		}
	})
}

// The oldest records go when there are too many, and large ones sooner.
func TestSaveIsBounded(t *testing.T) {
	s := shelf{}
	for i := range 510 {
		run := &record.Run{Head: record.Head{ID: fmt.Sprintf("%04d", i)}}
		if err := record.Save(s, run); err != nil {
			t.Fatal(err)
		}
	}
	ids, _ := record.List(s)
	if len(ids) != 500 || ids[0] != "0509" || ids[499] != "0010" {
		t.Errorf("%d records are kept, %s to %s", len(ids), ids[len(ids)-1], ids[0])
	}
	hits := make([]record.Hit, 40_000)
	for i := range hits {
		for j := range hits[i].Key {
			hits[i].Key[j] = byte(rand.Uint32())
		}
	}
	for i := range 34 {
		run := &record.Run{Head: record.Head{ID: fmt.Sprintf("1%03d", i)}, Hits: hits}
		if err := record.Save(s, run); err != nil {
			t.Fatal(err)
		}
	}
	large := 0
	for name := range s {
		if len(s[name]) > 1<<20 {
			large++
		}
	}
	if _, first := s["1000"]; large != 32 || first {
		t.Errorf("%d large records are kept", large)
	}
}

// A shelf is a record.Shelf in memory.
type shelf map[string][]byte

func (s shelf) Keep(_ cache.Shelf, name string, b []byte) error {
	s[name] = b
	return nil
}

func (s shelf) Kept(_ cache.Shelf, name string) ([]byte, error) { return s[name], nil }

func (s shelf) KeptNames(cache.Shelf) (names []string, err error) {
	for i := range 2000 {
		if name := fmt.Sprintf("%04d", i); s[name] != nil {
			names = append(names, name)
		}
	}
	return names, nil
}

func (s shelf) Discard(_ cache.Shelf, name string) error {
	delete(s, name)
	return nil
}

// BenchmarkRecord is a build of n actions of which all are hits, recorded and encoded.
func BenchmarkRecord(b *testing.B) {
	const n = 100_000
	b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
		events := make([]engine.Event, n)
		for i := range events {
			e := engine.Finished{Step: "codes.body", Name: fmt.Sprintf("layer %d qkv", i), Hit: true}
			for j := range e.Key {
				e.Key[j] = byte(rand.Uint32())
			}
			events[i] = e
		}
		size := 0
		for b.Loop() {
			r := record.NewRecorder(clock(), record.Head{}, nil)
			for _, e := range events {
				r.Event(e)
			}
			text, err := record.Encode(r.Finish(nil, nil))
			if err != nil {
				b.Fatal(err)
			}
			size = len(text)
		}
		b.ReportMetric(float64(size), "bytes")
	})
}
