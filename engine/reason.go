package engine

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// A ReasonKind says what kind of Reason it is.
type ReasonKind uint8

// The kinds of reasons, with what Name, Old and New hold.
const (
	NoResult ReasonKind = iota // no build has had a result for this action
	Evicted                    // its bytes, or its result, were dropped; Old is when, such as "2 h ago", or ""
	Setting                    // setting Name changed from Old to New; "" is absent
	Input                      // input Name is another than at the last build: Old and New as in a manifest
	Missing                    // output Name is known and its bytes are gone
	Needed                     // its bytes were dropped, and action Name needs them again
	Follows                    // action Name comes first, and may give other bytes
)

// A Reason is one reason why an action is not a hit.
type Reason struct {
	Kind     ReasonKind
	Name     string
	Old, New string
}

// String returns the reason as users read it, such as "damping: 0.01 → 0.02".
func (r Reason) String() string {
	switch r.Kind {
	case Evicted:
		if r.Old != "" {
			return "dropped by gc " + r.Old
		}
		return "result no longer in the cache"
	case Setting:
		return fmt.Sprintf("%s: %s → %s", r.Name, orNone(r.Old), orNone(r.New))
	case Input:
		return fmt.Sprintf("input %s changed", r.Name)
	case Missing:
		return fmt.Sprintf("output %s missing from the cache", r.Name)
	case Needed:
		return "needed again by " + r.Name
	case Follows:
		return "follows " + r.Name
	default:
		return "no result yet"
	}
}

// ago returns how long ago something was, in the largest unit that it fills: "2 h ago".
func ago(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if n := d / unit.length; n > 0 {
			return fmt.Sprintf("%d %s ago", n, unit.name)
		}
	}
	return "just now"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// inputCount is the name under which a change in the number of inputs is reported.
const inputCount = "inputs"

// Changes compares two manifests, or texts like them: which settings and inputs of the
// second are others than in the first. inputs are the names of the second's inputs as
// users know them.
func Changes(last, now string, inputs []string) []Reason { return differences(last, now, inputs) }

// differences compares the manifest of an action with that of its last build, line
// by line. inputs are the names of its inputs as users know them.
func differences(last, now string, inputs []string) []Reason {
	oldSet, oldIn := splitManifest(last)
	newSet, newIn := splitManifest(now)
	reasons := settingsChanged(oldSet, newSet)
	return append(reasons, inputsChanged(oldIn, newIn, inputs)...)
}

// A setting is a line of an op's text, such as "set Damping 0.01" or "op gptq v1".
type setting struct{ name, value string }

// splitManifest returns the settings in a manifest, and the names of its inputs.
func splitManifest(text string) (settings []setting, inputs []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if in, ok := strings.CutPrefix(line, inputLine); ok {
			_, name, _ := strings.Cut(in, " ")
			inputs = append(inputs, name)
			continue
		}
		name, value, _ := strings.Cut(line, " ")
		if name == "set" {
			name, value, _ = strings.Cut(value, " ")
			name = snake(name)
		}
		settings = append(settings, setting{name, value})
	}
	return settings, inputs
}

// settingsChanged lists what is other in now than in last, in the order of now, and
// then what only last has.
func settingsChanged(last, now []setting) []Reason {
	old := make(map[string]string, len(last))
	for _, s := range last {
		old[s.name] = s.value
	}
	var reasons []Reason
	for _, s := range now {
		if was, ok := old[s.name]; !ok || was != s.value {
			reasons = append(reasons, Reason{Kind: Setting, Name: s.name, Old: was, New: s.value})
		}
		delete(old, s.name)
	}
	for _, s := range last {
		if was, ok := old[s.name]; ok {
			reasons = append(reasons, Reason{Kind: Setting, Name: s.name, Old: was})
		}
	}
	return reasons
}

// inputsChanged compares inputs by place if there are as many as before. If not, it
// lists those that were not there, and, as a setting, how many there are.
func inputsChanged(last, now, names []string) []Reason {
	var reasons []Reason
	same := func(i int) bool { return last[i] == now[i] }
	before := func(i int) string { return last[i] }
	if len(last) != len(now) {
		before = func(int) string { return "" }
		reasons = append(reasons, Reason{
			Kind: Setting, Name: inputCount, Old: fmt.Sprint(len(last)), New: fmt.Sprint(len(now)),
		})
		was := make(map[string]bool, len(last))
		for _, in := range last {
			was[in] = true
		}
		same = func(i int) bool { return was[now[i]] }
	}
	for i := range now {
		if !same(i) {
			reasons = append(reasons, Reason{Kind: Input, Name: names[i], Old: before(i), New: now[i]})
		}
	}
	return reasons
}

// snake returns the name of a field as recipes spell it: max_new_tokens for
// MaxNewTokens.
func snake(field string) string {
	var b strings.Builder
	lower := false
	for _, r := range field {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
