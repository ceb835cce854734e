package engine

import (
	"errors"
	"fmt"
	"time"

	"bonsai/cache"
)

// ErrChanged says that a source changed while an action read it.
var ErrChanged = errors.New("changed while it was read")

// An ActionError is the failure of one action.
type ActionError struct {
	Step, Name string
	Key        cache.Key // zero if the action has none yet
	Logged     bool      // what it said until then is kept under Key: Options.Logs
	Err        error     // what the op returned; a *PanicError if it panicked
}

// Error implements error.
func (e *ActionError) Error() string {
	return fmt.Sprintf("%s: %v", Action{Step: e.Step, Name: e.Name}, e.Err)
}

// Unwrap returns what the op returned.
func (e *ActionError) Unwrap() error { return e.Err }

// A SourceError is the failure to read a file of the user's.
type SourceError struct {
	Path string
	Step string // a step that reads it; "" within an ActionError
	Err  error  // wraps fs.ErrNotExist, ErrChanged, …
}

// Error implements error.
func (e *SourceError) Error() string {
	text := fmt.Sprintf("source %s: %v", e.Path, e.Err)
	if e.Step == "" {
		return text
	}
	return e.Step + ": " + text
}

// Unwrap returns why.
func (e *SourceError) Unwrap() error { return e.Err }

// A MemoryError says that an action needs more memory than a build may use.
type MemoryError struct {
	Step, Name string
	Peak       int64 // bytes that the action needs
	Budget     int64 // bytes that the build may use
}

// Error implements error.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs %d bytes of memory, and the budget is %d",
		Action{Step: e.Step, Name: e.Name}, e.Peak, e.Budget)
}

// A TimeoutError says that an action ran longer than its Timeout. It is the cause of its
// op's context then.
type TimeoutError struct {
	Step, Name string
	Limit      time.Duration
	Deaf       bool  // the op did not heed its context: it still ran when it was given up
	Err        error // what the op returned, if it is more than that it was stopped
}

// Error implements error.
func (e *TimeoutError) Error() string {
	text := fmt.Sprintf("stopped at its limit of %v", e.Limit)
	if e.Deaf {
		text = fmt.Sprintf("ran into its limit of %v and did not stop: it was given up", e.Limit)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns what the op returned, if anything.
func (e *TimeoutError) Unwrap() error { return e.Err }

// A PanicError is a panic of an op: bonsai is wrong.
type PanicError struct {
	Value any    // what was passed to panic; nil if the op ended its goroutine
	Stack []byte // of the goroutine that panicked, as text
}

// Error implements error.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "the op ended its goroutine"
	}
	return fmt.Sprintf("panic: %v", e.Value)
}
