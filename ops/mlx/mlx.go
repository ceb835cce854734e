// Package mlx runs graphs of tensor operations. It is the only package that knows GoMLX and names a backend.
//
// It holds a backend that opens at its first use (Engine), arrays in that backend's memory (Tensor), functions that
// are compiled once per shape with all their weights as arguments (Func), and the operations that are correct and
// quick on every backend (Node and the functions on it). It does not know models or files.
// Start at New, then Engine.Func.
//
// All values are float32. Shapes are outermost axis first.
package mlx

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego" // the pure-Go backend registers itself
	"k8s.io/klog/v2"
)

// goConfig is how the pure-Go backend is opened. Its default mode can deadlock, and lets panics kill the process;
// packgemm is the path that takes our matrix product.
const goConfig = "go:packgemm,ops_sequential"

// ErrBackend is what the error for a backend that cannot be opened wraps.
var ErrBackend = errors.New("backend not available")

// An Engine is a backend, opened at its first use. It may be used from several goroutines.
type Engine struct {
	name    string
	open    func() (backends.Backend, error)
	running chan struct{} // holds a token for each call in flight
}

// New returns an engine for a backend: "go", "xla:cpu", "xla:cuda", or "" or "auto" for the pure-Go one. Whether
// there is such a backend shows at the first use.
func New(spec string) *Engine {
	if spec == "" || spec == "auto" {
		spec = "go"
	}
	calls := 1
	if spec == "go" {
		calls = runtime.GOMAXPROCS(0)
	}
	return &Engine{
		name:    spec,
		open:    sync.OnceValues(func() (backends.Backend, error) { return open(spec) }),
		running: make(chan struct{}, calls),
	}
}

// Name returns the backend's name, as New takes it.
func (e *Engine) Name() string { return e.name }

// Parallel returns how many calls run at once; more wait. The pure-Go backend works through a graph one operation
// after another on one core, matrix products aside, so that several calls on parts of a batch fill the machine.
func (e *Engine) Parallel() int { return cap(e.running) }

// open opens the backend that spec names.
func open(spec string) (b backends.Backend, err error) {
	defer recoverTo(&err)
	silence()
	install()
	switch {
	case spec == "go":
		b, err = backends.NewWithConfig(goConfig)
	case spec == "xla" || strings.HasPrefix(spec, "xla:"):
		b, err = openXLA(spec)
	default:
		err = fmt.Errorf("%q is none of go, xla:cpu, xla:cuda", spec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBackend, err)
	}
	return b, nil
}

// silence keeps GoMLX's log, which goes to standard error, from the terminal. What matters comes back as an error.
func silence() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// recoverTo turns a panic, which is how GoMLX reports mistakes in a graph, into an error.
func recoverTo(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = p
	default:
		*err = fmt.Errorf("%v", p)
	}
}
