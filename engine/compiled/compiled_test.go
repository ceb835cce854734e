package compiled_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/engine"
	"bonsai/engine/compiled"
)

// A world is a store with one result, and a source.
type world struct {
	store *cache.Dir
	at    time.Time
	path  string // of the source
	made  engine.Current
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{path: filepath.Join(t.TempDir(), "source")}
	if err := os.WriteFile(w.path, []byte("source"), 0o666); err != nil {
		t.Fatal(err)
	}
	w.at = w.written(t).Add(time.Hour)
	var err error
	if w.store, err = cache.OpenDir(t.TempDir(), func() time.Time { return w.at }); err != nil {
		t.Fatal(err)
	}
	blob, err := w.store.Create()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = blob.Write([]byte("made"))
	out, err := blob.Commit()
	if err != nil {
		t.Fatal(err)
	}
	key := cache.KeyOf([]byte("op\n"))
	if err := w.store.Record(key, cache.Result{Outputs: []cache.Output{out}, Manifest: "op\n", Started: w.at}); err != nil {
		t.Fatal(err)
	}
	w.made = engine.Current{
		Sources: []string{w.path}, Wanted: []cache.Output{out},
		Actions: []engine.CurrentAction{{Step: "a", Name: "b", Key: key, Outputs: []cache.Output{out}, Duration: 2 * time.Second}},
	}
	w.at = w.at.Add(10 * time.Second)
	return w
}

// written returns when the source was written, by the file system's clock.
func (w *world) written(t testing.TB) time.Time {
	t.Helper()
	fi, err := os.Stat(w.path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.ModTime()
}

func (w *world) compile(reads []compiled.Read, began time.Time) (*compiled.Plan, bool) {
	places := []compiled.Place{{Folder: "out", Name: "file", Step: "a", Blob: w.made.Wanted[0]}}
	return compiled.Compile(w.store, "recipe", w.made, reads, places, began)
}

func unset(string) (string, bool) { return "", false }

func TestPlanIsKept(t *testing.T) {
	w := newWorld(t)
	reads := []compiled.Read{
		{Kind: compiled.Env, Name: "X", Saw: compiled.Variable("", false)},
		compiled.See(w.store, compiled.Folder, filepath.Dir(w.path)),
		compiled.See(w.store, compiled.Presence, w.path+"x"),
	}
	p, ok := w.compile(reads, w.at)
	if !ok {
		t.Fatal("Compile answers false")
	}
	if err := p.Save(w.store, "name"); err != nil {
		t.Fatal(err)
	}
	got, err := compiled.Load(w.store, "name")
	if err != nil {
		t.Fatal(err)
	}
	p.Touched = p.Touched.Round(0)
	if got.Touched.Equal(p.Touched) {
		got.Touched = p.Touched
	}
	if !reflect.DeepEqual(got, p) {
		t.Errorf("Load returns\n%+v\nwant\n%+v", got, p)
	}
	if renewed, ok := got.Holds(w.store, unset); !ok || renewed {
		t.Errorf("Holds = %t, %t, want false, true", renewed, ok)
	}
	if got.Saved != 2 {
		t.Errorf("Saved = %v s, want 2 s", got.Saved)
	}
	if _, ok := got.Holds(w.store, func(string) (string, bool) { return "", true }); ok {
		t.Error("a variable that is set to nothing is taken for one that is not set")
	}
}

func TestCompileRefuses(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		reads []compiled.Read
		began time.Time
	}{
		"a source that is as new as the build": {nil, w.written(t).Add(time.Second)},
		"a clock that went back":               {nil, w.at.Add(time.Minute)},
		"a folder that changed":                {[]compiled.Read{{Kind: compiled.Folder, Name: filepath.Dir(w.path), Saw: "x"}}, w.at},
		"a variable with two values":           {[]compiled.Read{{Kind: compiled.Env, Name: "X", Saw: "=1"}, {Kind: compiled.Env, Name: "X", Saw: "=2"}}, w.at},
		"a file that was there":                {[]compiled.Read{{Kind: compiled.File, Name: w.path + "x", Saw: "x"}}, w.at},
	} {
		if _, ok := w.compile(c.reads, c.began); ok {
			t.Errorf("Compile with %s answers true", name)
		}
	}
}

// Marks of use change the times of results: they are looked up once, and then have new marks.
func TestHoldsAfterTouch(t *testing.T) {
	w := newWorld(t)
	p, ok := w.compile(nil, w.at)
	if !ok {
		t.Fatal("Compile answers false")
	}
	w.at = w.at.Add(30 * time.Hour)
	if did, err := p.Touch(w.store); !did || err != nil {
		t.Fatalf("Touch after a day = %t, %v, want true", did, err)
	}
	if did, err := p.Touch(w.store); did || err != nil {
		t.Errorf("Touch again = %t, %v, want false", did, err)
	}
	w.at = w.at.Add(10 * time.Second)
	if renewed, ok := p.Holds(w.store, unset); !ok || !renewed {
		t.Errorf("Holds after Touch = %t, %t, want true, true", renewed, ok)
	}
	if renewed, ok := p.Holds(w.store, unset); !ok || renewed {
		t.Errorf("Holds after that = %t, %t, want false, true", renewed, ok)
	}
}

func FuzzDecode(f *testing.F) {
	w := newWorld(f)
	p, ok := w.compile(nil, w.at)
	if !ok {
		f.Fatal("Compile answers false")
	}
	const head = len("bonsai plan 2\n") + len(cache.Digest{})
	f.Add(p.Encode()[head:])
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := cache.DigestOf(body)
		b := append(append([]byte("bonsai plan 2\n"), sum[:]...), body...)
		if p, err := compiled.Decode(b); err == nil {
			if again, err := compiled.Decode(p.Encode()); err != nil || !reflect.DeepEqual(again, p) {
				t.Errorf("a plan that was read is written as another: %v", err)
			}
		}
		if _, err := compiled.Decode(body); err == nil {
			t.Error("a file without a checksum is read")
		}
	})
}
