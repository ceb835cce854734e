package recipes

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty/function"

	"bonsai/engine"
	"bonsai/rules"
)

// Options is what a recipe is read with.
type Options struct {
	Catalogue rules.Catalogue // the rule of each block type

	// Values of variables, the weakest first: the environment, files, words. Every
	// one beats the default in the recipe, and a later file beats an earlier one.
	LookupEnv func(name string) (string, bool) // asked for BONSAI_VAR_x and by env(); nil: nothing is set
	VarFiles  []File                           // files of x = value lines
	Vars      map[string]string                // x to the text of var.x=text

	// Saw is told what is looked at outside the files given to Load, as it happens and
	// perhaps more than once: if none of that changes, Load gives the same. May be nil.
	Saw func(rules.Read)

	Dir     string // folder of the recipe, which relative paths start from
	Version string // of bonsai, such as 0.1.0, for requires; anything else than a version passes

	resolved *Resolved // gets what expressions come to, unless it is nil
}

// A Recipe is what a folder of recipe files says.
type Recipe struct {
	Description string
	Numerics    string // "shared", or "strict": backend and version are part of every key
	Dir         string // as in Options

	Graph   *engine.Graph
	Steps   []*Step            // every step after those it refers to
	Targets map[string]*Target // the declared ones, and one for every step by its address

	Files map[string]*hcl.File // by name, for the source lines of diagnostics

	checks map[*engine.Artifact][]*engine.Artifact // what postconditions of its step make, by an artifact
}

// A Step is one block, or one instance of a block with for_each.
type Step struct {
	Address string // such as codes.body or codes.body["a"]
	Value   any    // what the rule made of it; references to the step give it to other rules
	Range   hcl.Range
}

// Artifacts returns what the step makes.
func (s *Step) Artifacts() []*engine.Artifact { return s.made() }

func (s *Step) made() []*engine.Artifact {
	if v, ok := s.Value.(interface{ Artifacts() []*engine.Artifact }); ok {
		return v.Artifacts()
	}
	return nil
}

// FileName returns the name of the step's file in a target's folder, or "" if it
// does not have one.
func (s *Step) FileName() string {
	if v, ok := s.Value.(interface{ FileName() string }); ok {
		return v.FileName()
	}
	return ""
}

// A Target is a name that can be asked for.
type Target struct {
	Name        string
	Description string
	Out         string // where finished artifacts are placed, as written; "" for nowhere
	Steps       []*Step
	Declared    bool // by a target block, not the name of a step
	Range       hcl.Range

	recipe *Recipe
}

// Artifacts returns what the target builds, each artifact once: what its steps make, and
// what checks the postconditions of all steps that it needs.
func (t *Target) Artifacts() []*engine.Artifact {
	var all []*engine.Artifact
	seen := map[*engine.Artifact]bool{}
	for _, s := range t.Steps {
		for _, a := range s.Artifacts() {
			if !seen[a] {
				seen[a] = true
				all = append(all, a)
			}
		}
	}
	return append(all, t.recipe.checksOf(all)...)
}

// checksOf returns what checks the steps that artifacts are made by and from.
func (r *Recipe) checksOf(want []*engine.Artifact) (checks []*engine.Artifact) {
	if len(r.checks) == 0 {
		return nil // as nearly always: nothing is to be walked
	}
	seen := map[*engine.Artifact]bool{}
	for _, a := range want {
		seen[a] = true
	}
	for next := slices.Clone(want); len(next) > 0; {
		a := next[0]
		next = next[1:]
		action, _ := a.Action()
		for _, in := range action.In {
			if !seen[in] {
				seen[in] = true
				next = append(next, in)
			}
		}
		for _, c := range r.checks[a] {
			if !seen[c] {
				seen[c] = true
				checks = append(checks, c)
			}
		}
	}
	return checks
}

// A TargetError is a request for a target that the recipe does not have.
type TargetError struct {
	Name    string
	Nearest string // the most similar target, or "" if none is similar
}

func (e *TargetError) Error() string {
	msg := "no target " + quote(e.Name)
	if e.Nearest != "" {
		msg += "; did you mean " + quote(e.Nearest) + "?"
	}
	return msg
}

