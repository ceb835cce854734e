package engine_test

import (
	"testing"

	"bonsai/engine"
)

// What is behind an artifact and what is after it are the two ends of the same paths.
func TestBehindAndAfter(t *testing.T) {
	g := new(engine.Graph)
	in, other := g.Source("in"), g.Source("other")
	add := func(name string, outputs int, in ...*engine.Artifact) []*engine.Artifact {
		return g.Add(engine.Action{Step: name, Op: mix{}, In: in, Outputs: make([]engine.Output, outputs)})
	}
	a := add("a", 2, in)
	b := add("b", 1, a[1])
	c := add("c", 1, other)
	d := add("d", 1, b[0], c[0])
	all := map[string]*engine.Artifact{
		"in": in, "other": other, "a0": a[0], "a1": a[1], "b": b[0], "c": c[0], "d": d[0],
	}
	for _, want := range []struct {
		of            string
		behind, after string
	}{
		{"in", " in", " a0 a1 b d in"},
		{"a0", " a0 in", " a0"},
		{"a1", " a1 in", " a1 b d"},
		{"c", " c other", " c d"},
		{"d", " a1 b c d in other", " d"},
	} {
		some := []*engine.Artifact{all[want.of]}
		if got := members(g.Behind(some), all); got != want.behind {
			t.Errorf("behind %s is%s, want%s", want.of, got, want.behind)
		}
		if got := members(g.After(some), all); got != want.after {
			t.Errorf("after %s is%s, want%s", want.of, got, want.after)
		}
	}
	if got := members(g.Behind(nil), all); got != "" {
		t.Errorf("behind nothing is%s", got)
	}
}

func members(s engine.Set, all map[string]*engine.Artifact) (text string) {
	for _, name := range []string{"a0", "a1", "b", "c", "d", "in", "other"} {
		if s.Has(all[name]) {
			text += " " + name
		}
	}
	return text
}
