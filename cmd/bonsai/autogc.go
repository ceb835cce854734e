package main

import (
	"context"
	"errors"
	"fmt"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine/record"
)

// cacheMaxEnv is the variable that holds what cache-max= says if that is not given.
const cacheMaxEnv = "BONSAI_CACHE_MAX"

// cacheMax reads how large the cache may be after a build; 0 for no limit.
func (p *program) cacheMax(w *words) int64 {
	v := p.env(cacheMaxEnv)
	if _, given := w.values["cache-max"]; given || v == "" {
		return w.bytes("cache-max")
	}
	n, ok := parseBytes(v)
	if !ok {
		w.fail("%s=%s: not a size such as 50GiB", cacheMaxEnv, v)
	}
	return n
}

// tidy ends a build that stored something with a gc, if the cache has a limit, and else
// with a note if the disk is nearly full and a gc could help. That either fails is said
// and fails nothing. The lease of the build keeps what it used.
func (p *program) tidy(ctx context.Context, store *cache.Dir, limit int64, run *record.Run, v *view.Build) {
	if run.Ran == 0 || ctx.Err() != nil {
		return
	}
	line := ""
	var err error
	if limit > 0 {
		var c cache.Collection
		c, err = store.GC(ctx, cache.Limits{Max: limit})
		line = view.CollectionLine(c)
	} else if free, total := p.room(store.Path()); isLow(free, total) {
		var s *cache.Survey
		if s, err = store.Survey(ctx); err == nil && s.Bytes() > free {
			line = fmt.Sprintf("the disk has %s left of %s, and the cache takes %s: bonsai cache gc max=SIZE makes room, "+
				"%s=SIZE keeps it", view.Bytes(free), view.Bytes(total), view.Bytes(s.Bytes()), cacheMaxEnv)
		}
	}
	switch {
	case errors.Is(err, cache.ErrReadOnly) || ctx.Err() != nil:
	case err != nil:
		v.Remark("no room was made in the cache: " + err.Error())
	case line != "":
		v.Remark(line)
	}
}

// isLow reports whether less than a tenth of a disk is left: then the next large artifact
// may not fit.
func isLow(free, total int64) bool { return total > 0 && free < total/10 }
