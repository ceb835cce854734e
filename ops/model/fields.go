package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// fields reads the keys of a JSON object and keeps the first error.
type fields struct {
	raw map[string]json.RawMessage
	err error
}

func parseFields(text []byte) (*fields, error) {
	f := &fields{}
	if err := json.Unmarshal(text, &f.raw); err != nil {
		return nil, err
	}
	if f.raw == nil {
		return nil, fmt.Errorf("want a JSON object, got null")
	}
	return f, nil
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// has reports whether key is there and not null.
func (f *fields) has(key string) bool {
	v, ok := f.raw[key]
	return ok && string(v) != "null"
}

// isNull reports whether key is there and null, which for some keys is not the same as absent.
func (f *fields) isNull(key string) bool { return string(f.raw[key]) == "null" }

// value decodes key into a T, or returns absent if it is not there or null.
func value[T any](f *fields, key string, absent T, want string) T {
	if !f.has(key) {
		return absent
	}
	var v T
	if err := json.Unmarshal(f.raw[key], &v); err != nil {
		f.fail("%s is %s, want %s", key, brief(f.raw[key]), want)
		return absent
	}
	return v
}

func (f *fields) whole(key string, absent int) int { return value(f, key, absent, "a whole number") }

func (f *fields) number(key string, absent float64) float64 {
	return value(f, key, absent, "a number")
}

func (f *fields) flag(key string, absent bool) bool { return value(f, key, absent, "true or false") }
func (f *fields) text(key, absent string) string    { return value(f, key, absent, "a string") }
func (f *fields) texts(key string) []string         { return value[[]string](f, key, nil, "a list of strings") }

func (f *fields) object(key string) map[string]json.RawMessage {
	return value[map[string]json.RawMessage](f, key, nil, "an object")
}

// brief shortens a JSON value for a message.
func brief(v json.RawMessage) string {
	const limit = 40
	s := strings.Join(strings.Fields(string(v)), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
