package compare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"

	"bonsai/ops/gguf"
)

// largestJSON is the size up to which a file is looked at as JSON, in bytes: it is held
// in memory.
const largestJSON = 64 << 20

// A value is a named value of a file.
type value struct {
	name string
	v    any // comparable by reflect.DeepEqual
}

func metaOf(meta []gguf.KV) (list []value) {
	for _, kv := range meta {
		list = append(list, value{kv.Key, kv.Value})
	}
	return list
}

func textsOf(meta map[string]string) (list []value) {
	for name, text := range meta {
		list = append(list, value{name, text})
	}
	slices.SortFunc(list, func(a, b value) int { return cmp.Compare(a.name, b.name) })
	return list
}

// jsonValues returns the values of a JSON file by their path, such as scores[0].kl; ok is
// false if it is none.
func jsonValues(f File, first byte) (list []value, ok bool) {
	if first != '{' && first != '[' && first != ' ' && first != '\n' || f.Size > largestJSON {
		return nil, false
	}
	text := make([]byte, f.Size)
	if n, err := f.R.ReadAt(text, 0); err != nil && n < len(text) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, false
	}
	flatten("", v, &list)
	return list, true
}

// flatten lists the values in v that hold no others, by their path, in order.
func flatten(path string, v any, list *[]value) {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			inner := name
			if path != "" {
				inner = path + "." + name
			}
			flatten(inner, v[name], list)
		}
		if len(v) == 0 {
			*list = append(*list, value{path, "{}"})
		}
	case []any:
		for i, element := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), element, list)
		}
		if len(v) == 0 {
			*list = append(*list, value{path, "[]"})
		}
	default:
		*list = append(*list, value{path, v})
	}
}

// values compares two lists by name, in the order of the first, and then what was added.
func values(a, b []value) (list []Value) {
	second := make(map[string]any, len(b))
	for _, v := range b {
		second[v.name] = v.v
	}
	for _, v := range a {
		now, ok := second[v.name]
		delete(second, v.name)
		switch {
		case !ok:
			list = append(list, Value{Name: v.name, Status: Removed, Old: text(v.v)})
		case reflect.DeepEqual(v.v, now):
			list = append(list, Value{v.name, Equal, text(v.v), text(now)})
		default:
			was, is := texts(v.v, now)
			list = append(list, Value{v.name, Differs, was, is})
		}
	}
	for _, v := range b {
		if _, left := second[v.name]; left {
			list = append(list, Value{Name: v.name, Status: Added, New: text(v.v)})
		}
	}
	return list
}

func changed(list []Value) []Value {
	return slices.DeleteFunc(list, func(v Value) bool { return v.Status == Equal })
}

// longest is how much of a text is shown, in bytes.
const longest = 200

func text(v any) string {
	if s, ok := v.(string); ok {
		if len(s) > longest {
			return fmt.Sprintf("%q… (%d bytes)", s[:longest], len(s))
		}
		return strconv.Quote(s)
	}
	if list := reflect.ValueOf(v); list.IsValid() && list.Kind() == reflect.Slice && list.Len() > 6 {
		return fmt.Sprintf("%d values", list.Len())
	}
	return fmt.Sprint(v)
}

// texts returns two values that differ so that the difference is seen: of arrays, the
// first element that does.
func texts(a, b any) (was, is string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.IsValid() && y.IsValid() && x.Kind() == reflect.Slice && x.Type() == y.Type() && x.Len() == y.Len() && x.Len() > 6 {
		for i := range x.Len() {
			if e, f := x.Index(i).Interface(), y.Index(i).Interface(); !reflect.DeepEqual(e, f) {
				return fmt.Sprintf("[%d] %s", i, text(e)), fmt.Sprintf("[%d] %s", i, text(f))
			}
		}
	}
	was, is = text(a), text(b)
	if was == is { // the same text of other types
		return fmt.Sprintf("%s (%T)", was, a), fmt.Sprintf("%s (%T)", is, b)
	}
	return was, is
}
