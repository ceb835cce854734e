package view_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
)

// A screen takes what is drawn.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// draw shows a build of a hit, an action of five seconds and one that fails.
func draw(t *testing.T, opt view.BuildOptions) string {
	t.Helper()
	var s screen
	synctest.Test(t, func(*testing.T) {
		opt.Now = time.Now
		v := view.NewBuild(&s, opt)
		v.Event(engine.Planned{Actions: 3, Sources: 1})
		v.Event(engine.Finished{Step: "dataset.a", Hit: true, Result: cache.Result{Note: "12 documents"}})
		v.Event(engine.Started{Step: "codes.body", Name: "layer 0 qkv codes", Estimate: 9})
		for i := range 5 {
			v.Event(engine.Progress{Step: "codes.body", Name: "layer 0 qkv codes", Done: float64(i) / 5, Note: fmt.Sprintf("row %d", i)})
			time.Sleep(time.Second)
		}
		v.Event(engine.Finished{
			Step: "codes.body", Name: "layer 0 qkv codes",
			Result: cache.Result{Note: "relative error 0.279", Duration: 5 * time.Second},
		})
		v.Event(engine.Started{Step: "gguf.model", Name: "write", Pool: "cpu", Try: 1})
		v.Event(engine.Retried{Step: "gguf.model", Name: "write", Err: errors.New("a fetch broke off"), Wait: 200 * time.Millisecond, Time: time.Now()})
		v.Event(engine.Started{Step: "gguf.model", Name: "write", Pool: "cpu", Try: 2})
		err := errors.New("no room")
		v.Event(engine.Failed{Step: "gguf.model", Name: "write", Err: err, Time: time.Now()})
		for _, name := range []string{"verify", "score"} {
			v.Event(engine.Skipped{Step: "gguf.model", Name: name, Because: "gguf.model write"})
		}
		v.Placed("out/x.gguf", cache.Output{Size: 2048}, cache.Hardlink)
		v.Close(err)
	})
	return s.String()
}

// In a pipe there are whole lines only, and none is more than two seconds after another.
func TestPlainBuild(t *testing.T) {
	const want = `running  [1/3] codes.body layer 0 qkv codes  20 %  1.9 s, about 8 s left  row 1
running  [1/3] codes.body layer 0 qkv codes  60 %  3.8 s, about 3 s left  row 3
built    codes.body layer 0 qkv codes                 5.0 s  relative error 0.279
retried  gguf.model write: a fetch broke off; again in 0.2 s
failed   gguf.model write
placed   out/x.gguf  2.0 KiB, a read-only link to the cache
skipped  2 actions because of gguf.model write
failed   1 action ran, 1 was up to date, 1 failed, 5.0 s
`
	got := draw(t, view.BuildOptions{Style: view.Style{Width: view.Unlimited}})
	got = regexp.MustCompile(`about (\d)\.\d s`).ReplaceAllString(got, "about $1 s")
	if got != want {
		t.Errorf("drawn:\n%s\nwant:\n%s", got, want)
	}
}

// On a terminal what runs is drawn over, and what ended stays.
func TestLiveBuild(t *testing.T) {
	got := draw(t, view.BuildOptions{Style: view.Style{Terminal: true, Live: true, Width: 100}})
	for _, want := range []string{"[1/3] 1 running", "20 %", "80 %", " left", "row 4", "built    codes.body", "failed   1 action ran"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

func TestJSONBuild(t *testing.T) {
	const want = `{"version":1,"type":"planned","actions":3,"sources":1}
{"version":1,"type":"finished","step":"dataset.a","hit":true,"note":"12 documents","outputs":null,"duration_s":0,"time":"0001-01-01T00:00:00Z"}
`
	got := draw(t, view.BuildOptions{JSON: true})
	if !strings.HasPrefix(got, want) {
		t.Errorf("drawn:\n%s\nwant it to begin with:\n%s", got, want)
	}
	if want := `{"version":1,"type":"summary","ran":1,"hits":1,"failed":1,"duration_s":5,"error":"no room"}` + "\n"; !strings.HasSuffix(got, want) {
		t.Errorf("drawn:\n%s\nwant it to end with:\n%s", got, want)
	}
}

// Control characters in the names of files and in what ops say reach no terminal.
func TestNoControlCharacters(t *testing.T) {
	var s screen
	v := view.NewBuild(&s, view.BuildOptions{Style: view.Style{Color: true, Width: 80}, Now: time.Now})
	v.Placed("out/\x1b]0;evil\a.gguf", cache.Output{}, cache.Copy)
	v.Event(engine.Finished{Step: "a.b", Result: cache.Result{Note: "x\x1b[2Jy"}})
	v.Close(nil)
	if got := s.String(); strings.Contains(got, "\x1b]") || strings.Contains(got, "\x1b[2J") || strings.Contains(got, "\a") {
		t.Errorf("drawn: %q", got)
	}
}

func TestErrors(t *testing.T) {
	full := &engine.ActionError{Step: "codes.body", Name: "embed", Err: fmt.Errorf("write: %w", cache.ErrFull)}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"advice is below what failed", full, `error: codes.body embed: write: the disk is full
  Nothing finished is lost: make room, or give another folder with cache= or
  BONSAI_CACHE, and build again.
`},
		{"joined errors are apart", errors.Join(errors.New("a"), errors.New("b")), "error: a\nerror: b\n"},
		{"an interruption is no error", fmt.Errorf("build: %w", context.Canceled), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			view.Error(&b, c.err, view.Style{Width: 80})
			if b.String() != c.want {
				t.Errorf("Error(%v) writes\n%s\nwant\n%s", c.err, b.String(), c.want)
			}
		})
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 3 << 40: "3.0 TiB", 1 << 62: "4.0 EiB",
	} {
		if got := view.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
}
