// Command bonsai makes ternary models by recipe.
//
// It holds the command line: arguments, signals, exit status. What a command computes
// is computed by the packages below; what it prints is drawn by package view. Start at
// run; a command is a file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"bonsai/cmd/bonsai/view"
	"bonsai/rules"
)

// Exit statuses.
const (
	exitBuilt       = 0
	exitFailed      = 1
	exitMisused     = 2 // also of plan detailed-exitcode=true: there is work to do
	exitInterrupted = 130
)

// A command is one of the words that can follow bonsai.
type command struct {
	name    string
	summary string
	keys    []string // accepted; one that ends in a dot accepts any name after it
	bare    int      // bare words it takes at most, as help takes a topic
	run     func(ctx context.Context, p *program, w *words) (status int, err error)
}

// commands returns all of them, in the order of help.
func commands() []command {
	return []command{
		{"build", "bring a target up to date", keysOf(buildKeys, sizeKeys, selectKeys, recipeKeys, cacheKeys, viewKeys), 0, runBuild},
		{"plan", "say what a build would run, why, for how long and how big", keysOf(planKeys, selectKeys, recipeKeys, cacheKeys, viewKeys), 0, runPlan},
		{"why", "say why a step ran, or will", keysOf(whyKeys, recipeKeys, cacheKeys, viewKeys), mostBare, runWhy},
		{"diff", "compare two runs, two recipes or two artifacts", keysOf(diffKeys, viewKeys), 2, runDiff},
		{"log", "show what the actions of a step said when they ran", keysOf(logKeys, viewKeys), mostBare, runLog},
		{"graph", "draw what a target is made of", keysOf(graphKeys, selectKeys, recipeKeys, cacheKeys, viewKeys), 0, runGraph},
		{"validate", "check a recipe without running anything", keysOf(recipeKeys, viewKeys), 0, runValidate},
		{"init", "write a recipe for a checkpoint", keysOf(initKeys, viewKeys), 0, runInit},
		{"fmt", "bring recipes into the one layout", keysOf(formatKeys, viewKeys), 1000, runFormat},
		{"lint", "find what is allowed in a recipe and probably not meant", keysOf(lintKeys, recipeKeys, viewKeys), 0, runLint},
		{"print", "show a recipe with a value in the place of every expression", keysOf(recipeKeys, viewKeys), 0, runPrint},
		{"console", "evaluate expressions as if they stood in a recipe", keysOf(consoleKeys, recipeKeys, viewKeys), 0, runConsole},
		{"test", "test a recipe by what it would build", keysOf([]string{"recipe"}, viewKeys), 0, runTest},
		{"lsp", "help an editor: mistakes, completion, definitions, layout", []string{"color"}, 0, runLSP},
		{"schema", "say what a recipe may hold: block types, attributes, functions", keysOf(schemaKeys, viewKeys), 1, runSchema},
		{"inspect", "look into a checkpoint, a safetensors or a GGUF file", keysOf(inspectKeys, viewKeys), 0, runInspect},
		{"eval", "measure a model beside the one it was made of", keysOf(evalKeys, sizeKeys, cacheKeys, viewKeys), 0, runEval},
		{"runs", "list the builds that were, or show one", keysOf(runsKeys, viewKeys), 1, runRuns},
		{"cache", "say what the cache holds, and what it keeps: gc, pin, ls, du …", cacheVerbKeys(), 0, runCache},
		{"version", "print the version and what this build computes with", []string{"json"}, 0, runVersion},
		{"help", "explain a command or a topic", nil, 1, runHelp},
	}
}

// A program is what a command has of the world.
type program struct {
	catalogue func(rules.Settings) rules.Catalogue // what block types there are
	lookupEnv func(string) (string, bool)
	stdin     io.Reader
	stdout    *watched
	stderr    io.Writer
	now       func() time.Time
	room      func(path string) (free, total int64) // of the disk, in bytes; 0 if that is not known

	notice atomic.Pointer[func(string)] // shows a line above what is drawn over; nil if nothing is
}

func (p *program) env(name string) string {
	v, _ := p.lookupEnv(name)
	return v
}

