package main

import (
	"context"
	"slices"
	"strings"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/engine/record"
)

// logKeys are the keys of log alone.
var logKeys = []string{"cache", "run", "tail"}

// runLog shows what the actions of steps said in their last run.
func runLog(_ context.Context, p *program, w *words) (int, error) {
	dir, from, tail := w.text("cache", ""), w.text("run", ""), w.count("tail", 0, 0)
	opt := view.LogOptions{
		Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w), JSON: w.flag("json"), Tail: tail,
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case len(w.bare) == 0:
		return 0, misused("log of what? As in bonsai log codes.body, or bonsai log \"codes.body layer 0 qkv codes\"")
	}
	store, err := p.openStore(dir, cache.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	l := &logs{store: store}
	if l.ids, err = record.List(store); err != nil {
		return 0, err
	}
	if from != "" {
		id, err := record.Find(store, from)
		if err != nil {
			return 0, err
		}
		l.ids = []string{id}
	}
	said, err := l.of(w.bare)
	if err != nil {
		return 0, err
	}
	return exitBuilt, view.WriteLog(p.stdout, said, opt)
}

// logs finds what actions said.
type logs struct {
	store *cache.Dir
	ids   []string // of the runs to look in, the latest first
}

// of returns the logs of what words mean: together the name of one action, or each a step.
func (l *logs) of(words []string) (said []view.ActionLog, err error) {
	if joined := strings.Join(words, " "); len(words) > 1 {
		if said, _, err = l.find(joined); len(said) > 0 || err != nil {
			return said, err
		}
	}
	for _, word := range words {
		found, known, err := l.find(word)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, misused("no step or action %q in a run that is recorded%s", word, didYouMean(word, known))
		}
		said = append(said, found...)
	}
	return said, nil
}

// find returns the logs of the latest run that had to do with what a word means; or, if
// none had, the steps of the latest run.
func (l *logs) find(word string) (said []view.ActionLog, known []string, err error) {
	for _, id := range l.ids[:min(len(l.ids), mostLooked)] {
		head, err := record.LoadHead(l.store, id)
		if err != nil || head.Quick {
			continue
		}
		run, err := record.Load(l.store, id)
		if err != nil {
			return nil, nil, err
		}
		if said := l.inRun(run, word); len(said) > 0 {
			return said, nil, nil
		}
		if known == nil {
			known = stepsOf(run)
		}
	}
	return nil, known, nil
}

// inRun returns the logs of the actions of a run that a word means.
func (l *logs) inRun(run *record.Run, word string) (said []view.ActionLog) {
	short := record.Short(run.ID)
	for i := range run.Actions {
		a := &run.Actions[i]
		if names(word, engine.Action{Step: a.Step, Name: a.Name}) {
			said = append(said, view.ActionLog{
				Step: a.Step, Name: a.Name, Key: a.Key, Run: short, Status: string(a.Outcome),
				Seconds: a.Took().Seconds(), Error: a.Error, Text: l.text(a.Key),
			})
		}
	}
	for _, h := range run.Hits {
		if names(word, engine.Action{Step: h.Step, Name: h.Name}) {
			said = append(said, view.ActionLog{
				Step: h.Step, Name: h.Name, Key: h.Key, Run: short, Status: engine.Hit.String(), Text: l.text(h.Key),
			})
		}
	}
	return said
}

// text returns the log under a key, nil if none is kept.
func (l *logs) text(k cache.Key) *string {
	b, err := l.store.Log(k)
	if err != nil {
		return nil
	}
	text := string(b)
	return &text
}

// stepsOf returns the steps of a run, each once.
func stepsOf(run *record.Run) (steps []string) {
	for _, a := range run.Actions {
		steps = append(steps, a.Step)
	}
	for _, h := range run.Hits {
		steps = append(steps, h.Step)
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}
