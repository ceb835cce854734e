package cache

import (
	"strconv"
	"strings"
)

// history remembers the last key of each action.
type history struct {
	journal
	last map[string]Key
}

func newHistory(path string) *history {
	h := &history{last: make(map[string]Key)}
	h.path = path
	h.take = h.learn
	return h
}

// learn takes a line of the journal: the quoted id, a space, the key.
func (h *history) learn(text string) {
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return
	}
	id, err := strconv.Unquote(quoted)
	if err != nil {
		return
	}
	if k, err := ParseKey(strings.TrimPrefix(text[len(quoted):], " ")); err == nil {
		h.last[id] = k
	}
}

// Last returns the key that SetLast gave to id, in this process or another.
func (d *Dir) Last(id string) (Key, bool) {
	h := d.history
	h.mu.Lock()
	defer h.mu.Unlock()
	// A history that cannot be read is an empty one: it explains, and decides nothing.
	_ = h.refresh()
	k, ok := h.last[id]
	return k, ok
}

// SetLast remembers k as the last key of id. It writes nothing if it is that already.
func (d *Dir) SetLast(id string, k Key) error {
	if d.frozen {
		return d.writeError(ErrReadOnly)
	}
	h := d.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refresh(); err != nil {
		return d.writeError(err)
	}
	if old, ok := h.last[id]; ok && old == k {
		return nil
	}
	if err := h.append(strconv.Quote(id) + " " + k.String()); err != nil {
		return d.writeError(err)
	}
	h.last[id] = k
	return nil
}
