package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/ops/mlx"
	"bonsai/recipes"
	"bonsai/rules"
)

// recipeKeys are the keys of commands that read a recipe.
var recipeKeys = []string{"recipe", "var.", "vars"}

// recipeArgs say which recipe is read and with which variables.
type recipeArgs struct {
	path     string            // a file, a folder, or the name of a built-in recipe
	vars     map[string]string // var.x=text
	varFiles []string
	saw      func(rules.Read) // told what is read, before it is; may be nil
}

func readRecipeArgs(w *words) recipeArgs {
	return recipeArgs{path: w.text("recipe", "."), vars: w.prefixed("var."), varFiles: w.list("vars")}
}

// cacheKeys are the keys of commands that build.
var cacheKeys = []string{"backend", "cache", "memory", "workers"}

// sizeKeys are the keys of commands that store.
var sizeKeys = []string{"cache-max"}

// cacheArgs say where results are kept and what computes them.
type cacheArgs struct {
	dir     string // "" for the default
	backend string
	memory  int64 // bytes; 0 for what is available
	workers int   // 0 for one a CPU
}

func readCacheArgs(w *words) cacheArgs {
	return cacheArgs{
		dir:     w.text("cache", ""),
		backend: w.choice("backend", "auto", "go", "xla:cpu", "xla:cuda"),
		memory:  w.bytes("memory"),
		workers: w.count("workers", 0, 0),
	}
}

// A loaded is a recipe with what it was loaded with.
type loaded struct {
	*recipes.Recipe
	id      string // what the cache's history knows the recipe by
	backend string // what computes
}

// load reads a recipe. An error about the recipe is a *view.MistakesError; warnings are in
// mistakes if there is no error.
func (p *program) load(a recipeArgs, backend string) (r *loaded, mistakes *view.MistakesError, err error) {
	defer p.ease()(0)
	files, dir, id, err := readRecipe(a.path)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		a.sees(f.Name)
	}
	return p.loadFiles(files, dir, id, a, backend)
}

// sees reports that a file is read.
func (a *recipeArgs) sees(path string) {
	if a.saw != nil {
		a.saw(rules.Read{Kind: rules.FileRead, Name: path})
	}
}

// loadFiles is load of files that are in memory.
func (p *program) loadFiles(files []recipes.File, dir, id string, a recipeArgs, backend string) (*loaded, *view.MistakesError, error) {
	tensors := mlx.New(backend)
	opt, err := p.recipeOptions(a, dir, tensors)
	if err != nil {
		return nil, nil, err
	}
	stop := p.during("reading the recipe")
	r, diags := recipes.Load(files, opt)
	stop()
	mistakes := &view.MistakesError{Diagnostics: diags, Files: r.Files}
	if diags.HasErrors() {
		return nil, nil, mistakes
	}
	return &loaded{Recipe: r, id: id, backend: tensors.Name()}, mistakes, nil
}

// recipeOptions returns what a recipe in the folder dir is read with.
func (p *program) recipeOptions(a recipeArgs, dir string, tensors *mlx.Engine) (recipes.Options, error) {
	opt := recipes.Options{
		Catalogue: p.catalogue(rules.Settings{Engine: tensors, Rate: rate()}),
		LookupEnv: p.lookupEnv, Vars: a.vars, Dir: dir, Version: version,
		Saw: a.saw,
	}
	for _, name := range a.varFiles {
		a.sees(name)
		text, err := recipes.ReadText(name)
		if err != nil {
			return opt, fmt.Errorf("read variables: %w", err)
		}
		opt.VarFiles = append(opt.VarFiles, recipes.File{Name: name, Bytes: text})
	}
	return opt, nil
}

// rate returns about how many floating-point operations a second this machine does, to
// estimate times until there are measured ones. Twenty billion a core is what the fast
// kernels reach on current servers, a tenth of that the plain ones.
func rate() float64 {
	perCore := 2e9
	if simd || runtime.GOARCH != "amd64" {
		perCore = 20e9
	}
	return perCore * float64(runtime.GOMAXPROCS(0))
}

// readRecipe reads the files of a recipe: what is on disk comes before what is built in.
func readRecipe(path string) (files []recipes.File, dir, id string, err error) {
	files, dir, err = recipes.Read(path)
	if err == nil {
		id, err = filepath.Abs(path)
		return files, dir, id, err
	}
	if !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(path, `./\`) {
		return nil, "", "", err
	}
	if files, builtinErr := recipes.Builtin(path); builtinErr == nil {
		return files, "", "builtin " + path, nil
	}
	return nil, "", "", fmt.Errorf("%w; built in are: %s", err, strings.Join(recipes.BuiltinNames(), ", "))
}

// openCache opens the store for a recipe with open, which is cache.OpenDir or
// cache.OpenReadOnly, and returns the options of a build.
func (p *program) openCache(a cacheArgs, r *loaded, open func(string, func() time.Time) (*cache.Dir, error)) (*cache.Dir, engine.Options, error) {
	store, err := p.openStore(a.dir, open)
	if err != nil {
		return nil, engine.Options{}, err
	}
	memory := a.memory
	if memory == 0 {
		memory = availableMemory()
	}
	return store, engine.Options{
		Store: store, Sources: store, History: store, Locker: store, Scratch: store, Logs: store,
		Recipe: r.id, Workers: a.workers, Memory: memory,
		Pools: map[string]int{rules.Pool: 1},
		Now:   p.now, Version: version, Backend: r.backend, Strict: r.Numerics == "strict",
	}, nil
}

// openStore opens the cache in a folder, "" for the default one, with open, which is
// cache.OpenDir or cache.OpenReadOnly.
func (p *program) openStore(path string, open func(string, func() time.Time) (*cache.Dir, error)) (*cache.Dir, error) {
	if path == "" {
		var err error
		if path, err = cache.DefaultPath(p.env); err != nil {
			return nil, err
		}
	}
	return open(path, p.now)
}
