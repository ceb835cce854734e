package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

type text string

func (t text) AppendText(b []byte) ([]byte, error) { return append(b, t...), nil }

func (text) Run(context.Context, []*io.SectionReader, []io.Writer, func(float64, string)) error {
	return nil
}

func TestManifest(t *testing.T) {
	one, two := name{sum: [32]byte{1}}, name{sum: [32]byte{2}, transient: true, output: 3}
	got, err := manifest(text("op hessian v1\nset Layer 7"), "", []name{one, two})
	want := "op hessian v1\nset Layer 7\nin 0 digest 01" + strings.Repeat("0", 62) +
		"\nin 1 key 02" + strings.Repeat("0", 62) + ".3\n"
	if err != nil || string(got) != want {
		t.Errorf("manifest is %q, %v; want %q", got, err, want)
	}
}

func TestManifestOfAPlatform(t *testing.T) {
	got, err := manifest(text("op hessian v1"), "xla:cuda 0.1.0", []name{{sum: [32]byte{1}}})
	want := "op hessian v1\nplatform \"xla:cuda 0.1.0\"\nin 0 digest 01" + strings.Repeat("0", 62) + "\n"
	if err != nil || string(got) != want {
		t.Errorf("manifest is %q, %v; want %q", got, err, want)
	}
}

// Whatever is other in an action is other in its manifest.
func TestManifestsDiffer(t *testing.T) {
	sum := [32]byte{1}
	seen := make(map[string]string)
	for _, op := range []text{"", "op a", "op a\nset B 1"} {
		for i, in := range [][]name{
			nil,
			{{sum: sum}},
			{{sum: sum, transient: true}},
			{{sum: sum, transient: true, output: 1}},
			{{sum: sum}, {}},
			{{}, {sum: sum}},
		} {
			m, err := manifest(op, "", in)
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("op %q with inputs %d", op, i)
			if other, ok := seen[string(m)]; ok {
				t.Errorf("%s has the manifest of %s: %q", what, other, m)
			}
			seen[string(m)] = what
		}
	}
}

func TestDifferences(t *testing.T) {
	for _, test := range []struct{ name, last, now, want string }{
		{"the same", "op a v1\nset X 1\nin 0 digest aa\n", "op a v1\nset X 1\nin 0 digest aa\n", "[]"},
		{"version", "op a v1\n", "op a v2\n", "[op: a v1 → a v2]"},
		{"settings in the order of now, then what is gone", "set B 1\nset A 2\nset C 3\n", "set A 3\nset B 2\n", "[a: 2 → 3 b: 1 → 2 c: 3 → none]"},
		{"a setting that is new", "op a v1\n", "op a v1\nset X 1\n", "[x: none → 1]"},
		{"values with spaces", "set X \"a b\"\n", "set X \"a c\"\n", `[x: "a b" → "a c"]`},
		{"input by place", "in 0 digest aa\nin 1 digest bb\n", "in 0 digest aa\nin 1 digest cc\n", "[input one changed]"},
		{"input by key", "in 0 key aa.0\n", "in 0 key aa.1\n", "[input zero changed]"},
		{"input is transient now", "in 0 digest aa\n", "in 0 key aa.0\n", "[input zero changed]"},
		{"another input in front", "in 0 digest bb\n", "in 0 digest aa\nin 1 digest bb\n", "[inputs: 1 → 2 input zero changed]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := fmt.Sprint(differences(test.last, test.now, []string{"zero", "one"})); got != test.want {
				t.Errorf("differences are %s, want %s", got, test.want)
			}
		})
	}
}

func TestSnake(t *testing.T) {
	for field, want := range map[string]string{
		"Damping": "damping", "MaxNewTokens": "max_new_tokens", "BOS": "bos", "Top64": "top64",
		"Config.HiddenSize": "config.hidden_size", "Takes[0].N": "takes[0].n",
	} {
		if got := snake(field); got != want {
			t.Errorf("snake(%q) is %q, want %q", field, got, want)
		}
	}
}

func TestHeapOfIDs(t *testing.T) {
	b := &build{actions: make([]record, 6)}
	s := newSlots(Options{Workers: 1})
	b.graph = &Graph{actions: make([]Action, 6)}
	for _, id := range []int{4, 1, 5, 2, 1} {
		b.actions[id].state = ready
		s.push("", id)
	}
	b.actions[2].state = missed
	var got []int
	for {
		id, ok := s.next(b)
		if !ok {
			break
		}
		b.actions[id].state = running
		got = append(got, id)
	}
	if !slices.Equal(got, []int{1, 4, 5}) {
		t.Errorf("order is %v", got)
	}
}
