package view_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine/record"
)

// someRun is a run of two actions at once, of which one waited, and one that failed.
func someRun() *record.Run {
	began := time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC)
	second := time.Second
	return &record.Run{
		Head: record.Head{
			ID: "20261201-020304.000-k3f9ab", Command: "build", Words: []string{"target=gguf"}, Recipe: "/r", Targets: []string{"gguf"},
			Version: "0.1.0", Backend: "go", Began: began, Ended: began.Add(10 * second), Outcome: record.Failed,
			Error: "mix.b: no room", Ran: 2, Hits: 1, Failed: 1, Written: 3 << 20, Busy: 9, Saved: 3725,
		},
		Actions: []record.Action{
			{Step: "codes.body", Name: "layer 0 qkv", Outcome: record.Built, From: second, To: 6 * second, Note: "relative error 0.279", Bytes: 3 << 20, Key: cache.Key{1}},
			{
				Step: "mix.a", Outcome: record.Built, From: 2 * second, To: 6 * second, Lane: 1, Peak: 7,
				Waits:   []record.Wait{{Holder: "process 7", From: 0, To: 2 * second}},
				Reasons: []record.Reason{{Kind: "setting", Name: "seed", Old: "1", New: "2", Text: "seed: 1 → 2"}},
			},
			{Step: "mix.b", Outcome: record.Failed, From: 6 * second, To: 9 * second, Error: "no \x1b[31mroom", Follows: 1},
		},
		Hits:     []record.Hit{{Step: "file.in", Key: cache.Key{9}}},
		Waits:    []record.HitWait{{Step: "mix.c", Wait: record.Wait{Holder: "process 8", From: time.Second, To: 3 * time.Second}}},
		Warnings: []record.Warning{{Step: "mix.a", Text: "it is slow"}},
		Reads:    []record.Read{{Path: `weights "1".bin`, Size: 1 << 30, From: 0, To: second}},
		Memory:   []record.Sample{{At: second, Bytes: 1 << 28}, {At: 2 * second, Bytes: 1 << 29}},
		Critical: []int{0, 2},
	}
}

func TestWriteRuns(t *testing.T) {
	var b bytes.Buffer
	r := someRun()
	quick := record.Head{ID: "20261201-020300.000-aaaaaa", Command: "build", Targets: []string{"x"}, Began: r.Began, Ended: r.Began, Outcome: record.Built, Quick: true}
	opt := view.RunsOptions{Style: view.Style{Width: view.Unlimited}, Now: r.Ended}
	if err := view.WriteRuns(&b, []record.Head{r.Head, quick}, 7, opt); err != nil {
		t.Fatal(err)
	}
	want := `run     when         outcome       took   ran   hits     written        saved  what
k3f9ab  12-01 02:03  failed       10.0 s     2      1     3.0 MiB   1 h 02 min  build gguf
aaaaaa  12-01 02:03  built          0 ms     0      0         0 B         0 ms  build x (nothing had changed)
and 5 earlier
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := view.WriteRuns(&b, []record.Head{r.Head}, 1, view.RunsOptions{Style: view.Style{Width: 80}, Now: r.Ended}); err != nil {
		t.Fatal(err)
	}
	checkWidth(t, b.String(), 85) // its columns; only what a run was for is cut
}

func TestWriteRun(t *testing.T) {
	var b bytes.Buffer
	r := someRun()
	if err := view.WriteRun(&b, r, view.RunsOptions{Style: view.Style{Width: 80}, Now: r.Ended}); err != nil {
		t.Fatal(err)
	}
	want := `run k3f9ab failed in 10.0 s
id       20261201-020304.000-k3f9ab
began    2026-12-01 02:03:04
words    bonsai build target=gguf
recipe   /r
bonsai   0.1.0, backend go
actions  2 ran, 1 up to date, 1 failed
written  3.0 MiB
saved    1 h 02 min by hits
busy     9.0 s of actions, 0.9 at once on average
memory   512.0 MiB at most
waited   4.0 s for other builds, by 2 actions

slowest
      5.0 s  codes.body layer 0 qkv                   relative error 0.279
      4.0 s  mix.a
      3.0 s  mix.b  failed

longest chain: 8.0 s of 10.0 s, 2 actions
      5.0 s  codes.body layer 0 qkv                   relative error 0.279
      3.0 s  mix.b  failed

failed mix.b
  no �[31mroom

warning mix.a: it is slow
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	checkWidth(t, b.String(), 80)
}

// checkWidth fails if a line of text is wider than that many columns.
func checkWidth(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
}

func TestWriteRunAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := view.WriteRun(&b, someRun(), view.RunsOptions{JSON: true}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version  int
		Type, ID string
		Actions  []struct{ Step, Action string }
		UpToDate []struct{ Step string } `json:"up_to_date"`
		Critical []int
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != 1 || got.Type != "run" || got.ID == "" || len(got.Actions) != 3 || got.UpToDate[0].Step != "file.in" || len(got.Critical) != 2 {
		t.Errorf("%s is %+v", b.String(), got)
	}
}

// TestWriteTrace holds a trace to what the format asks for: each event has a phase and
// what belongs to it, each row has a name, and on no row two spans overlap.
func TestWriteTrace(t *testing.T) {
	var b bytes.Buffer
	if err := view.WriteTrace(&b, someRun()); err != nil {
		t.Fatal(err)
	}
	checkTrace(t, b.Bytes(), 8)
	for _, want := range []string{`"longest chain"`, `"holder":"process 7"`, `"because":"seed: 1 → 2"`, `"ph":"C"`, `hash weights \"1\".bin`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the trace has no %s:\n%s", want, b.String())
		}
	}
}

