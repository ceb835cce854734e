package main

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
)

// aftermath shows what a failed build leaves: for each action that failed, what it said
// last, and what did not run because of it.
func aftermath(store *cache.Dir, g *engine.Graph, want []*engine.Artifact, err error, v *view.Build) {
	const most = 20 // the errors tell of the others
	list := failures(err)
	for _, failed := range list[:min(len(list), most)] {
		said, logErr := store.Log(failed.Key)
		if logErr != nil {
			said = nil // nothing was kept of it, which the failure is no worse for
		}
		v.Aftermath(view.Aftermath{
			Step: failed.Step, Name: failed.Name, Said: lastLines(said), Skipped: skipped(g, want, failed),
		})
	}
}

// failures returns the actions that failed, of all errors that were joined.
func failures(err error) (list []*engine.ActionError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, failures(e)...)
		}
		return list
	}
	failed, ok := errors.AsType[*engine.ActionError](err)
	if !ok || errors.Is(err, context.Canceled) {
		return nil
	}
	return []*engine.ActionError{failed}
}

// skipped returns the actions on the way to want that cannot run without a failed one.
func skipped(g *engine.Graph, want []*engine.Artifact, failed *engine.ActionError) (list []string) {
	for _, a := range g.Both(g.Behind(want), g.After(g.Made(failed.Step, failed.Name))) {
		if a.Step != failed.Step || a.Name != failed.Name {
			list = append(list, a.String())
		}
	}
	return list
}

// lastLines returns the end of what an action said.
func lastLines(text []byte) []string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(string(bytes.ToValidUTF8(text, nil))), "\n")
	return lines[max(0, len(lines)-most):]
}
