package compiled

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"bonsai/cache"
)

// A Read is one thing outside bonsai that a build depends on.
type Read struct {
	Kind Kind
	Name string // path, or variable of the environment
	Saw  string // what was there: compared as a whole, not for people
}

// A Kind is what was looked at, and so what counts as a change.
type Kind uint8

// The kinds of things that are read. Each may be missing.
const (
	File     Kind = iota // the bytes of a file
	Presence             // whether there is something; of a file, its bytes too
	Folder               // the names in a folder
	Recipes              // the names of recipes in a folder
	Env                  // a variable of the environment
)

// look returns what is there now.
func (r *Read) look(store *cache.Dir, lookupEnv func(string) (string, bool)) string {
	switch r.Kind {
	case Env:
		return Variable(lookupEnv(r.Name))
	case Folder, Recipes:
		return names(r.Name, r.Kind == Recipes)
	default:
		saw, _ := file(store, r.Name)
		return saw
	}
}

// Variable returns what a Read of kind Env saw.
func Variable(value string, set bool) string {
	if !set {
		return ""
	}
	return "=" + value
}

// unknown is what is at a path that cannot be looked at.
const unknown = "unknown"

// file returns what is at a path, and its mark if it is a file.
func file(store *cache.Dir, path string) (saw string, m cache.Mark) {
	m, err := store.MarkOf(path)
	if err == nil {
		b, _ := m.AppendBinary(make([]byte, 0, cache.MarkSize))
		return string(b), m
	}
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "absent", m
	case err != nil:
		return unknown, m
	default:
		return fi.Mode().Type().String(), m
	}
}

// names returns the names in a folder, or why there are none.
func names(path string, recipesOnly bool) string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return "error " + err.Error()
	}
	var b strings.Builder
	for _, e := range entries {
		if !recipesOnly || strings.HasSuffix(e.Name(), ".hcl") || strings.HasSuffix(e.Name(), ".hcl.json") {
			b.WriteString(e.Name())
			b.WriteString("\x00" + e.Type().String() + "\x00")
		}
	}
	return b.String()
}

// See returns the read of a file, a folder or its recipes, with what is there now.
func See(store *cache.Dir, kind Kind, path string) Read {
	r := Read{Kind: kind, Name: path}
	r.Saw = r.look(store, nil)
	return r
}

// observe returns each read once. It answers false if a file is so new that the build may
// have seen another one, or if what a read saw is not there any more.
func observe(store *cache.Dir, reads []Read, began time.Time) (list []Read, ok bool) {
	type place struct {
		kind Kind
		name string
	}
	seen := make(map[place]string, len(reads))
	for _, r := range reads {
		at := place{r.Kind, r.Name}
		if saw, twice := seen[at]; twice {
			if saw != r.Saw {
				return nil, false
			}
			continue
		}
		seen[at] = r.Saw
		list = append(list, r)
	}
	ok = each(len(list), func(i int) bool { return list[i].isSettled(store, began) })
	return list, ok
}

// isSettled reports whether what was read is there still, and was so before the build
// began.
func (r *Read) isSettled(store *cache.Dir, began time.Time) bool {
	switch r.Kind {
	case Env:
		return true
	case Folder, Recipes:
		return r.look(store, nil) == r.Saw
	default:
		now, m := file(store, r.Name)
		return now == r.Saw && now != unknown && (m == (cache.Mark{}) || m.IsOld(began))
	}
}
