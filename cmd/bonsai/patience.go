package main

import (
	"time"

	"bonsai/cmd/bonsai/view"
)

// Times of signs of life while something goes on that has no view of its own.
const (
	firstSign = time.Second
	nextSigns = 2 * time.Second
)

// during says on standard error that something goes on, after a second and then every two,
// until stop is called.
func (p *program) during(what string) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	began := p.now()
	go func() {
		defer close(ended)
		timer := time.NewTimer(firstSign)
		defer timer.Stop()
		for {
			select {
			case <-quit:
				return
			case <-timer.C:
				view.StillAt(p.stderr, what, p.now().Sub(began))
				timer.Reset(nextSigns)
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}
