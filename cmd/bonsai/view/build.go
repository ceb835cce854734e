package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// BuildOptions say how a build is shown.
type BuildOptions struct {
	Style
	JSON    bool                            // one event a line
	Explain bool                            // reasons and manifests too
	Log     func(cache.Key) ([]byte, error) // what an action said that failed; nil: nothing is shown of it
	Now     func() time.Time

	Screen *os.File     // of a live view: the terminal, for its size; may be nil
	Held   func() int64 // bytes of memory in use; nil if nobody knows
	Budget int64        // bytes of memory that may be used; 0 if unknown
}

// A Build shows one build. It draws from a goroutine of its own too, so that something
// is always seen to go on. Close it.
type Build struct {
	mu   sync.Mutex
	draw drawer
	sum  summary
	now  func() time.Time

	quit, done chan struct{}
}

// A drawer writes a build in one form. Its methods are not called at once.
type drawer interface {
	event(e engine.Event)
	remark(text string)
	placed(path string, o cache.Output, how string)
	tick(now time.Time) // now and then
	close(s summary, err error)
}

// A summary counts what a build did.
type summary struct {
	ran, hits, failed, stopped int
	began                      time.Time
	took                       time.Duration
}

// tickEvery is how often a live line is drawn anew.
const tickEvery = 100 * time.Millisecond

// NewBuild returns the view of a build that begins now.
func NewBuild(w io.Writer, opt BuildOptions) *Build {
	v := &Build{now: opt.Now, quit: make(chan struct{}), done: make(chan struct{})}
	v.sum.began = opt.Now()
	switch {
	case opt.JSON:
		v.draw = jsonDrawer{w}
	case opt.Live:
		v.draw = newLive(w, opt)
	default:
		v.draw = newLines(w, opt)
	}
	go v.ticks()
	return v
}

func (v *Build) ticks() {
	defer close(v.done)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-v.quit:
			return
		case <-ticker.C:
			v.mu.Lock()
			v.draw.tick(v.now())
			v.mu.Unlock()
		}
	}
}

// Event shows an event.
func (v *Build) Event(e engine.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := e.(type) {
	case engine.Finished:
		if e.Hit {
			v.sum.hits++
		} else {
			v.sum.ran++
		}
	case engine.Failed:
		if errors.Is(e.Err, context.Canceled) {
			v.sum.stopped++
		} else {
			v.sum.failed++
		}
	}
	v.draw.event(e)
}

// Current shows that so many actions are up to date, none of which was looked at.
func (v *Build) Current(actions int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sum.hits += actions
}

// Expect shows from now on how much is left of what a plan says.
func (v *Build) Expect(p *engine.Plan) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d, ok := v.draw.(interface{ expect(*engine.Plan) }); ok {
		d.expect(p)
	}
}

// Remark shows a line about the build as a whole.
func (v *Build) Remark(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw.remark(text)
}

// Placed shows that a finished file is at path.
func (v *Build) Placed(path string, o cache.Output, how string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw.placed(path, o, how)
}

// Close shows the summary of a build that ended with err, and ends the view.
func (v *Build) Close(err error) {
	close(v.quit)
	<-v.done
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sum.took = v.now().Sub(v.sum.began)
	v.draw.close(v.sum, err)
}

// A jsonDrawer writes one event a line. Writers remember their errors.
type jsonDrawer struct{ w io.Writer }

func (d jsonDrawer) write(h headed) {
	_ = writeJSON(d.w, h)
}

func (d jsonDrawer) event(e engine.Event) { d.write(eventJSON(e)) }
func (d jsonDrawer) tick(time.Time)       {}

func (d jsonDrawer) remark(text string) {
	d.write(headed{"remark", struct {
		Text string `json:"text"`
	}{text}})
}

func (d jsonDrawer) placed(path string, o cache.Output, how string) {
	d.write(headed{"placed", struct {
		Path string `json:"path"`
		How  string `json:"how"`
		cache.Output
	}{path, how, o}})
}

func (d jsonDrawer) close(s summary, err error) {
	message := ""
	if err != nil {
		message = err.Error()
	}
	d.write(headed{"summary", struct {
		Ran      int     `json:"ran"`
		Hits     int     `json:"hits"`
		Failed   int     `json:"failed"`
		Stopped  int     `json:"stopped,omitempty"`
		Duration float64 `json:"duration_s"`
		Error    string  `json:"error,omitempty"`
	}{s.ran, s.hits, s.failed, s.stopped, s.took.Seconds(), message}})
}

// String returns the summary as a sentence.
func (s summary) String() string {
	verb := "were"
	if s.hits == 1 {
		verb = "was"
	}
	failed := ""
	if s.failed > 0 {
		failed = fmt.Sprintf("%d failed, ", s.failed)
	}
	if s.stopped > 0 {
		failed += fmt.Sprintf("%d stopped, ", s.stopped)
	}
	return fmt.Sprintf("%s ran, %d %s up to date, %s%s", count(s.ran, "action"), s.hits, verb, failed, duration(s.took))
}
