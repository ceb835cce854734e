// Package engine brings artifacts up to date: it decides which actions must run,
// runs them, and says why.
//
// It knows actions, artifacts and their order. It does not know what an op computes,
// what a recipe says, or how anything is drawn: it reports events as values.
//
// Start with Graph, then Build and MakePlan. Package cache holds what is built; the
// decisions behind this package are in the folder adr.
package engine

import (
	"context"
	"encoding"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"time"

	"github.com/dominikbraun/graph"
)

// An Op is one computation with all its settings.
//
// AppendText appends the op's name, version and settings in a canonical form, as
// lines. The engine hashes that text into the action's key and prints it to explain a
// rebuild: a setting that is not in it neither invalidates a result nor can be
// explained. No line may begin with "in ", which is how inputs are written.
type Op interface {
	encoding.TextAppender

	// Run reads the inputs and writes the outputs, in the order the action lists
	// them. The same text and the same inputs must give the same bytes. Nothing that
	// is written is visible to anyone before Run returns nil.
	//
	// An input that is a file has it as the reader of in[i].Outer().
	//
	// A long Run returns ctx.Err() soon after ctx is done, and calls report now and
	// then, from any goroutine: done is in [0, 1], and the note of the last report
	// with done == 1 is kept with the result.
	Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(done float64, note string)) error
}

// A Resumable op can go on where an earlier run was interrupted, failed or was killed.
//
// Resume is called instead of Run when there are Options.Scratch. It keeps what it needs
// to go on in the folder scratch, which belongs to the action's key and is empty at
// first, and which stays until the action has succeeded. Files in it may be cut short, if
// the machine lost its power: Resume checks what it finds. It gives the bytes that Run
// gives, wherever it began.
type Resumable interface {
	Op
	Resume(ctx context.Context, scratch string, in []*io.SectionReader, out []io.Writer, report func(done float64, note string)) error
}

// An Output declares one output of an action.
type Output struct {
	Name string // unique within the action; may be empty if it is the only one

	// Transient says that the output is kept only while something needs it. Actions
	// that read it are keyed by the key of the action that makes it, not by its bytes.
	Transient bool

	Size int64 // estimated bytes
}

// An Action is one planned run of an op on given inputs.
type Action struct {
	Step    string      // address of the step it belongs to, such as codes.body
	Name    string      // which of the step's actions, such as "layer 3 qkv"; may be empty
	Op      Op          // what it computes
	In      []*Artifact // what it reads, in the order of Op.Run
	Outputs []Output    // what it writes, in the order of Op.Run; at least one

	// The rest does not change the result and is not in the key.

	Pool string  // pool of Options.Pools that it runs in; "" for none
	Peak int64   // bytes of memory that it needs at most; 0 if little
	Cost float64 // estimated seconds

	Timeout time.Duration // after which a run of the op is given up; 0: none
	Retries int           // further tries after a temporary failure; at least 0
}

// String returns the step and the name.
func (a Action) String() string {
	if a.Name == "" {
		return a.Step
	}
	return a.Step + " " + a.Name
}

// An Artifact is an output of an action, or a source: a file of the user's. It exists
// before the action runs.
type Artifact struct {
	graph  *Graph
	id     int
	path   string // of a source; else ""
	maker  int    // index of the action that makes it; -1 for a source
	output int    // which of the action's outputs
}

// Source returns the path of a source; ok is false for any other artifact.
func (a *Artifact) Source() (path string, ok bool) { return a.path, a.maker < 0 }

// Action returns the action that makes the artifact; ok is false for a source.
func (a *Artifact) Action() (action Action, ok bool) {
	if a.maker < 0 {
		return Action{}, false
	}
	return a.graph.actions[a.maker], true
}

// Output returns what the action declares of the artifact; for a source it is zero.
func (a *Artifact) Output() Output {
	if a.maker < 0 {
		return Output{}
	}
	return a.graph.actions[a.maker].Outputs[a.output]
}