func main() { serve(rules.Standard) }

// serve is main with the block types of catalogue.
func serve(catalogue func(rules.Settings) rules.Catalogue) {
	signal.Ignore(syscall.SIGPIPE) // a closed pipe is an error of a write like any other
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{
		catalogue: catalogue, lookupEnv: os.LookupEnv, stdin: os.Stdin, stderr: os.Stderr,
		now: time.Now, room: diskRoom,
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go p.interrupts(signals, cancel)
	os.Exit(p.run(ctx, os.Args[1:], os.Stdout))
}

// interrupts cancels at the first signal, so that what is finished is kept and nothing
// is left behind, and ends the process at the second.
func (p *program) interrupts(signals <-chan os.Signal, cancel func()) {
	<-signals
	const notice = "finishing; press Ctrl-C again to stop now (what is finished is kept either way)"
	if say := p.notice.Load(); say != nil {
		(*say)(notice)
	} else {
		fmt.Fprintln(os.Stderr, "\n"+notice)
	}
	cancel()
	<-signals
	if p.notice.Load() != nil {
		fmt.Fprintln(os.Stderr) // below what was drawn over
	}
	os.Exit(exitInterrupted)
}

// run is bonsai with these arguments. It returns the exit status.
func (p *program) run(ctx context.Context, args []string, stdout io.Writer) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &watched{w: stdout, failed: cancel}
	p.stdout = out
	style := p.style("auto", p.stderr)
	status, err := p.dispatch(ctx, args, &style)
	if out.err != nil {
		err = fmt.Errorf("write to standard output: %w", out.err)
	}
	if err == nil {
		return status
	}
	view.Error(p.stderr, err, style)
	status = statusOf(ctx, err, out.err != nil)
	if status == exitMisused && asksForWork(args) {
		return exitFailed
	}
	return status
}

// asksForWork reports whether args ask plan for a status that says whether there is work
// to do, so that no mistake may have the status that says so.
func asksForWork(args []string) bool {
	return len(args) > 0 && args[0] == "plan" && slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "detailed-exitcode") && arg != "detailed-exitcode=false"
	})
}

// dispatch runs the command that args name. It sets the style that errors are shown in.
func (p *program) dispatch(ctx context.Context, args []string, style *view.Style) (int, error) {
	if len(args) == 0 {
		args = []string{"help"}
	}
	c, err := commandNamed(args[0])
	if err != nil {
		return 0, err
	}
	c, args, err = verbOf(c, args[1:])
	if err != nil {
		return 0, err
	}
	w, err := parseWords(c, args)
	if err != nil {
		return 0, err
	}
	if w.help {
		return exitBuilt, p.page(strings.Fields(c.name)[0])
	}
	*style = p.style(w.choice("color", "auto", "never", "always"), p.stderr)
	if w.err != nil {
		return 0, w.err
	}
	return c.run(ctx, p, w)
}

// statusOf returns the exit status of a command that failed.
func statusOf(ctx context.Context, err error, broken bool) int {
	_, misused := errors.AsType[*usageError](err)
	switch {
	case broken:
		return exitFailed
	case misused, isDiffError(err):
		return exitMisused
	case ctx.Err() != nil:
		return exitInterrupted
	default:
		return exitFailed
	}
}

// A watched writer remembers that a write failed, and calls failed then.
type watched struct {
	w      io.Writer
	failed func()
	err    error
}

// Write implements io.Writer.
func (o *watched) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = err
		o.failed()
	}
	return n, err
}

// style returns how to draw on w, given the value of color=.
func (p *program) style(color string, w io.Writer) view.Style {
	s := view.Style{Width: view.Unlimited}
	if f, ok := w.(*os.File); ok {
		s.Width, s.Terminal = terminal(f)
	}
	noColor := p.env("NO_COLOR") != ""
	dumb := p.env("TERM") == "dumb"
	s.Color = color == "always" || color == "auto" && s.Terminal && !noColor && !dumb
	s.Live = s.Terminal && !dumb && p.env("CI") == ""
	return s
}
