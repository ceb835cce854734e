package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// How much is kept of what an action says: its beginning, and its end. A line that is
// longer than longestLine is cut.
const (
	headRoom    = 16 << 10
	tailRoom    = 32 << 10
	longestLine = 1 << 10
)

// A transcript is what an action says in a build, over all its tries, as lines with
// times. It is bounded: what does not fit goes from the middle.
type transcript struct {
	now func() time.Time

	mu      sync.Mutex
	head    []byte
	tail    [][]byte
	inTail  int // bytes
	dropped int // lines between head and tail
	note    string
}

// say adds a line. Line breaks in text become indented lines.
func (s *transcript) say(format string, args ...any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(fmt.Sprintf(format, args...))
}

// report adds what the op reports, if it is not what it said last.
func (s *transcript) report(done float64, note string) {
	if s == nil || note == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if note == s.note {
		return
	}
	s.note = note
	s.add(fmt.Sprintf("%3.0f%% %s", 100*done, note))
}

func (s *transcript) add(text string) {
	for i, line := range strings.Split(strings.TrimRight(cleanNote(text), "\n"), "\n") {
		line = printableLine(line)
		if i > 0 {
			line = "    " + line
		} else if now := s.now(); !now.IsZero() {
			line = now.UTC().Format("2006-01-02T15:04:05.000Z ") + line
		}
		s.keep([]byte(line + "\n"))
	}
}

// keep adds a line to the head while there is room, and then to the tail.
func (s *transcript) keep(line []byte) {
	if len(s.tail) == 0 && s.dropped == 0 && len(s.head)+len(line) <= headRoom {
		s.head = append(s.head, line...)
		return
	}
	s.tail = append(s.tail, line)
	s.inTail += len(line)
	for s.inTail > tailRoom {
		s.inTail -= len(s.tail[0])
		s.tail = s.tail[1:]
		s.dropped++
	}
}

// text returns all that is kept.
func (s *transcript) text() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := bytes.Clone(s.head)
	if s.dropped > 0 {
		b = fmt.Appendf(b, "… %d lines are left out\n", s.dropped)
	}
	return append(b, bytes.Join(s.tail, nil)...)
}

// printableLine cuts a line, and makes control characters visible.
func printableLine(line string) string {
	if len(line) > longestLine {
		line = strings.ToValidUTF8(line[:longestLine], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || r == 0x7f:
			return '\uFFFD'
		default:
			return r
		}
	}, line)
}

// begins says what is about to run, and why.
func (s *transcript) begins(t *attempt, e Started) {
	if s == nil {
		return
	}
	s.say("start %s, key %s, try %d of %d", t.action, t.key, e.Try, t.action.Retries+1)
	for _, r := range e.Reasons {
		s.say("because %s", r)
	}
	if e.Estimate > 0 {
		s.say("expected to take %v", seconds(e.Estimate))
	}
}

// ends says what came of a run.
func (s *transcript) ends(t *attempt, took time.Duration) {
	if s == nil {
		return
	}
	if t.err == nil {
		var n int64
		for _, out := range t.result.Outputs {
			n += out.Size
		}
		s.say("finished after %v: %d bytes", took.Round(time.Millisecond), n)
		return
	}
	s.say("failed after %v: %v", took.Round(time.Millisecond), t.err)
	if e, ok := errors.AsType[*PanicError](t.err); ok {
		s.say("stack of the panic:\n%s", e.Stack)
	}
}

// seconds returns a number of seconds as a duration, to the millisecond.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

// saveLog keeps what the action said, under its key.
func (t *attempt) saveLog() {
	if t.log == nil {
		return
	}
	if err := t.opt.Logs.SaveLog(t.key, t.log.text()); err != nil {
		t.warning = errors.Join(t.warning, fmt.Errorf("keep the log: %w", err))
		return
	}
	t.logged = true
}
