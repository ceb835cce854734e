package cache

import (
	"strconv"
	"strings"
)

// newHistory returns the journal of the last key of each action.
func newHistory(d *Dir, path string) *journal[string, Key] {
	return &journal[string, Key]{
		d:      d,
		path:   path,
		encode: func(id string, k Key) string { return strconv.Quote(id) + " " + k.String() },
		decode: parseLast,
	}
}

func parseLast(text string) (id string, k Key, ok bool) {
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", Key{}, false
	}
	id, err = strconv.Unquote(quoted)
	if err != nil {
		return "", Key{}, false
	}
	k, err = ParseKey(strings.TrimPrefix(text[len(quoted):], " "))
	return id, k, err == nil
}

// Last returns the key that SetLast gave to id, in this process or another.
func (d *Dir) Last(id string) (Key, bool) {
	return d.history.get(id, func(Key, bool) bool { return false })
}

// SetLast remembers k as the last key of id. It writes nothing if it is that already.
func (d *Dir) SetLast(id string, k Key) error {
	if d.frozen {
		return d.writeError(ErrReadOnly)
	}
	if old, ok := d.Last(id); ok && old == k {
		return nil
	}
	return d.writeError(d.history.set(id, k, true))
}

// Recent returns the last key of all ids that the store's history knows.
func (d *Dir) Recent() map[string]Key { return d.history.all() }
