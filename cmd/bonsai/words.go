package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agext/levenshtein"
)

// A usageError is a mistake on the command line.
type usageError struct{ text string }

// Error implements error.
func (e *usageError) Error() string { return e.text }

func misused(format string, args ...any) *usageError {
	return &usageError{fmt.Sprintf(format, args...)}
}

// words are the key=value arguments of one command, checked against its keys.
type words struct {
	values map[string]string
	bare   []string // the bare words of a command that takes some
	given  []string // all arguments, as they were given
	help   bool     // asked for by -h or --help
	err    error    // the first value that is wrong
}

// keysOf joins lists of keys, sorted.
func keysOf(lists ...[]string) []string {
	keys := slices.Concat(lists...)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// commandNamed returns a command, or an error with the one that was probably meant.
func commandNamed(name string) (command, error) {
	switch name {
	case "-h", "--help", "-help":
		name = "help"
	case "--version", "-version", "-v":
		name = "version"
	}
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	if key, _, ok := strings.Cut(name, "="); ok {
		return command{}, misused("%s= stands before the command: a command comes first, as in bonsai build %s", key, name)
	}
	return command{}, misused("unknown command %q%s", name, didYouMean(name, names))
}

// verbsOf returns the verbs of a command that is nothing by itself, as cache; else none.
func verbsOf(c command) []command {
	if c.name == "cache" {
		return cacheVerbs()
	}
	return nil
}

// verbOf returns the verb of a command that args begin with, and the arguments after it.
// A command without verbs is its own. So is one that is asked for without a verb: its
// page tells of them.
func verbOf(c command, args []string) (command, []string, error) {
	verbs := verbsOf(c)
	if verbs == nil || len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return c, args, nil
	}
	var names []string
	for _, v := range verbs {
		name := strings.TrimPrefix(v.name, c.name+" ")
		if args[0] == name {
			return v, args[1:], nil
		}
		names = append(names, name)
	}
	if !isBare(args[0]) {
		return c, nil, misused("bonsai %s what? A verb comes first: %s", c.name, strings.Join(names, ", "))
	}
	return c, nil, misused("bonsai %s has no verb %q%s", c.name, args[0], didYouMean(args[0], names))
}

