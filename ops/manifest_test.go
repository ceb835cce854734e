package ops_test

import (
	"math"
	"testing"

	"bonsai/ops"
	"bonsai/ops/opstest"
)

type inner struct {
	Name   string
	Values []float64
}

type settings struct {
	Layer   int
	Damping float32
	On      bool
	Keep    []string
	Counts  map[string]int
	Inner   inner
	Maybe   *inner
	secret  int // takes no part
}

func (s settings) AppendText(b []byte) ([]byte, error) {
	return ops.AppendManifest(b, "test", 3, s)
}

func full() settings {
	return settings{
		Layer: 2, Damping: 0.01, On: true, Keep: []string{"a", "b"}, Counts: map[string]int{"y": 2, "x": 1},
		Inner: inner{Name: "n\nm", Values: []float64{0.5}}, Maybe: &inner{Values: []float64{1}}, secret: 1,
	}
}

func TestManifestIsOneLineASetting(t *testing.T) {
	got, err := full().AppendText([]byte("before "))
	if err != nil {
		t.Fatal(err)
	}
	want := `before op test v3
set Layer 2
set Damping 0.01
set On true
set Keep[] 2
set Keep[0] "a"
set Keep[1] "b"
set Counts[] 2
set Counts["x"] 1
set Counts["y"] 2
set Inner.Name "n\nm"
set Inner.Values[] 1
set Inner.Values[0] 0.5
set Maybe.Name ""
set Maybe.Values[] 1
set Maybe.Values[0] 1
`
	if string(got) != want {
		t.Errorf("AppendManifest gave\n%s\nwant\n%s", got, want)
	}
}

func TestEveryFieldIsInTheManifest(t *testing.T) { opstest.CheckManifest(t, full()) }

func TestUnexportedFieldsTakeNoPart(t *testing.T) {
	a, b := full(), full()
	b.secret = 9
	ta, _ := a.AppendText(nil)
	tb, _ := b.AppendText(nil)
	if string(ta) != string(tb) {
		t.Errorf("a field that is no setting changed the manifest:\n%s\n%s", ta, tb)
	}
}

func TestNoCanonicalText(t *testing.T) {
	for name, op := range map[string]any{
		"a number":      7,
		"a function":    struct{ F func() }{func() {}},
		"not a number":  struct{ X float64 }{math.NaN()},
		"a channel":     struct{ C chan int }{make(chan int)},
		"inside a list": struct{ L []any }{[]any{func() {}}},
	} {
		if b, err := ops.AppendManifest(nil, "test", 1, op); err == nil {
			t.Errorf("%s was accepted: %s", name, b)
		}
	}
}
