package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// graceOfTimeout is how long an op has to end once its limit is reached.
const graceOfTimeout = 10 * time.Second

// A runFunc is Op.Run, or Resumable.Resume with its folder.
type runFunc func(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error

// call runs the op, and makes an error of a panic, of an op that ends its goroutine, and
// of one that runs longer than it may. ended is closed once the op has ended: of one that
// does not heed its context, that may be long after call has given it up.
func (t *attempt) call(ctx context.Context, in []*io.SectionReader, out []io.Writer) (ended <-chan struct{}, err error) {
	run, err := t.method()
	if err != nil {
		return closed(), err
	}
	if t.action.Timeout <= 0 {
		ended, result := t.spawn(ctx, run, in, out)
		return ended, <-result
	}
	late := &TimeoutError{Step: t.action.Step, Name: t.action.Name, Limit: t.action.Timeout}
	ctx, cancel := context.WithTimeoutCause(ctx, t.action.Timeout, late)
	defer cancel()
	grace := time.NewTimer(t.action.Timeout + graceOfTimeout)
	defer grace.Stop()
	ended, result := t.spawn(ctx, run, in, out)
	select {
	case err = <-result:
	case <-grace.C:
		return ended, &TimeoutError{Step: late.Step, Name: late.Name, Limit: late.Limit, Deaf: true}
	}
	if err != nil && context.Cause(ctx) == error(late) { //nolint:errorlint // this very error
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			late.Err = err
		}
		err = late
	}
	return ended, err
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// spawn runs the op on a goroutine of its own.
func (t *attempt) spawn(ctx context.Context, run runFunc, in []*io.SectionReader, out []io.Writer) (<-chan struct{}, <-chan error) {
	ended, result := make(chan struct{}), make(chan error, 1)
	go func() {
		returned := false
		var err error
		defer func() {
			if !returned {
				err = &PanicError{Value: recover(), Stack: debug.Stack()}
			}
			close(ended) // before the result, so that whoever has that sees it
			result <- err
		}()
		err = run(ctx, in, out, t.report.report)
		returned = true
	}()
	return ended, result
}

// method returns what runs the op.
func (t *attempt) method() (runFunc, error) {
	op, ok := t.action.Op.(Resumable)
	if !ok || !t.resumes() {
		return t.action.Op.Run, nil
	}
	folder, err := t.scratch()
	if err != nil {
		return nil, fmt.Errorf("scratch folder: %w", err)
	}
	return func(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
		return op.Resume(ctx, folder, in, out, report)
	}, nil
}