// parseWords reads the arguments after the command.
func parseWords(c command, args []string) (*words, error) {
	w := &words{values: map[string]string{}, given: args}
	for _, arg := range args {
		switch {
		case arg == "-h" || arg == "--help" || arg == "-help":
			w.help = true
			continue
		case len(w.bare) < c.bare && isBare(arg):
			w.bare = append(w.bare, arg)
			continue
		}
		if err := w.add(c, arg); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// isBare reports whether an argument is a bare word: no key=value word and no flag. A
// path may hold a =.
func isBare(arg string) bool {
	key, _, pair := strings.Cut(arg, "=")
	return arg == "-" || !strings.HasPrefix(arg, "-") && (!pair || strings.ContainsAny(key, `/\`))
}

// word returns a bare word by its place, "" if there are fewer.
func (w *words) word(i int) string {
	if i >= len(w.bare) {
		return ""
	}
	return w.bare[i]
}

// add takes one key=value word.
func (w *words) add(c command, arg string) error {
	key, value, ok := strings.Cut(arg, "=")
	bare := strings.TrimLeft(key, "-")
	switch {
	case !ok && slices.Contains(c.keys, bare):
		return misused("%s needs a value: %s=…", arg, bare)
	case !ok:
		return misused("%q is not a key=value word%s", arg, didYouMean(bare, c.keys))
	case !accepts(c.keys, key):
		return misused("unknown key %q for bonsai %s%s", key, c.name, didYouMean(bare, c.keys))
	}
	if _, twice := w.values[key]; twice {
		return misused("%s= is given twice", key)
	}
	w.values[key] = value
	return nil
}

func accepts(keys []string, key string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		return k == key || strings.HasSuffix(k, ".") && strings.HasPrefix(key, k) && len(key) > len(k)
	})
}

// didYouMean returns the clause that proposes the nearest of the known names, or all of
// them if none is near.
func didYouMean(name string, known []string) string {
	const most = 30
	if len(known) == 0 {
		return ""
	}
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	more := ""
	if n := len(known) - most; n > 0 {
		known, more = known[:most], fmt.Sprintf(" and %d more", n)
	}
	return "; known are " + strings.Join(known, ", ") + more
}

// nearest returns the known name with the fewest edits from name, or "" if even that has
// more than a third of its letters wrong.
func nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if n := len(k) - len(name); max(n, -n) > least {
			continue
		}
		if d := levenshtein.Distance(name, strings.TrimSuffix(k, "."), nil); d < least && d < len(name) {
			best, least = k, d
		}
	}
	return best
}

// fail keeps the first wrong value.
func (w *words) fail(format string, args ...any) {
	if w.err == nil {
		w.err = misused(format, args...)
	}
}

// text returns the value of a key, or fallback if it is not given.
func (w *words) text(key, fallback string) string {
	v, ok := w.values[key]
	if !ok {
		return fallback
	}
	if v == "" {
		w.fail("%s= needs a value", key)
	}
	return v
}

// list returns the values of a key, separated by commas.
func (w *words) list(key string) []string {
	v := w.text(key, "")
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// names returns the names that are the value of a key, separated by commas. A comma
// between quotes belongs to a name, as in made["a,b"].
func (w *words) names(key string) (names []string) {
	quoted, from := false, 0
	v := w.text(key, "")
	for i := 0; i < len(v); i++ {
		switch {
		case quoted && v[i] == '\\':
			i++
		case v[i] == '"':
			quoted = !quoted
		case v[i] == ',' && !quoted:
			names, from = append(names, v[from:i]), i+1
		}
	}
	if v != "" {
		names = append(names, v[from:])
	}
	if slices.Contains(names, "") {
		w.fail("%s=%s: there is a comma too many", key, v)
	}
	return names
}

// flag returns whether a key is true.
func (w *words) flag(key string) bool {
	return w.choice(key, "false", "true") == "true"
}

// choice returns the value of a key that has only some values, the first by default.
func (w *words) choice(key string, values ...string) string {
	v := w.text(key, values[0])
	if !slices.Contains(values, v) {
		w.fail("%s=%s: %s is one of %s", key, v, key, strings.Join(values, ", "))
	}
	return v
}

// count returns the value of a key that is a whole number from least on.
func (w *words) count(key string, fallback, least int) int {
	v := w.text(key, strconv.Itoa(fallback))
	n, err := strconv.Atoi(v)
	if err != nil || n < least {
		w.fail("%s=%s: %s is a whole number from %d on", key, v, key, least)
	}
	return n
}

// bytes returns the value of a key that is a number of bytes, such as 16GiB; 0 if it is
// not given.
func (w *words) bytes(key string) int64 {
	v, given := w.values[key]
	if !given {
		return 0
	}
	n, ok := parseBytes(v)
	if !ok {
		w.fail("%s=%s: %s is a size such as 16GiB or 800MB", key, v, key)
	}
	return n
}

// duration returns the value of a key that is a time such as 12h or 30d; 0 if it is not
// given.
func (w *words) duration(key string) time.Duration {
	v, given := w.values[key]
	if !given {
		return 0
	}
	d, ok := parseAge(v)
	if !ok {
		w.fail("%s=%s: %s is a time such as 30d, 2w or 12h", key, v, key)
	}
	return d
}

// parseBytes reads a size above 0 with one of the units of SI or IEC.
func parseBytes(text string) (int64, bool) {
	units := map[string]float64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
	}
	digits := strings.TrimRight(strings.ToUpper(text), "BIKMGT")
	unit, ok := units[strings.ToUpper(text)[len(digits):]]
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !ok || !(n*unit >= 1) || n*unit > 1<<62 {
		return 0, false
	}
	return int64(n * unit), true
}

// prefixed returns what is given for keys that begin with prefix, without it.
func (w *words) prefixed(prefix string) map[string]string {
	found := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(w.values)) {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			found[name] = w.values[key]
		}
	}
	return found
}
