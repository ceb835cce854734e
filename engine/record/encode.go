package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"bonsai/cache"
)

// format is the version of the form of a record. It changes when an older bonsai could
// misread a newer record, not when a field is added.
const format = 1

// A record is gzip of two lines of JSON: the head with the format, and the rest. So the
// head of a long one is read at once.
type headJSON struct {
	Format int `json:"format"`
	Head
}

type restJSON struct {
	Actions  []Action  `json:"actions,omitempty"`
	Hits     *hitsJSON `json:"hits,omitempty"`
	Waits    []HitWait `json:"hit_waits,omitempty"`
	Reads    []Read    `json:"reads,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
	Memory   []Sample  `json:"memory,omitempty"`
	Critical []int     `json:"critical,omitempty"`
}

// hitsJSON holds hits as columns: there may be a hundred thousand, and only their keys
// take room.
type hitsJSON struct {
	Steps []stepJSON `json:"steps"` // runs of the same step
	Keys  []byte     `json:"keys"`  // one after the other
}

type stepJSON struct {
	Step  string   `json:"step"`
	Names []string `json:"actions"`
}

// Encode returns the compressed form of a run.
func Encode(r *Run) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	for _, v := range []any{
		headJSON{format, r.Head},
		restJSON{r.Actions, columns(r.Hits), r.Waits, r.Reads, r.Warnings, r.Memory, r.Critical},
	} {
		if err := enc.Encode(v); err != nil {
			return nil, fmt.Errorf("record of the run: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func columns(hits []Hit) *hitsJSON {
	if len(hits) == 0 {
		return nil
	}
	c := &hitsJSON{Keys: make([]byte, 0, len(hits)*len(cache.Key{}))}
	for _, h := range hits {
		if n := len(c.Steps); n == 0 || c.Steps[n-1].Step != h.Step {
			c.Steps = append(c.Steps, stepJSON{Step: h.Step})
		}
		s := &c.Steps[len(c.Steps)-1]
		s.Names = append(s.Names, h.Name)
		c.Keys = append(c.Keys, h.Key[:]...)
	}
	return c
}

func (c *hitsJSON) hits() (hits []Hit, err error) {
	if c == nil {
		return nil, nil
	}
	keys := c.Keys
	for _, s := range c.Steps {
		for _, name := range s.Names {
			if len(keys) < len(cache.Key{}) {
				return nil, fmt.Errorf("%d hits and fewer keys", len(hits)+1)
			}
			hits = append(hits, Hit{s.Step, name, cache.Key(keys[:len(cache.Key{})])})
			keys = keys[len(cache.Key{}):]
		}
	}
	if len(keys) > 0 {
		return nil, fmt.Errorf("%d hits and more keys", len(hits))
	}
	return hits, nil
}

// Decode reads what Encode wrote. It refuses another format.
func Decode(b []byte) (*Run, error) {
	z, head, err := open(b)
	if err != nil {
		return nil, err
	}
	var rest restJSON
	if err := json.NewDecoder(z).Decode(&rest); err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // where gzip's checksum is
		return nil, err
	}
	hits, err := rest.Hits.hits()
	if err != nil {
		return nil, err
	}
	if err := rest.check(); err != nil {
		return nil, err
	}
	return &Run{head, rest.Actions, hits, rest.Waits, rest.Reads, rest.Warnings, rest.Memory, rest.Critical}, nil
}

// check returns an error if an index is out of range.
func (r *restJSON) check() error {
	for _, a := range r.Actions {
		if a.Follows < 0 || a.Follows > len(r.Actions) {
			return fmt.Errorf("%s follows action %d of %d", &a, a.Follows, len(r.Actions))
		}
	}
	for _, i := range r.Critical {
		if i < 0 || i >= len(r.Actions) {
			return fmt.Errorf("the longest chain has action %d of %d", i, len(r.Actions))
		}
	}
	return nil
}

// DecodeHead reads the head of what Encode wrote, and no more.
func DecodeHead(b []byte) (Head, error) {
	_, head, err := open(b)
	return head, err
}

// open reads the head, and returns a reader of the rest.
func open(b []byte) (io.Reader, Head, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, Head{}, err
	}
	lines := bufio.NewReader(z)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return nil, Head{}, err
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return nil, Head{}, err
	}
	if version.Format != format {
		return nil, Head{}, fmt.Errorf("the record has format %d, and this version reads %d", version.Format, format)
	}
	var head headJSON
	err = json.Unmarshal(line, &head)
	return lines, head.Head, err
}
