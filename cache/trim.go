package cache

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"
)

// How long files are kept that nothing but an age tells the use of.
const (
	runsAge    = 365 * 24 * time.Hour // a build is compared with those of the last year
	logsAge    = 90 * 24 * time.Hour  // whoever asks what an action said asks soon
	plansAge   = 30 * 24 * time.Hour  // made again in seconds
	scratchAge = 30 * 24 * time.Hour  // of an action that was interrupted and never gone on with
)

// trim drops what was kept long enough beside blobs.
func (g *gc) trim(ctx context.Context) error {
	for _, s := range []struct {
		shelf Shelf
		age   time.Duration
	}{{Runs, runsAge}, {Logs, logsAge}, {Plans, plansAge}} {
		for _, e := range g.d.list(filepath.Join(g.d.path, string(s.shelf))) {
			g.trimOld(filepath.Join(g.d.path, string(s.shelf), e.Name()), s.age)
		}
	}
	g.trimScratch()
	g.trimQuarantine()
	if err := ctx.Err(); err != nil {
		return err
	}
	return g.forget(ctx)
}

// trimOld deletes a file or a folder that nothing was written to for longer than age.
func (g *gc) trimOld(path string, age time.Duration) {
	size, newest := g.d.measure(path)
	if g.s.At.Sub(newest) <= age {
		return
	}
	if !g.l.DryRun && g.d.disk.RemoveAll(path) != nil {
		return // it is tried again by the next gc
	}
	g.c.Trimmed++
	g.c.After -= size
	g.free += size
}

// trimScratch deletes the scratch folders of actions that nobody works on.
func (g *gc) trimScratch() {
	for _, e := range g.d.list(filepath.Join(g.d.path, scratchDir)) {
		path := filepath.Join(g.d.path, scratchDir, e.Name())
		k, err := ParseKey(e.Name())
		if err != nil || g.l.DryRun {
			g.trimOld(path, scratchAge)
			continue
		}
		if unlock, err := g.d.tryLockKey(k); err == nil {
			g.trimOld(path, scratchAge)
			unlock()
		}
	}
}

func (g *gc) trimQuarantine() {
	for _, e := range g.d.list(filepath.Join(g.d.path, quarantineDir)) {
		if at, ok := quarantinedAt(e.Name()); ok && g.s.At.Sub(at) > quarantineAge {
			g.trimOld(filepath.Join(g.d.path, quarantineDir, e.Name()), 0)
		}
	}
}

// forget deletes results whose blobs are all gone and that nothing used for long.
func (g *gc) forget(ctx context.Context) error {
	for i := range g.s.Results {
		r := &g.s.Results[i]
		last := r.Used
		if r.Evicted.After(last) {
			last = r.Evicted
		}
		if r.Bytes() > 0 || len(r.Pins) > 0 || g.s.At.Sub(last) <= forgetAfter || g.held.uses(r.Used) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !g.l.DryRun {
			if err := g.d.forget(r); errors.Is(err, errInUse) {
				continue
			} else if err != nil {
				return g.d.writeError(err)
			}
		}
		g.c.Forgotten++
		g.c.After -= r.Size
		g.free += r.Size
	}
	return nil
}

// forget deletes a result, unless someone works on its key or used it since the survey.
func (d *Dir) forget(s *Stored) error {
	unlock, err := d.tryLockKey(s.Key)
	if err != nil {
		return err
	}
	defer unlock()
	path := d.resultPath(s.Key)
	fi, err := d.disk.Stat(path)
	if err == nil && !fi.ModTime().Equal(s.Used) {
		return errInUse
	}
	if err == nil {
		err = d.disk.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
