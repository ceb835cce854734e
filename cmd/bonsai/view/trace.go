package view

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bonsai/engine/record"
)

// A traceEvent is one event of the Chrome trace format, which Perfetto and
// chrome://tracing read. Times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	At       float64        `json:"ts"`
	Took     *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Row      int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// The rows of a trace: the longest chain first, then a row for each action at once, then
// waits and sources.
const (
	criticalRow = 0
	firstLane   = 1
	firstWait   = 100_000
	firstRead   = 200_000
)

// A span is a stretch of time on a row.
type span struct {
	from, to time.Duration
	event    traceEvent
}

// WriteTrace writes a run as JSON in the Chrome trace format: a row for each action at
// once, the longest chain as a row of its own, waits for other builds, sources that were
// hashed, and how much memory was held and how many actions ran over time.
func WriteTrace(w io.Writer, r *record.Run) error {
	events := []traceEvent{named("process_name", 0, "bonsai "+runWhat(r.Head))}
	var lanes, waits, reads, chain []span
	for i := range r.Actions {
		a := &r.Actions[i]
		lanes = append(lanes, actionSpan(a))
		for _, wait := range a.Waits {
			waits = append(waits, span{wait.From, wait.To, traceEvent{
				Name: a.String(), Category: "wait", Args: map[string]any{"holder": wait.Holder},
			}})
		}
	}
	for _, wait := range r.Waits {
		waits = append(waits, span{wait.From, wait.To, traceEvent{
			Name: label(wait.Step, wait.Name), Category: "wait", Args: map[string]any{"holder": wait.Holder},
		}})
	}
	for _, i := range r.Critical {
		chain = append(chain, actionSpan(&r.Actions[i]))
	}
	for _, read := range r.Reads {
		reads = append(reads, span{read.From, read.To, traceEvent{
			Name: "hash " + read.Path, Category: "source", Args: map[string]any{"bytes": read.Size},
		}})
	}
	events = append(events, rows("longest chain", criticalRow, chain)...)
	events = append(events, rows("actions", firstLane, lanes)...)
	events = append(events, rows("waits for other builds", firstWait, waits)...)
	events = append(events, rows("sources", firstRead, reads)...)
	events = append(events, counters(r)...)
	return writeEvents(w, events, r)
}

func actionSpan(a *record.Action) span {
	args := map[string]any{"step": a.Step, "key": a.Key.String(), "outcome": a.Outcome}
	for name, value := range map[string]string{"note": a.Note, "error": a.Error, "pool": a.Pool, "because": becauseText(a.Reasons)} {
		if value != "" {
			args[name] = value
		}
	}
	for name, value := range map[string]int64{"bytes": a.Bytes, "peak_memory_bytes": a.Peak} {
		if value > 0 {
			args[name] = value
		}
	}
	return span{a.From, a.To, traceEvent{Name: a.String(), Category: cmp.Or(a.Pool, "action"), Args: args}}
}

func becauseText(reasons []record.Reason) string {
	var texts []string
	for _, r := range reasons {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "; ")
}

// rows places spans on as few rows as hold them without an overlap, from row on.
func rows(title string, row int, spans []span) (events []traceEvent) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var ends []time.Duration
	for _, s := range spans {
		i := slices.IndexFunc(ends, func(end time.Duration) bool { return end <= s.from })
		if i < 0 {
			i = len(ends)
			ends = append(ends, 0)
		}
		ends[i] = s.to
		took := micros(s.to - s.from)
		e := s.event
		e.Phase, e.At, e.Took, e.Process, e.Row = "X", micros(s.from), &took, 1, row+i
		events = append(events, e)
	}
	for i := range ends {
		name := title
		if len(ends) > 1 {
			name = fmt.Sprintf("%s %d", title, i+1)
		}
		sort := named("thread_sort_index", row+i, "")
		sort.Args = map[string]any{"sort_index": row + i}
		events = append(events, named("thread_name", row+i, name), sort)
	}
	return events
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// named returns the event that gives the process or a row a name.
func named(what string, row int, name string) traceEvent {
	return traceEvent{Name: what, Phase: "M", Process: 1, Row: row, Args: map[string]any{"name": name}}
}

// counters returns how much memory was held, and how many actions ran, over time.
func counters(r *record.Run) (events []traceEvent) {
	counter := func(name, unit string, at time.Duration, n int64) {
		events = append(events, traceEvent{
			Name: name, Phase: "C", At: micros(at), Process: 1, Args: map[string]any{unit: n},
		})
	}
	for _, s := range r.Memory {
		counter("memory", "bytes", s.At, s.Bytes)
	}
	type change struct {
		at time.Duration
		by int64
	}
	var changes []change
	for _, a := range r.Actions {
		changes = append(changes, change{a.From, 1}, change{a.To, -1})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	n := int64(0)
	for i, c := range changes {
		n += c.by
		if i+1 == len(changes) || changes[i+1].at != c.at {
			counter("actions", "running", c.at, n)
		}
	}
	return events
}

// writeEvents writes the object that holds events, one a line.
func writeEvents(w io.Writer, events []traceEvent, r *record.Run) error {
	b := bufio.NewWriter(w)
	head, err := json.Marshal(map[string]any{
		"run": r.ID, "began": r.Began, "outcome": r.Outcome, "bonsai": r.Version, "recipe": r.Recipe, "words": r.Words,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(b, `{"displayTimeUnit":"ms","otherData":%s,"traceEvents":[`, head)
	for i, e := range events {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		comma := ","
		if i == 0 {
			comma = ""
		}
		fmt.Fprintf(b, "%s\n%s", comma, text)
	}
	fmt.Fprint(b, "\n]}\n")
	return b.Flush()
}
