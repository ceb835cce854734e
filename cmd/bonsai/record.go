package main

import (
	"errors"
	"runtime/metrics"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine"
	"bonsai/engine/record"
)

// recorder returns the recorder of a command that builds.
func (p *program) recorder(command string, w *words, targets []string, opt engine.Options) *record.Recorder {
	return record.NewRecorder(p.now, record.Head{
		Command: command, Words: w.given, Recipe: opt.Recipe, Targets: targets,
		Version: opt.Version, Backend: opt.Backend,
	}, memoryHeld)
}

// keep puts the record of a run in the cache, unless that is read-only. That it cannot be
// kept fails nothing.
func (p *program) keep(store *cache.Dir, run *record.Run, v *view.Build) {
	if err := record.Save(store, run); err != nil && !errors.Is(err, cache.ErrReadOnly) {
		v.Remark("no record of this run: " + err.Error())
	}
}

// memoryHeld returns the bytes that Go holds. Files that are mapped and memory of C
// libraries are not in it.
func memoryHeld() int64 {
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
