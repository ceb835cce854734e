package view

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A Progress shows how far something is that counts bytes: a live line on a terminal,
// elsewhere a line now and then. Close it.
type Progress struct {
	w     io.Writer
	style Style
	verb  string
	now   func() time.Time

	mu          sync.Mutex
	began, last time.Time
	live        bool
}

// NewProgress returns the progress of what verb says, such as "verifying".
func NewProgress(w io.Writer, s Style, verb string, now func() time.Time) *Progress {
	return &Progress{w: w, style: s, verb: verb, now: now, began: now(), last: now()}
}

// Report says that so many bytes of total are done; a total of 0 is not known.
func (p *Progress) Report(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	every := silence - tickEvery
	if p.style.Live {
		every = tickEvery
	}
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	line := fmt.Sprintf("%s  %s", p.verb, Bytes(done))
	if total > 0 {
		line += fmt.Sprintf(" of %s, %.0f %%", Bytes(total), 100*float64(done)/float64(total))
	}
	if took := now.Sub(p.began).Seconds(); took > 0 {
		line += fmt.Sprintf(", %s/s", Bytes(int64(float64(done)/took)))
	}
	if p.style.Live {
		fmt.Fprint(p.w, "\r\x1b[K"+clip(line, p.style.Width-1))
		p.live = true
		return
	}
	fmt.Fprintln(p.w, line)
}

// Close takes the live line away.
func (p *Progress) Close() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.live = false
	}
}
