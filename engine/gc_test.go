package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"bonsai/cache"
	"bonsai/engine"
)

// After a gc that dropped all but what was asked for, a build runs nothing; after an edit
// it makes again what the edit needs, and the same bytes still end the rebuild.
func TestBuildsAfterAGC(t *testing.T) {
	s := newScene(t)
	store, err := cache.OpenDir(filepath.Join(s.dir, "cache"), clock)
	if err != nil {
		t.Fatal(err)
	}
	s.opt.Store, s.opt.Sources, s.opt.History, s.opt.Locker = store, store, store, store
	world := func(first, third int) *engine.Artifact {
		a := s.add("a", first, nil)
		b := s.add("b", 2, of(a), few(1)) // always the same bytes
		c := s.add("c", third, of(b), few(1))
		return s.add("d", 4, of(c))
	}
	d := world(1, 3)
	out := s.build(d)[0]
	s.ran(1, 2, 3, 4)
	entries := s.plan(d).Entries
	if err := store.Pin(cache.Pin{Name: "d", Keys: []cache.Key{entries[len(entries)-1].Key}}); err != nil {
		t.Fatal(err)
	}
	for _, edit := range []struct {
		what         string
		first, third int
		dropped      int // blobs, before the build
		runs         []int
	}{
		{"nothing", 1, 3, 2, nil},                               // b and c have the same bytes
		{"the step before the last", 1, 30, 0, []int{1, 2, 30}}, // d reads what it read before
		{"the first step", 10, 30, 2, []int{10, 2}},             // and so does c
	} {
		c, err := store.GC(t.Context(), cache.Limits{Max: 1})
		if err != nil || len(c.Dropped) != edit.dropped {
			t.Fatalf("before an edit of %s: GC dropped %+v, %v; want %d blobs", edit.what, c.Dropped, err, edit.dropped)
		}
		s.again()
		if got := s.build(world(edit.first, edit.third))[0]; got != out {
			t.Errorf("after an edit of %s: output %+v, want %+v", edit.what, got, out)
		}
		s.ran(edit.runs...)
		if story := s.story(); strings.Contains(story, "warned") {
			t.Errorf("after an edit of %s:\n%s", edit.what, story)
		}
	}
}
