package view

import (
	"time"

	"bonsai/cache"
	"bonsai/engine"
	"bonsai/engine/record"
)

// A planJSON is the JSON form of a plan: its schema is schemas/plan.json.
type planJSON struct {
	Entries   []entryJSON           `json:"entries"`
	Totals    map[string]totalsJSON `json:"totals"`
	Causes    int                   `json:"causes"`
	Followers int                   `json:"followers"`
	Critical  float64               `json:"critical_s"`
	Needed    int64                 `json:"disk_needed_bytes"`
	Memory    int64                 `json:"memory_bytes"`
	Disk      int64                 `json:"disk_bytes"`
	Sources   []sourceJSON          `json:"sources"`
	Compared  string                `json:"compared_with,omitempty"`
	Request   *Request              `json:"request,omitempty"` // of a saved plan
}

type entryJSON struct {
	Step      string       `json:"step"`
	Action    string       `json:"action,omitempty"`
	Status    string       `json:"status"`
	Cause     bool         `json:"cause"`
	Root      *int         `json:"root,omitempty"`
	Followers int          `json:"followers,omitempty"`
	Reasons   []reasonJSON `json:"reasons"`
	Cached    string       `json:"cached,omitempty"`
	Key       *cache.Key   `json:"key,omitempty"`
	Settings  string       `json:"settings,omitempty"` // in a saved plan
	Pool      string       `json:"pool,omitempty"`
	Bytes     int64        `json:"bytes"`
	Peak      int64        `json:"peak_bytes"`
	Seconds   float64      `json:"seconds"`
	Critical  bool         `json:"critical,omitempty"`
	Dropped   int64        `json:"dropped_bytes,omitempty"`
	Evicted   time.Time    `json:"evicted,omitzero"`
}

type reasonJSON struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
	Text string `json:"text"`
}

type totalsJSON struct {
	Actions int     `json:"actions"`
	Bytes   int64   `json:"bytes"`
	Peak    int64   `json:"peak_bytes"`
	Seconds float64 `json:"seconds"`
}

type sourceJSON struct {
	Path string `json:"path"`
	cache.Output
}

// newPlanJSON returns the JSON form of a plan.
func newPlanJSON(p *Planning) planJSON {
	j := planJSON{
		Entries: []entryJSON{}, Totals: map[string]totalsJSON{}, Sources: []sourceJSON{},
		Needed: p.Disk(), Memory: p.Budget.Memory, Disk: p.Budget.Disk, Compared: p.Compared,
	}
	j.Critical, _ = p.Critical()
	for _, e := range p.Entries {
		j.Entries = append(j.Entries, newEntryJSON(&e))
		switch {
		case e.Status == engine.Hit:
		case e.Cause:
			j.Causes++
		default:
			j.Followers++
		}
	}
	for i, e := range p.Entries {
		if e.Root >= 0 && e.Root != i {
			j.Entries[e.Root].Followers++
		}
	}
	for _, s := range []engine.Status{engine.Run, engine.Maybe, engine.Hit} {
		j.Totals[s.String()] = totalsJSON(p.Total(s))
	}
	for _, s := range p.Sources {
		j.Sources = append(j.Sources, sourceJSON{s.Path, s.Output})
	}
	return j
}

func newEntryJSON(e *engine.Entry) entryJSON {
	a := actionOf(e.Step, e.Name, e.Key)
	j := entryJSON{
		Step: e.Step, Action: e.Name, Status: e.Status.String(), Cause: e.Cause, Reasons: reasonsJSON(e.Reasons),
		Key: a.Key, Pool: e.Pool, Bytes: e.Size, Peak: e.Peak, Seconds: e.Seconds,
		Critical: e.Critical, Dropped: e.Dropped, Evicted: e.Evicted,
	}
	if e.Status == engine.Hit {
		j.Cached = "local"
	}
	if e.Root >= 0 {
		j.Root = &e.Root
	}
	return j
}

func reasonsJSON(reasons []engine.Reason) []reasonJSON {
	kinds := record.ReasonKinds()
	list := []reasonJSON{}
	for _, r := range reasons {
		list = append(list, reasonJSON{kinds[r.Kind], r.Name, r.Old, r.New, r.String()})
	}
	return list
}
