package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/recipes"
)

// graphKeys are the keys of graph alone.
var graphKeys = []string{"format", "level"}

// runGraph draws what a target is made of. It runs nothing and writes nothing to disk.
func runGraph(ctx context.Context, p *program, w *words) (int, error) {
	at, stored, asked := readRecipeArgs(w), readCacheArgs(w), readSelection(w)
	format := w.choice("format", view.GraphFormats()...)
	level := w.choice("level", "step", "action")
	style := p.style(w.choice("color", "auto", "never", "always"), p.stdout.w)
	if w.flag("json") {
		format = "json"
	}
	if w.err != nil {
		return 0, w.err
	}
	r, warnings, err := p.load(at, stored.backend)
	if err != nil {
		return 0, err
	}
	warnings.Write(p.stderr, p.style("auto", p.stderr))
	targets, err := r.selected(asked)
	if err != nil {
		return 0, err
	}
	_, opt, err := p.openCache(stored, r, cache.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	want := artifacts(targets)
	plan, err := engine.MakePlan(ctx, r.Graph, want, opt)
	if err != nil {
		return 0, err
	}
	d := newDrawing(r.Graph, want, plan, level == "step")
	d.Title, d.Level = titleOf(targets), level
	return exitBuilt, view.WriteGraph(p.stdout, d, format, style)
}

func titleOf(targets []*recipes.Target) string {
	var names []string
	for _, t := range targets {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// mostNamed is how many files that are drawn as one are named.
const mostNamed = 2

// A sketch makes a drawing: a box for each step, or for each action, and for the files
// that they read.
type sketch struct {
	drawing view.Graph
	steps   bool
	status  map[string]engine.Status // of the actions in the plan
	boxes   map[string]int           // by the name of the step, the action or the file
	edges   map[[2]int]bool
}

// newDrawing returns the drawing of what some artifacts are made of.
func newDrawing(g *engine.Graph, want []*engine.Artifact, plan *engine.Plan, steps bool) view.Graph {
	s := &sketch{steps: steps, status: map[string]engine.Status{}, boxes: map[string]int{}, edges: map[[2]int]bool{}}
	for i := range plan.Entries {
		e := &plan.Entries[i]
		s.status[engine.Action{Step: e.Step, Name: e.Name}.String()] = e.Status
	}
	reached := reach(want)
	files := filesOf(g, reached, steps)
	for a := range g.Actions() {
		if !reached[a.String()] {
			continue
		}
		for _, in := range a.In { // files come before what reads them
			if path, ok := in.Source(); ok {
				s.file(files, path)
			}
		}
		s.action(a)
		for _, in := range a.In {
			if path, ok := in.Source(); ok {
				s.edge(s.file(files, path), s.boxes[s.name(a)])
			} else if maker, ok := in.Action(); ok {
				s.edge(s.boxes[s.name(maker)], s.boxes[s.name(a)])
			}
		}
	}
	for _, a := range want {
		name := a.String()
		if maker, ok := a.Action(); ok {
			name = s.name(maker)
		} else {
			s.file(files, name)
		}
		s.drawing.Boxes[s.boxes[name]].Wanted = true
	}
	return s.drawing
}

// reach returns the actions that artifacts are made by, directly or not.
func reach(want []*engine.Artifact) map[string]bool {
	reached := map[string]bool{}
	queue := append([]*engine.Artifact{}, want...)
	for len(queue) > 0 {
		a, ok := queue[len(queue)-1].Action()
		queue = queue[:len(queue)-1]
		if ok && !reached[a.String()] {
			reached[a.String()] = true
			queue = append(queue, a.In...)
		}
	}
	return reached
}

// filesOf returns what each file is drawn as: itself, or, where boxes are steps, all files
// of its folder that the same steps read.
func filesOf(g *engine.Graph, reached map[string]bool, steps bool) map[string]string {
	readers := map[string]map[string]bool{}
	var order []string
	for a := range g.Actions() {
		for _, in := range a.In {
			path, ok := in.Source()
			if !ok || !reached[a.String()] {
				continue
			}
			if readers[path] == nil {
				readers[path] = map[string]bool{}
				order = append(order, path)
			}
			readers[path][a.Step] = true
		}
	}
	byReaders, files := map[string][]string{}, map[string]string{}
	for _, path := range order {
		files[path] = path
		group := filepath.Dir(path) + "\x00" + fmt.Sprint(readers[path])
		byReaders[group] = append(byReaders[group], path)
	}
	for _, paths := range byReaders {
		if !steps || len(paths) == 1 {
			continue
		}
		for _, path := range paths {
			files[path] = together(paths)
		}
	}
	return files
}

// together returns a name of files in one folder.
func together(paths []string) string {
	var names []string
	for _, path := range paths[:min(len(paths), mostNamed)] {
		names = append(names, filepath.Base(path))
	}
	if n := len(paths) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return filepath.Join(filepath.Dir(paths[0]), strings.Join(names, ", "))
}

// name returns the name of the box that an action is in.
func (s *sketch) name(a engine.Action) string {
	if s.steps {
		return a.Step
	}
	return a.String()
}

// file returns the box of a file, which is made if there is none.
func (s *sketch) file(files map[string]string, path string) int {
	name := path
	if files[path] != "" {
		name = files[path]
	}
	if i, ok := s.boxes[name]; ok {
		return i
	}
	return s.box(name, view.Box{Name: name, Kind: "file"})
}

func (s *sketch) box(name string, b view.Box) int {
	i := len(s.drawing.Boxes)
	s.boxes[name] = i
	s.drawing.Boxes = append(s.drawing.Boxes, b)
	return i
}

// action counts an action in its box, which is made if there is none.
func (s *sketch) action(a engine.Action) {
	name := s.name(a)
	i, ok := s.boxes[name]
	if !ok {
		kind := "action"
		if s.steps {
			kind = "step"
		}
		i = s.box(name, view.Box{Name: name, Kind: kind})
	}
	s.drawing.Boxes[i].Count(s.status, a.String())
}

// edge draws that one box reads of another.
func (s *sketch) edge(from, to int) {
	if from == to || s.edges[[2]int{from, to}] {
		return
	}
	s.edges[[2]int{from, to}] = true
	b := &s.drawing.Boxes[to]
	b.In = append(b.In, from)
}