func checkTrace(t *testing.T, text []byte, spans int) {
	t.Helper()
	var trace struct {
		DisplayTimeUnit string           `json:"displayTimeUnit"`
		OtherData       map[string]any   `json:"otherData"`
		TraceEvents     []map[string]any `json:"traceEvents"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&trace); err != nil {
		t.Fatal(err)
	}
	if trace.DisplayTimeUnit != "ms" {
		t.Errorf("unit %q", trace.DisplayTimeUnit)
	}
	names, ends, found := map[float64]bool{}, map[float64]float64{}, 0
	for _, e := range trace.TraceEvents {
		row, isNumber := e["tid"].(float64)
		if _, ok := e["pid"].(float64); !ok || !isNumber || e["name"] == "" {
			t.Errorf("an event without a name, a process or a row: %v", e)
		}
		args, _ := e["args"].(map[string]any)
		switch e["ph"] {
		case "M":
			names[row] = names[row] || e["name"] == "thread_name" && args["name"] != ""
		case "X":
			from, took := e["ts"].(float64), e["dur"].(float64)
			if from < ends[row] || took < 0 {
				t.Errorf("%v overlaps with one before it on row %v, which ends at %v", e, row, ends[row])
			}
			ends[row] = from + took
			found++
		case "C":
			if len(args) != 1 {
				t.Errorf("a counter with %d values: %v", len(args), e)
			}
		default:
			t.Errorf("an event of phase %v: %v", e["ph"], e)
		}
	}
	for row := range ends {
		if !names[row] {
			t.Errorf("row %v has no name", row)
		}
	}
	if found != spans {
		t.Errorf("%d spans, want %d", found, spans)
	}
}

// A thousand actions of which many overlap are on as many rows as ran at once.
func TestTraceOfManyActions(t *testing.T) {
	r := someRun()
	r.Actions, r.Critical, r.Reads, r.Waits = nil, nil, nil, nil
	for i := range 1000 {
		from := time.Duration(i/4) * time.Millisecond
		r.Actions = append(r.Actions, record.Action{
			Step: "mix.a", Name: fmt.Sprint(i), From: from, To: from + time.Millisecond, Outcome: record.Built,
		})
	}
	var b bytes.Buffer
	if err := view.WriteTrace(&b, r); err != nil {
		t.Fatal(err)
	}
	checkTrace(t, b.Bytes(), 1000)
	if !strings.Contains(b.String(), `"actions 4"`) || strings.Contains(b.String(), `"actions 5"`) {
		t.Error("four actions at once are not on four rows")
	}
}
