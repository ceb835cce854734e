package view

import (
	"strings"
	"testing"
	"time"

	"bonsai/engine"
)

// A signs is a writer that remembers when it was written to.
type signs struct {
	strings.Builder
	now, last time.Time
	longest   time.Duration // without a write
}

func (s *signs) Write(b []byte) (int, error) {
	s.longest = max(s.longest, s.now.Sub(s.last))
	s.last = s.now
	return s.Builder.Write(b)
}

// However long an action takes, a pipe is never silent for over two seconds, and of an
// action of hours there are not thousands of lines.
func TestLinesAreNeverSilent(t *testing.T) {
	start := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	s := &signs{now: start, last: start}
	l := newLines(s, BuildOptions{Style: Style{Width: Unlimited}, Now: func() time.Time { return s.now }})
	l.event(engine.Planned{Actions: 2})
	l.event(engine.Started{Step: "codes.body", Estimate: 7200})
	for s.now.Before(start.Add(2 * time.Hour)) {
		s.now = s.now.Add(tickEvery)
		l.tick(s.now)
	}
	l.event(engine.Finished{Step: "codes.body"})
	l.close(summary{ran: 1}, nil)
	if s.longest > silence {
		t.Errorf("silent for %v", s.longest)
	}
	lines := strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n")
	if n := len(lines); n > 500 {
		t.Errorf("%d lines in two hours", n)
	}
	for _, line := range lines {
		if dots := strings.Trim(line, "."); dots != "" && strings.HasPrefix(line, ".") || len(line) > 100 {
			t.Errorf("line %q", line)
		}
	}
	if last := lines[len(lines)-2]; !strings.HasPrefix(last, "built    codes.body") {
		t.Errorf("the line before the last is %q", last)
	}
}