// String returns the path of a source, and otherwise the step, the action's name,
// and, if the action has several outputs, the output's name.
func (a *Artifact) String() string {
	if a.maker < 0 {
		return a.path
	}
	action := &a.graph.actions[a.maker]
	if len(action.Outputs) == 1 {
		return action.String()
	}
	return action.String() + " " + a.Output().Name
}

// A Graph is a set of actions, each added after those it reads from, so it has no
// cycles by construction. The zero Graph is empty. It may be read by many goroutines
// once nothing is added any more.
type Graph struct {
	actions   []Action
	artifacts []*Artifact
	outputs   []int // id of the first output of each action; the others follow it
	sources   map[string]*Artifact
}

// Source returns the artifact that is the file at path. There is one for each cleaned
// path. The file need not exist before it is built from.
func (g *Graph) Source(path string) *Artifact {
	path = filepath.Clean(path)
	if a, ok := g.sources[path]; ok {
		return a
	}
	if g.sources == nil {
		g.sources = make(map[string]*Artifact)
	}
	a := g.artifact(path, -1, 0)
	g.sources[path] = a
	return a
}

// Add adds an action and returns its outputs in order.
//
// It panics if the action has no op or no output, or reads an artifact of another
// graph: that is a mistake of the program, never of its user.
func (g *Graph) Add(a Action) []*Artifact {
	if a.Op == nil || len(a.Outputs) == 0 {
		panic(fmt.Sprintf("engine: action %s has no op or no output", a))
	}
	for i, in := range a.In {
		if in == nil || in.graph != g {
			panic(fmt.Sprintf("engine: input %d of action %s is not of this graph", i, a))
		}
	}
	maker := len(g.actions)
	g.actions = append(g.actions, a)
	g.outputs = append(g.outputs, len(g.artifacts))
	for i := range a.Outputs {
		g.artifact("", maker, i)
	}
	return g.artifacts[len(g.artifacts)-len(a.Outputs):]
}

func (g *Graph) artifact(path string, maker, output int) *Artifact {
	a := &Artifact{graph: g, id: len(g.artifacts), path: path, maker: maker, output: output}
	g.artifacts = append(g.artifacts, a)
	return a
}

// Len returns the number of actions.
func (g *Graph) Len() int { return len(g.actions) }

// Amend lets change look at each action that was added since Len was from, and change
// what is not in its key: Pool, Peak, Cost, Timeout and Retries. Other changes are not
// taken over.
func (g *Graph) Amend(from int, change func(*Action)) {
	for i := from; i < len(g.actions); i++ {
		a, is := g.actions[i], &g.actions[i]
		change(&a)
		is.Pool, is.Peak, is.Cost, is.Timeout, is.Retries = a.Pool, a.Peak, a.Cost, a.Timeout, a.Retries
	}
}

// made returns the ids of an action's outputs: from first up to, not including, end.
func (g *Graph) made(action int) (first, end int) {
	first = g.outputs[action]
	return first, first + len(g.actions[action].Outputs)
}

// Actions yields the actions in the order they were added: each after all those it
// reads from.
func (g *Graph) Actions() iter.Seq[Action] {
	return func(yield func(Action) bool) {
		for _, a := range g.actions {
			if !yield(a) {
				return
			}
		}
	}
}

// Digraph returns the graph for drawing and for graph algorithms: a vertex for each
// artifact, with its name as the attribute "label", and an edge from each input of an
// action to each of its outputs. Vertices are numbered from 1: algorithms of the library
// take 0 for none.
func (g *Graph) Digraph() graph.Graph[int, *Artifact] {
	d := graph.New(func(a *Artifact) int { return a.id + 1 }, graph.Directed())
	for _, a := range g.artifacts {
		// A vertex or an edge that is there already is all that can go wrong.
		_ = d.AddVertex(a, graph.VertexAttribute("label", a.String()))
	}
	for id, action := range g.actions {
		for first, end := g.made(id); first < end; first++ {
			for _, in := range action.In {
				_ = d.AddEdge(in.id+1, first+1)
			}
		}
	}
	return d
}