// Target returns the target with this name or, if there is none, a [*TargetError].
func (r *Recipe) Target(name string) (*Target, error) {
	if t, ok := r.Targets[name]; ok {
		return t, nil
	}
	return nil, &TargetError{Name: name, Nearest: nearest(name, sortedKeys(r.Targets))}
}

// Load reads the files of one recipe. Their order, and that of the blocks in them, does
// not matter. It reports every mistake once, in the order of the source. The recipe
// it returns is never nil; if there is an error, only its Files are of use.
func Load(files []File, opt Options) (*Recipe, hcl.Diagnostics) {
	return load(files, opt).finish()
}

// load reads the files of one recipe as far as its mistakes allow.
func load(files []File, opt Options) *loader {
	l := newLoader(opt)
	l.root = l.whole(files)
	blocks, ok := l.parse(files, l.root)
	if !ok {
		return l // what follows would complain about what did not parse
	}
	l.define(blocks)
	l.declare(blocks)
	l.assignVariables()
	l.validateVariables()
	for _, d := range l.all {
		l.link(d)
	}
	for _, d := range l.order() {
		l.evaluate(d)
	}
	return l
}

// A loader reads one recipe.
type loader struct {
	opt       Options
	recipe    *Recipe
	functions map[string]map[string]function.Function // by the folder that files are read from
	diags     hcl.Diagnostics
	reported  map[string]bool // what diags holds, see add

	root      *part            // that Load was asked for
	all       []*decl          // everything declared, in the order of the source
	named     map[string]*decl // by address; the first of each name
	variables []*variable      // in the order of the source
	roots     map[string]bool  // first words of references, misspelled ones included
	nameless  map[string]bool  // roots under which a block was refused whose name is not known; "": any
	steps     map[any]*Step    // by the pointer in a step's reference

	included     map[string]hcl.Range // where each part that is included is, by its id
	settings     map[string]*setting  // what includes give to variables
	numericsSaid bool

	misspelled    map[string]bool // variables that a value was probably meant for
	valuesLost    bool            // a file of values could not be read
	variablesLost bool            // an included recipe could not be read
}

func newLoader(opt Options) *loader {
	if opt.LookupEnv == nil {
		opt.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if opt.Saw == nil {
		opt.Saw = func(rules.Read) {}
	}
	opt.LookupEnv = reported(opt.LookupEnv, opt.Saw)
	l := &loader{
		opt:        opt,
		functions:  map[string]map[string]function.Function{},
		included:   map[string]hcl.Range{},
		settings:   map[string]*setting{},
		reported:   map[string]bool{},
		nameless:   map[string]bool{},
		named:      map[string]*decl{},
		roots:      map[string]bool{"var": true, "local": true},
		steps:      map[any]*Step{},
		misspelled: map[string]bool{},
		recipe: &Recipe{
			Numerics: "shared",
			Dir:      opt.Dir,
			Graph:    new(engine.Graph),
			Targets:  map[string]*Target{},
			Files:    map[string]*hcl.File{},
			checks:   map[*engine.Artifact][]*engine.Artifact{},
		},
	}
	for name := range opt.Catalogue {
		l.roots[name] = true
	}
	return l
}

// whole returns the part that Load was asked for.
func (l *loader) whole(files []File) *part {
	name := l.opt.Dir
	if len(files) == 1 {
		name = files[0].Name
	}
	return &part{id: identityOf(files), name: name, dir: l.opt.Dir, functions: l.functionsIn(l.opt.Dir)}
}

// functionsIn returns what expressions of a recipe in a folder can call.
func (l *loader) functionsIn(dir string) map[string]function.Function {
	if l.functions[dir] == nil {
		l.functions[dir] = functions(dir, l.opt.LookupEnv, l.opt.Saw)
	}
	return l.functions[dir]
}

// reported returns lookup, which tells saw what it was asked and what it answered.
func reported(lookup func(string) (string, bool), saw func(rules.Read)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := lookup(name)
		saw(rules.Read{Kind: rules.EnvRead, Name: name, Value: v, Set: ok})
		return v, ok
	}
}
