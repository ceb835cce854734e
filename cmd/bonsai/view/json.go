package view

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

//go:embed schemas/*.json
var schemas embed.FS

// Schemas returns the names that WriteFormSchema takes.
func Schemas() []string { return []string{"events", "plan"} }

// WriteFormSchema writes the JSON Schema, draft 2020-12, of what is written as JSON: of a
// plan, or of the events of a build.
func WriteFormSchema(w io.Writer, name string) error {
	text, err := schemas.ReadFile("schemas/" + name + ".json")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// headed marshals a struct with the version and the type in front of its fields.
type headed struct {
	kind   string
	fields any
}

// MarshalJSON implements json.Marshaler.
func (h headed) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h.fields); err != nil {
		return nil, err
	}
	rest := bytes.TrimPrefix(bytes.TrimSpace(buf.Bytes()), []byte("{"))
	head := fmt.Appendf(nil, `{"version":%d,"type":%q`, FormatVersion, h.kind)
	if !bytes.Equal(rest, []byte("}")) {
		head = append(head, ',')
	}
	return append(head, rest...), nil
}

// An action names an action in JSON.
type action struct {
	Step   string     `json:"step"`
	Action string     `json:"action,omitempty"`
	Key    *cache.Key `json:"key,omitempty"`
}

func actionOf(step, name string, k cache.Key) action {
	a := action{Step: step, Action: name}
	if k != (cache.Key{}) {
		a.Key = &k
	}
	return a
}

// eventJSON returns the JSON form of an event.
func eventJSON(e engine.Event) headed {
	switch e := e.(type) {
	case engine.Planned:
		return headed{"planned", struct {
			Actions int `json:"actions"`
			Sources int `json:"sources"`
		}{e.Actions, e.Sources}}
	case engine.Hashing:
		return headed{"hashing", struct {
			Path string `json:"path"`
			Size int64  `json:"size"`
			Done bool   `json:"done"`
		}{e.Path, e.Size, e.Done}}
	case engine.Started:
		return headed{"started", struct {
			action
			Reasons  []string  `json:"reasons"`
			Estimate float64   `json:"estimate_s"`
			Pool     string    `json:"pool,omitempty"`
			Try      int       `json:"try,omitempty"`
			Time     time.Time `json:"time"`
		}{actionOf(e.Step, e.Name, e.Key), reasonTexts(e.Reasons), e.Estimate, e.Pool, e.Try, e.Time}}
	case engine.Progress:
		return headed{"progress", struct {
			action
			Done float64 `json:"done"`
			Note string  `json:"note"`
		}{actionOf(e.Step, e.Name, e.Key), e.Done, e.Note}}
	case engine.Waiting:
		return headed{"waiting", struct {
			action
			Holder string    `json:"holder"`
			Time   time.Time `json:"time"`
		}{actionOf(e.Step, e.Name, e.Key), e.Holder, e.Time}}
	case engine.Finished:
		return finishedJSON(e)
	case engine.Failed:
		return problemJSON("failed", e.Step, e.Name, e.Key, e.Err, e.Time, 0)
	case engine.Retried:
		return problemJSON("retried", e.Step, e.Name, e.Key, e.Err, e.Time, e.Wait)
	case engine.Skipped:
		return headed{"skipped", struct {
			action
			Because string `json:"because,omitempty"`
		}{actionOf(e.Step, e.Name, e.Key), e.Because}}
	case engine.Warned:
		return problemJSON("warned", e.Step, e.Name, e.Key, e.Err, time.Time{}, 0)
	default:
		return headed{fmt.Sprintf("%T", e), struct{}{}}
	}
}

func finishedJSON(e engine.Finished) headed {
	return headed{"finished", struct {
		action
		Hit      bool           `json:"hit"`
		Note     string         `json:"note,omitempty"`
		Outputs  []cache.Output `json:"outputs"`
		Duration float64        `json:"duration_s"`
		Backend  string         `json:"backend,omitempty"`
		Time     time.Time      `json:"time"`
	}{actionOf(e.Step, e.Name, e.Key), e.Hit, e.Result.Note, e.Result.Outputs, e.Result.Duration.Seconds(), e.Result.Backend, e.Time}}
}

// problemJSON returns the JSON form of what went wrong with an action, and after which wait
// it is tried again.
func problemJSON(kind, step, name string, k cache.Key, err error, at time.Time, wait time.Duration) headed {
	return headed{kind, struct {
		action
		Error string    `json:"error"`
		Hint  string    `json:"hint,omitempty"`
		Wait  float64   `json:"wait_s,omitempty"`
		Time  time.Time `json:"time,omitzero"`
	}{actionOf(step, name, k), err.Error(), hint(err), wait.Seconds(), at}}
}

func reasonTexts(reasons []engine.Reason) []string {
	texts := []string{}
	for _, r := range reasons {
		texts = append(texts, r.String())
	}
	return texts
}
