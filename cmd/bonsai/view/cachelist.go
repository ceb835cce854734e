package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"bonsai/cache"
)

// SortStored orders results by step, or by size, age or cost, the most first.
func SortStored(rows []cache.Stored, by string) {
	slices.SortStableFunc(rows, func(a, b cache.Stored) int {
		names := cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Action, b.Action), b.Used.Compare(a.Used))
		switch by {
		case "size":
			return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), names)
		case "age":
			return cmp.Or(a.Used.Compare(b.Used), names)
		case "cost":
			return cmp.Or(cmp.Compare(b.Took, a.Took), names)
		default:
			return names
		}
	})
}

// storedState says in a word what there is of a result.
func storedState(r *cache.Stored) string {
	switch there := !slices.Contains(r.There, false); {
	case len(r.Pins) > 0:
		return "pinned"
	case there:
		return ""
	case !r.Evicted.IsZero():
		return "evicted"
	case r.Transient:
		return "dropped"
	default:
		return "missing"
	}
}

// WriteStored writes a line for each result. limit is how many at most; 0 for all.
func WriteStored(w io.Writer, rows []cache.Stored, limit int, s *cache.Survey, opt CacheOptions) error {
	shown := rows
	if limit > 0 {
		shown = rows[:min(limit, len(rows))]
	}
	if opt.JSON {
		return writeStoredJSON(w, shown, len(rows))
	}
	p := opt.palette()
	var b strings.Builder
	if len(rows) > 0 {
		fmt.Fprintln(&b, p.faint.Render("key                size   to make  last used    state    step"))
	}
	var total int64
	for i := range rows {
		total += rows[i].Bytes()
	}
	for i := range shown {
		r := &shown[i]
		line := fmt.Sprintf("%s %10s %9s  %-12s %-8s ", r.Key.Short(), Bytes(r.Bytes()), duration(r.Took), since(opt.Now, r.Used), storedState(r))
		fmt.Fprintln(&b, strings.TrimRight(clip(line+printable(orUnknown(label(r.Step, r.Action))), opt.Width), " "))
	}
	if n := len(rows) - len(shown); n > 0 {
		fmt.Fprintf(&b, "… and %d more: limit=%d shows them\n", n, len(rows))
	}
	fmt.Fprintf(&b, "%s, %s\n", count(len(rows), "result"), Bytes(total))
	if s.Foreign > 0 {
		fmt.Fprintf(&b, "%s of another version of bonsai\n", count(s.Foreign, "result"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A storedRow is the JSON form of a result in a list.
type storedRow struct {
	Key     cache.Key      `json:"key"`
	Step    string         `json:"step,omitempty"`
	Action  string         `json:"action,omitempty"`
	State   string         `json:"state"` // stored, pinned, evicted, dropped or missing
	Bytes   int64          `json:"bytes"`
	Seconds float64        `json:"seconds"`
	Used    time.Time      `json:"used"`
	Evicted time.Time      `json:"evicted,omitzero"`
	Pins    []string       `json:"pins,omitempty"`
	Outputs []cache.Output `json:"outputs"`
}

func storedRowOf(r *cache.Stored) storedRow {
	state := storedState(r)
	if state == "" {
		state = "stored"
	}
	return storedRow{
		r.Key, r.Step, r.Action, state, r.Bytes(), r.Took.Seconds(), r.Used.UTC(), r.Evicted, r.Pins,
		append([]cache.Output{}, r.Outputs...),
	}
}

func writeStoredJSON(w io.Writer, rows []cache.Stored, all int) error {
	list := []storedRow{}
	for i := range rows {
		list = append(list, storedRowOf(&rows[i]))
	}
	return writeJSON(w, headed{"results", struct {
		Count   int         `json:"count"`
		Results []storedRow `json:"results"`
	}{all, list}})
}

// A use is what a name takes.
type use struct {
	Name    string  `json:"name"`
	Results int     `json:"results"`
	Bytes   int64   `json:"bytes"`        // of blobs that only results of this name name
	Shared  int64   `json:"shared_bytes"` // of blobs that results of other names name too
	Seconds float64 `json:"seconds"`      // to make it all again
}

// usage adds up blobs by the names of the results that name them.
func usage(s *cache.Survey, name func(*cache.Stored) string) []*use {
	uses := map[string]*use{}
	at := func(n string) *use {
		if uses[n] == nil {
			uses[n] = &use{Name: n}
		}
		return uses[n]
	}
	for i := range s.Results {
		r := &s.Results[i]
		u := at(name(r))
		u.Results++
		if slices.Contains(r.There, true) {
			u.Seconds += r.Took.Seconds()
		}
	}
	for _, b := range s.Blobs {
		names := map[string]bool{}
		for _, i := range b.Results {
			names[name(&s.Results[i])] = true
		}
		for n := range names {
			if len(names) > 1 {
				at(n).Shared += b.Size
			} else {
				at(n).Bytes += b.Size
			}
		}
	}
	list := slices.Collect(maps.Values(uses))
	slices.SortFunc(list, func(a, b *use) int {
		return cmp.Or(cmp.Compare(b.Bytes+b.Shared, a.Bytes+a.Shared), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// A total is what a kind of files takes.
type total struct {
	Name  string `json:"name"`
	Count int    `json:"count,omitempty"`
	Bytes int64  `json:"bytes"`
}

// totals returns what the store takes by kind: each byte once.
func totals(s *cache.Survey) []total {
	artifacts, fleeting, unnamed := total{Name: "artifacts"}, total{Name: "transient"}, total{Name: "without result"}
	for _, b := range s.Blobs {
		t := &artifacts
		switch {
		case len(b.Results) == 0:
			t = &unnamed
		case !slices.ContainsFunc(b.Results, func(i int) bool { return !s.Results[i].Transient }):
			t = &fleeting
		}
		t.Count++
		t.Bytes += b.Size
	}
	results := total{Name: "results", Count: len(s.Results), Bytes: s.Other["results"]}
	for i := range s.Results {
		results.Bytes += s.Results[i].Size
	}
	list := []total{artifacts, fleeting, unnamed, results}
	for _, name := range slices.Sorted(maps.Keys(s.Other)) {
		if name == "results" {
			continue
		}
		said := map[string]string{"": "journals", "tmp": "being written"}[name]
		if said == "" {
			said = name
		}
		list = append(list, total{Name: said, Bytes: s.Other[name]})
	}
	return slices.DeleteFunc(list, func(t total) bool { return t.Bytes == 0 && t.Count == 0 })
}

// WriteUsage writes what takes how much room, by kind and by name: that of a step or a
// recipe, which by says.
func WriteUsage(w io.Writer, path string, s *cache.Survey, by string, name func(*cache.Stored) string, opt CacheOptions) error {
	kinds, uses := totals(s), usage(s, name)
	if opt.JSON {
		return writeJSON(w, headed{"usage", struct {
			Path  string  `json:"path"`
			Bytes int64   `json:"bytes"`
			Kinds []total `json:"kinds"`
			By    string  `json:"by"`
			Uses  []*use  `json:"uses"`
		}{path, s.Bytes(), kinds, by, append([]*use{}, uses...)}})
	}
	p := opt.palette()
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", p.strong.Render(Bytes(s.Bytes())), printable(path))
	for _, k := range kinds {
		line := fmt.Sprintf("  %-16s %10s", k.Name, Bytes(k.Bytes))
		if k.Count > 0 {
			line += fmt.Sprintf("  %d", k.Count)
		}
		fmt.Fprintln(&b, line)
	}
	if len(uses) > 0 {
		fmt.Fprintln(&b, p.faint.Render(fmt.Sprintf("      alone     shared   to make  results  %s", by)))
	}
	for _, u := range uses {
		n := u.Name
		if n == "" {
			n = map[string]string{"step": "(unknown step)", "recipe": "(earlier builds)"}[by]
		}
		line := fmt.Sprintf("%11s %10s %9s %8d  ", Bytes(u.Bytes), Bytes(u.Shared), seconds(u.Seconds), u.Results)
		fmt.Fprintln(&b, clip(line+printable(n), opt.Width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteResult writes all that the cache knows of one result.
func WriteResult(w io.Writer, k cache.Key, r cache.Result, s *cache.Survey, opt CacheOptions) error {
	i := slices.IndexFunc(s.Results, func(r cache.Stored) bool { return r.Key == k })
	if i < 0 {
		return fmt.Errorf("result %s: it went while it was looked at", k.Short())
	}
	stored := &s.Results[i]
	if opt.JSON {
		return writeJSON(w, headed{"result", struct {
			storedRow
			Note       string    `json:"note,omitempty"`
			Backend    string    `json:"backend,omitempty"`
			Bonsai     string    `json:"bonsai,omitempty"`
			Started    time.Time `json:"started"`
			PeakMemory int64     `json:"peak_memory_bytes,omitempty"`
			Manifest   string    `json:"manifest"`
		}{storedRowOf(stored), r.Note, r.Backend, r.Version, r.Started, r.PeakMemory, r.Manifest}})
	}
	p := opt.palette()
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "%s\n", p.strong.Render(printable(orUnknown(label(r.Step, r.Action)))))
	row("key", "%s", k)
	row("made", "%s in %s, by bonsai %s on %s", r.Started.In(opt.Now.Location()).Format("2006-01-02 15:04"),
		duration(r.Duration), orUnknownWord(r.Version), orUnknownWord(r.Backend))
	row("last used", "%s", since(opt.Now, stored.Used))
	if !r.Evicted.IsZero() {
		row("evicted", "%s", since(opt.Now, r.Evicted))
	}
	if len(stored.Pins) > 0 {
		row("pinned", "%s", strings.Join(stored.Pins, ", "))
	}
	if r.PeakMemory > 0 {
		row("memory", "%s", Bytes(r.PeakMemory))
	}
	if r.Note != "" {
		row("note", "%s", r.Note)
	}
	for j, o := range r.Outputs {
		state := ""
		if !stored.There[j] {
			state = ", not in the cache"
		}
		row(fmt.Sprintf("output %d", j), "%s  %s%s", o.Digest.Short(), Bytes(o.Size), state)
	}
	fmt.Fprintln(&b, "  manifest")
	for line := range strings.Lines(r.Manifest) {
		fmt.Fprintln(&b, "    "+printable(strings.TrimRight(line, "\n")))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orUnknownWord(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// WriteBlob writes what the cache knows of a blob, and which results name it.
func WriteBlob(w io.Writer, d cache.Digest, s *cache.Survey, opt CacheOptions) error {
	blob := s.Blobs[d]
	if blob == nil {
		return fmt.Errorf("blob %s: it went while it was looked at", d.Short())
	}
	if opt.JSON {
		rows := []storedRow{}
		for _, i := range blob.Results {
			rows = append(rows, storedRowOf(&s.Results[i]))
		}
		return writeJSON(w, headed{"blob", struct {
			Digest  cache.Digest `json:"digest"`
			Size    int64        `json:"size"`
			Stored  time.Time    `json:"stored"`
			Pins    []string     `json:"pins,omitempty"`
			Results []storedRow  `json:"results"`
		}{d, blob.Size, blob.Stored.UTC(), blob.Pins, rows}})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s, stored %s\n", opt.palette().strong.Render("blob "+d.Short()), Bytes(blob.Size), since(opt.Now, blob.Stored))
	fmt.Fprintf(&b, "  digest     %s\n", d)
	if len(blob.Pins) > 0 {
		fmt.Fprintf(&b, "  pinned     %s\n", strings.Join(blob.Pins, ", "))
	}
	for _, i := range blob.Results {
		r := &s.Results[i]
		fmt.Fprintf(&b, "  made by    %s  %s\n", r.Key.Short(), printable(orUnknown(label(r.Step, r.Action))))
	}
	if len(blob.Results) == 0 {
		b.WriteString("  made by    no result names it\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
