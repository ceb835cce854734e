package cache

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// resultFormat is the version of the JSON form of a Result. It changes when an older
// bonsai could misread a newer result, not when a field is added.
const resultFormat = 1

// An Output is one blob that an action produced, or a user's file.
type Output struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"` // bytes
}

// A Result is what came of running an action once. Only Outputs decides anything;
// the rest is provenance, for people and for estimates.
//
// A result outlives its blobs: one whose blobs were dropped to make room is a
// tombstone, which still names them.
type Result struct {
	Outputs    []Output
	Manifest   string        // the text whose hash is the key
	Note       string        // what the op said at the end, such as "relative error 0.279"
	Backend    string        // what computed it, such as "go" or "xla:cuda"
	Started    time.Time     // wall clock
	Duration   time.Duration // from start to the last output stored
	PeakMemory int64         // bytes; 0 if not measured
	Version    string        // of bonsai
	Step       string        // the step that first ran it, such as "codes.body"
	Action     string        // which action of the step, such as "layer 0 qkv codes"; may be empty
	Transient  bool          // its blobs are dropped by a build once nothing needs them
	Evicted    time.Time     // when the blobs were dropped to make room; zero: they were not
}

// A FormatError says that a stored result is of a form that this version does not read.
type FormatError struct {
	Format int
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("result has format %d, and this version reads %d", e.Format, resultFormat)
}

// resultJSON is the JSON form of a Result.
type resultJSON struct {
	Format     int       `json:"format"`
	Outputs    []Output  `json:"outputs"`
	Note       string    `json:"note,omitempty"`
	Backend    string    `json:"backend,omitempty"`
	Version    string    `json:"version,omitempty"`
	Step       string    `json:"step,omitempty"`
	Action     string    `json:"action,omitempty"`
	Transient  bool      `json:"transient,omitempty"`
	Evicted    time.Time `json:"evicted,omitzero"`
	Started    time.Time `json:"started"`
	Duration   int64     `json:"duration_ns"`
	PeakMemory int64     `json:"peak_memory_bytes,omitempty"`
	Manifest   string    `json:"manifest"`
}

// MarshalJSON implements json.Marshaler. It returns an error if a text is not UTF-8,
// which JSON would change silently, or if the time is out of JSON's range.
func (r Result) MarshalJSON() ([]byte, error) {
	for _, s := range []string{r.Manifest, r.Note, r.Backend, r.Version, r.Step, r.Action} {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("text of a result is not UTF-8: %.80q", s)
		}
	}
	return json.Marshal(resultJSON{
		Format: resultFormat, Outputs: append([]Output{}, r.Outputs...), Manifest: r.Manifest, Note: r.Note,
		Backend: r.Backend, Version: r.Version, Started: r.Started.UTC(),
		Step: r.Step, Action: r.Action, Transient: r.Transient, Evicted: r.Evicted.UTC(),
		Duration: int64(r.Duration), PeakMemory: r.PeakMemory,
	})
}

// UnmarshalJSON implements json.Unmarshaler. It returns a *FormatError for a result
// of another format, and ignores fields it does not know.
func (r *Result) UnmarshalJSON(b []byte) error {
	var j resultJSON
	if err := json.Unmarshal(b, &j); err != nil {
		// Another format may have other types in its fields.
		var head struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(b, &head) == nil && head.Format != resultFormat {
			return &FormatError{Format: head.Format}
		}
		return err
	}
	if j.Format != resultFormat {
		return &FormatError{Format: j.Format}
	}
	for i, o := range j.Outputs {
		if o.Size < 0 {
			return fmt.Errorf("output %d has size %d", i, o.Size)
		}
	}
	started, evicted := j.Started.UTC(), j.Evicted.UTC()
	for _, t := range []time.Time{started, evicted} {
		if y := t.Year(); y < 0 || y > 9999 {
			return fmt.Errorf("time %s is out of range in UTC", t)
		}
	}
	*r = Result{
		Outputs: j.Outputs, Manifest: j.Manifest, Note: j.Note, Backend: j.Backend, Version: j.Version,
		Started: started, Duration: time.Duration(j.Duration), PeakMemory: j.PeakMemory,
		Step: j.Step, Action: j.Action, Transient: j.Transient, Evicted: evicted,
	}
	return nil
}
