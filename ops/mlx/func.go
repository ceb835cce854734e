package mlx

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// A Func is a graph that is compiled once for each list of argument shapes, and run with weights as arguments, so
// that one compiled graph serves every layer. It may be called from several goroutines.
type Func struct {
	name   string
	engine *Engine
	exec   func() (*graph.Exec, error)
}

// Func returns the function that build describes: build gets one node per argument and returns the results. It is
// called again for every new list of shapes, maybe from several goroutines. A mistake in it, such as shapes that do
// not fit, comes back as the error of Call.
func (e *Engine) Func(name string, build func(in []*Node) []*Node) *Func {
	f := &Func{name: name, engine: e}
	f.exec = sync.OnceValues(func() (*graph.Exec, error) {
		b, err := e.open()
		if err != nil {
			return nil, err
		}
		exec, err := graph.NewExec(b, func(in []*graph.Node) []*graph.Node {
			args := make([]*Node, len(in))
			for i, n := range in {
				args[i] = &Node{n}
			}
			return unwrap(build(args))
		})
		if err != nil {
			return nil, err
		}
		return exec.WithName(name).SetMaxCache(-1), nil
	})
	return f
}

// Call runs the function and returns its results, which the caller frees. At most Engine.Parallel calls of an
// engine run at once.
func (f *Func) Call(in ...*Tensor) (out []*Tensor, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", f.name, err)
		}
	}()
	defer recoverTo(&err)
	exec, err := f.exec()
	if err != nil {
		return nil, err
	}
	args := make([]any, len(in))
	for i, t := range in {
		if t == nil || t.t == nil {
			return nil, errors.New("an argument was freed")
		}
		args[i] = t.t
	}
	f.engine.running <- struct{}{}
	defer func() { <-f.engine.running }()
	results, err := exec.Exec(args...)
	if err != nil {
		return nil, cause(err)
	}
	for _, r := range results {
		out = append(out, &Tensor{r, r.Shape().Dimensions})
	}
	return out, nil
}

// cause drops the layers of context that GoMLX wraps a mistake in, which speak of its insides.
func cause(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
