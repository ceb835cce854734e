package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bonsai/cache"
	"bonsai/engine/record"
)

// A StatRun is a run with what the cache kept it from making.
type StatRun struct {
	record.Head
	Kept int64 // bytes of the outputs of hits that are still known; 0 of a quick run
}

// A stat adds up runs.
type stat struct {
	Day     string  `json:"day,omitempty"`
	Runs    int     `json:"runs"`
	Ran     int     `json:"ran"`
	Hits    int     `json:"hits"`
	Rate    float64 `json:"hit_rate"` // of all actions
	Saved   float64 `json:"saved_s"`
	Kept    int64   `json:"saved_bytes"`
	Busy    float64 `json:"spent_s"`
	Written int64   `json:"written_bytes"`
}

func (t *stat) add(r StatRun) {
	t.Runs++
	t.Ran += r.Ran
	t.Hits += r.Hits
	t.Saved += r.Saved
	t.Kept += r.Kept
	t.Busy += r.Busy
	t.Written += r.Written
	if n := t.Ran + t.Hits; n > 0 {
		t.Rate = float64(t.Hits) / float64(n)
	}
}

// sumRuns adds up runs, in all and by the day on which they began.
func sumRuns(runs []StatRun, zone *time.Location) (all stat, days []stat) {
	for _, r := range runs {
		all.add(r)
		day := r.Began.In(zone).Format(time.DateOnly)
		i := slices.IndexFunc(days, func(s stat) bool { return s.Day == day })
		if i < 0 {
			i, days = len(days), append(days, stat{Day: day})
		}
		days[i].add(r)
	}
	return all, days
}

// WriteStats writes how often the cache had what runs needed, and what that saved. runs
// are in order of time; of the days, the last so many are shown.
func WriteStats(w io.Writer, runs []StatRun, s *cache.Survey, limit int, opt CacheOptions) error {
	all, days := sumRuns(runs, opt.Now.Location())
	days = days[max(0, len(days)-limit):]
	evicted := 0
	for i := range s.Results {
		if !s.Results[i].Evicted.IsZero() {
			evicted++
		}
	}
	if opt.JSON {
		return writeJSON(w, headed{"stats", struct {
			stat
			CacheBytes int64  `json:"cache_bytes"`
			Results    int    `json:"results"`
			Evicted    int    `json:"evicted"`
			Days       []stat `json:"days"`
		}{all, s.Bytes(), len(s.Results), evicted, append([]stat{}, days...)}})
	}
	p := opt.palette()
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("cache", "%s: %s, %d of them evicted", Bytes(s.Bytes()), count(len(s.Results), "result"), evicted)
	if len(runs) == 0 {
		row("runs", "none yet: each build and eval leaves a record")
	} else {
		row("runs", "%d since %s", all.Runs, runs[0].Began.In(opt.Now.Location()).Format("2006-01-02 15:04"))
		row("hits", "%s of %s", p.good.Render(wholePercent(all.Rate)), count(all.Ran+all.Hits, "action"))
		row("saved", "%s of work, %s", p.good.Render(seconds(all.Saved)), Bytes(all.Kept))
		row("spent", "%s of work, %s", seconds(all.Busy), Bytes(all.Written))
		fmt.Fprintln(&b, p.faint.Render("day         runs   hits     ran      saved       spent    written"))
	}
	for _, d := range days {
		fmt.Fprintf(&b, "%s %5d %6s %7d %10s %11s %10s\n", d.Day, d.Runs, wholePercent(d.Rate), d.Ran, seconds(d.Saved), seconds(d.Busy), Bytes(d.Written))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wholePercent returns a share; it is 100 % only if nothing is missing.
func wholePercent(x float64) string {
	if x < 1 {
		x = min(x, 0.994)
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}
