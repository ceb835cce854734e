package view

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

const (
	longText  = 60 // bytes of a text that are shown unless all are asked for
	longArray = 6  // elements
)

// shorten cuts a text that is long.
func shorten(s string, all bool) string {
	if !all && len(s) > longText {
		return strings.ToValidUTF8(s[:longText], "") + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

// valueText returns a value of metadata: texts in quotes, long arrays shortened.
func valueText(v any, all bool) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(shorten(s, all))
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		return fmt.Sprint(v)
	}
	n := list.Len()
	if !all {
		n = min(n, longArray)
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = valueText(list.Index(i).Interface(), all)
	}
	more := ""
	if n < list.Len() {
		more = fmt.Sprintf(", … (%d)", list.Len())
	}
	return "[" + strings.Join(texts, ", ") + more + "]"
}

// valueJSON returns a value of metadata as JSON can hold it: an array that is long as
// its length and its first elements; a number that is none as text.
func valueJSON(v any, all bool) any {
	list := reflect.ValueOf(v)
	switch list.Kind() {
	case reflect.Float32, reflect.Float64:
		if f := list.Float(); f-f != 0 {
			return fmt.Sprint(f)
		}
		return v
	case reflect.Slice:
	default:
		return v
	}
	n := list.Len()
	if !all {
		n = min(n, longArray)
	}
	items := make([]any, n)
	for i := range items {
		items[i] = valueJSON(list.Index(i).Interface(), all)
	}
	if n == list.Len() {
		return items
	}
	return struct {
		Length int   `json:"length"`
		First  []any `json:"first"`
	}{list.Len(), items}
}
