package view

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/lipgloss"

	"bonsai/cache"
	"bonsai/engine"
)

// moments are frames of one build, with the time at which each is drawn.
func moments(t *testing.T, style Style, width int) string {
	var all strings.Builder
	synctest.Test(t, func(*testing.T) {
		x := newText(BuildOptions{
			Style: style, Now: time.Now, Budget: 8 << 30, Held: func() int64 { return 3 << 30 },
		})
		began := time.Now()
		x.put = func(line string) { all.WriteString("> " + line + "\n") }
		shot := func() {
			all.WriteString("-- " + time.Since(began).String() + "\n")
			if f := x.frame(time.Now(), width); f != "" {
				all.WriteString(f + "\n")
			}
		}
		plan := &engine.Plan{Entries: []engine.Entry{
			{Step: "checkpoint.base", Status: engine.Hit, Root: -1},
			{Step: "codes.body", Name: "layer 0 qkv codes", Status: engine.Run, Seconds: 100},
			{Step: "traces.自分", Name: "Antworten 🧮 zu langen Fragen, Teil 1 von 12", Status: engine.Run, Seconds: 10},
			{Step: "codes.body", Name: "layer 1 qkv codes", Status: engine.Maybe, Seconds: 100},
			{Step: "gguf.model", Name: "write", Status: engine.Maybe, Seconds: 5},
		}}
		x.event(engine.Planned{Actions: 5})
		x.event(engine.Hashing{Path: "model-00001-of-00004.safetensors"})
		shot()
		x.event(engine.Hashing{Path: "model-00001-of-00004.safetensors", Done: true})
		x.expect(plan)
		x.event(engine.Finished{Step: "checkpoint.base", Hit: true})
		x.event(engine.Started{Step: "codes.body", Name: "layer 0 qkv codes", Pool: "gpu", Estimate: 100})
		x.event(engine.Started{Step: "traces.自分", Name: "Antworten 🧮 zu langen Fragen, Teil 1 von 12", Pool: "cpu", Estimate: 10})
		time.Sleep(4 * time.Second)
		x.event(engine.Progress{Step: "codes.body", Name: "layer 0 qkv codes", Done: 0.05, Note: "row 12 of 256, error 0.279"})
		x.event(engine.Progress{Step: "traces.自分", Name: "Antworten 🧮 zu langen Fragen, Teil 1 von 12", Done: 0.8, Note: "loss 2.31, 812 tokens/s"})
		shot()
		time.Sleep(time.Second)
		x.event(engine.Finished{
			Step: "traces.自分", Name: "Antworten 🧮 zu langen Fragen, Teil 1 von 12",
			Result: cache.Result{Duration: 5 * time.Second, Note: "4096 tokens"},
		})
		x.event(engine.Waiting{Step: "codes.body", Name: "layer 1 qkv codes", Holder: "process 4711 on box since 12:04"})
		time.Sleep(time.Minute)
		shot()
		x.event(engine.Failed{Step: "codes.body", Name: "layer 0 qkv codes", Err: context.Canceled})
		shot()
	})
	return all.String()
}

// What a terminal shows at each moment, at widths of 80 and 40 columns, and in colour.
func TestFrames(t *testing.T) {
	for name, look := range map[string]struct {
		style Style
		width int
	}{
		"80": {Style{Terminal: true, Live: true, Width: 80}, 80}, "40": {Style{Terminal: true, Live: true, Width: 40}, 40},
		"color": {Style{Terminal: true, Live: true, Color: true, Width: 80}, 80},
		"9":     {Style{Terminal: true, Live: true, Width: 9}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			got := moments(t, look.style, look.width)
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				frame := strings.HasPrefix(line, "[") || strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ")
				if frame && lipgloss.Width(line) >= look.width {
					t.Errorf("a line of %d columns on a terminal of %d: %q", lipgloss.Width(line), look.width, line)
				}
			}
			path := filepath.Join("testdata", "frames_"+name+".txt")
			got = strings.ReplaceAll(got, "\x1b", `\e`)
			if os.Getenv("UPDATE_FRAMES") != "" {
				if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("drawn:\n%s\nwant, by %s:\n%s", got, path, want)
			}
		})
	}
}

// Many actions are a few rows.
func TestFrameOfManyActions(t *testing.T) {
	x := newText(BuildOptions{Style: Style{Width: 80}, Now: time.Now})
	x.put = func(string) {}
	for i := range 100 {
		x.event(engine.Started{Step: "mix.a", Name: strings.Repeat("x", i)})
	}
	f := x.frame(time.Now(), 80)
	if n := strings.Count(f, "\n") + 1; n != mostRows+2 || !strings.Contains(f, "and 92 more") {
		t.Errorf("%d lines:\n%s", n, f)
	}
}

// On a terminal what runs is drawn over, what ended stays, the cursor is never hidden, and
// no mode of the terminal is turned on that a killed process would leave behind.
func TestLiveLeavesTheTerminalAlone(t *testing.T) {
	var b bytes.Buffer
	l := newLive(&b, BuildOptions{Style: Style{Terminal: true, Live: true, Width: 60}, Now: time.Now})
	l.event(engine.Planned{Actions: 2})
	l.event(engine.Started{Step: "mix.a"})
	l.tick(time.Now())
	for i := range 5 {
		l.event(engine.Progress{Step: "mix.a", Done: float64(i) / 5, Note: "half way"})
		l.tick(time.Now())
		time.Sleep(60 * time.Millisecond)
	}
	l.event(engine.Finished{Step: "mix.a", Result: cache.Result{Duration: time.Second}})
	l.event(engine.Failed{Step: "mix.b", Err: errors.New("broken")})
	l.close(summary{ran: 1, failed: 1}, errors.New("broken"))
	got := b.String()
	for _, want := range []string{"half way", "built    mix.a", "failed   mix.b", "failed   1 action ran"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	for _, wrong := range []string{"\x1b[?25l", "\x1b[?1049h", "\x1b[?2004h", "\x1b[?1000h", "\x1b]"} {
		if strings.Contains(got, wrong) {
			t.Errorf("%q is in %q", wrong, got)
		}
	}
	if strings.Index(got, "built    mix.a") > strings.Index(got, "failed   1 action ran") {
		t.Errorf("lines are out of order in %q", got)
	}
}

// A build that is over before anything is drawn is plain lines.
func TestLiveOfNothing(t *testing.T) {
	var b bytes.Buffer
	l := newLive(&b, BuildOptions{Style: Style{Terminal: true, Live: true, Width: 60}, Now: time.Now})
	l.event(engine.Planned{Actions: 1})
	l.event(engine.Finished{Step: "mix.a", Hit: true})
	l.tick(time.Now())
	l.close(summary{hits: 1}, nil)
	if want := "done     0 actions ran, 1 was up to date, 0 ms\n"; b.String() != want {
		t.Errorf("drawn %q, want %q", b.String(), want)
	}
}
