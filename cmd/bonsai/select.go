package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"bonsai/engine"
	"bonsai/recipes"
)

// selectKeys are the keys of commands that look at some steps of a recipe.
var selectKeys = []string{"except", "from", "target", "until"}

// A selection says which steps of a recipe are asked for. Each name is that of a target
// or a step, or a pattern in which * stands for any text and ? for one character.
type selection struct {
	targets []string
	except  []string // without these steps, and without what needs them
	from    []string // only what depends on these
	until   []string // these, and nothing that comes after
}

func readSelection(w *words) selection {
	return selection{
		targets: w.names("target"), except: w.names("except"), from: w.names("from"), until: w.names("until"),
	}
}

// selected returns what a selection asks for. A target of which only some steps are asked
// for is returned with those alone. Until makes targets of its own, which place nothing.
func (r *loaded) selected(s selection) ([]*recipes.Target, error) {
	targets, err := r.targets(s.targets)
	if err != nil {
		return nil, err
	}
	if len(s.until) > 0 {
		if targets, err = r.until(targets, s.until); err != nil {
			return nil, err
		}
	}
	if len(s.from) > 0 {
		if targets, err = r.filter(targets, "from", s.from, "depends on it", true); err != nil {
			return nil, err
		}
	}
	if len(s.except) > 0 {
		return r.filter(targets, "except", s.except, "is left", false)
	}
	return targets, nil
}

// targets returns the targets that are asked for. Without a name it is an error that
// lists them.
func (r *loaded) targets(names []string) (targets []*recipes.Target, err error) {
	if len(names) == 0 {
		return nil, misused("%s", r.listTargets())
	}
	for _, name := range names {
		found := r.named(name)
		if len(found) == 0 {
			return nil, r.unknown("target", name, true)
		}
		targets = append(targets, found...)
	}
	return targets, nil
}

// named returns the targets that a name or a pattern means, the declared ones first.
func (r *loaded) named(name string) (found []*recipes.Target) {
	if t, ok := r.Targets[name]; ok {
		return []*recipes.Target{t}
	}
	p := pattern(name)
	for _, other := range slices.Sorted(maps.Keys(r.Targets)) {
		if t := r.Targets[other]; t.Declared && p.MatchString(other) {
			found = append(found, t)
		}
	}
	for _, s := range r.Steps {
		if t := r.Targets[s.Address]; t != nil && !t.Declared && p.MatchString(s.Address) {
			found = append(found, t)
		}
	}
	return found
}

// pattern returns the expression for a name in which * and ? stand for others. The name
// of a block with for_each means all its instances.
func pattern(name string) *regexp.Regexp {
	text := regexp.QuoteMeta(name)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\*`, `.*`), `\?`, `.`)
	return regexp.MustCompile(`(?s)^(?:` + text + `)(?:\[".*"\])?$`)
}

// stepsNamed returns the artifacts of the steps that names mean.
func (r *loaded) stepsNamed(key string, names []string) (some []*engine.Artifact, steps []*recipes.Step, err error) {
	for _, name := range names {
		n := len(steps)
		for _, t := range r.named(name) {
			steps = append(steps, t.Steps...)
		}
		if len(steps) == n {
			return nil, nil, r.unknown(key, name, false)
		}
	}
	for _, s := range steps {
		some = append(some, s.Artifacts()...)
	}
	return some, steps, nil
}

// until returns targets of the steps with these names that targets need.
func (r *loaded) until(targets []*recipes.Target, names []string) (found []*recipes.Target, err error) {
	behind := r.Graph.Behind(artifacts(targets))
	for _, name := range names {
		_, steps, err := r.stepsNamed("until", []string{name})
		if err != nil {
			return nil, err
		}
		n := len(found)
		for _, s := range steps {
			if touches(s, behind) {
				t, err := r.Target(s.Address)
				if err != nil {
					return nil, err
				}
				found = append(found, t)
			}
		}
		if len(found) == n {
			return nil, misused("until=%s: %s does not need it", name, targetNames(targets))
		}
	}
	return found, nil
}

// filter returns targets with the steps that depend on those with these names, or, if
// dependent is false, with those that do not. None is an error that what completes.
func (r *loaded) filter(
	targets []*recipes.Target, key string, names []string, what string, dependent bool,
) (kept []*recipes.Target, err error) {
	some, _, err := r.stepsNamed(key, names)
	if err != nil {
		return nil, err
	}
	after := r.Graph.After(some)
	for _, t := range targets {
		part := *t
		part.Steps = nil
		for _, s := range t.Steps {
			if touches(s, after) == dependent {
				part.Steps = append(part.Steps, s)
			}
		}
		if len(part.Steps) > 0 {
			kept = append(kept, &part)
		}
	}
	if len(kept) == 0 {
		return nil, misused("%s=%s: nothing of %s %s", key, strings.Join(names, ","), targetNames(targets), what)
	}
	return kept, nil
}

// touches reports whether an artifact of a step is in a set.
func touches(s *recipes.Step, set engine.Set) bool {
	return slices.ContainsFunc(s.Artifacts(), set.Has)
}

// targetNames returns how targets are called.
func targetNames(targets []*recipes.Target) string {
	const most = 3
	var names []string
	for _, t := range targets[:min(len(targets), most)] {
		names = append(names, t.Name)
	}
	text := strings.Join(names, ", ")
	if n := len(targets) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// unknown is the error of a name that means nothing, with the nearest that means
// something.
func (r *loaded) unknown(key, name string, targets bool) error {
	known := r.names(targets)
	what := map[bool]string{true: "no target", false: "no step"}[targets]
	if root, rest, dotted := strings.Cut(name, "."); dotted && strings.ContainsAny(name, "*?") {
		return misused("%s=%s: %s matches%s", key, name, what, r.nearPattern(root, rest, known))
	}
	if targets {
		return misused("%s %q%s", what, name, didYouMean(name, known))
	}
	return misused("%s=%s: %s has this name%s", key, name, what, didYouMean(name, known))
}

// nearPattern proposes a pattern that does match, with another block type before the dot.
func (r *loaded) nearPattern(root, rest string, known []string) string {
	roots := map[string]bool{}
	for _, s := range r.Steps {
		of, _, _ := strings.Cut(s.Address, ".")
		roots[of] = true
	}
	if other := nearest(root, slices.Sorted(maps.Keys(roots))); other != "" && len(r.named(other+"."+rest)) > 0 {
		return fmt.Sprintf("; did you mean %q?", other+"."+rest)
	}
	return didYouMean(root+"."+strings.Trim(rest, "*?"), known)
}

// names returns the names of steps and, if asked for, those of declared targets before
// them.
func (r *loaded) names(targets bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		if targets && r.Targets[name].Declared {
			names = append(names, name)
		}
	}
	for _, s := range r.Steps {
		names = append(names, s.Address)
	}
	return names
}

// listTargets says which targets there are.
func (r *loaded) listTargets() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		if t := r.Targets[name]; t.Declared {
			fmt.Fprintf(&b, "\n  target=%-16s %s", name, t.Description)
		}
	}
	switch {
	case b.Len() > 0:
		return "which target? This recipe declares" + b.String()
	case len(r.Steps) == 0:
		return "nothing to make: this recipe has no steps and declares no target"
	default:
		return "which target? This recipe declares none; each step is one, such as target=" + r.Steps[len(r.Steps)-1].Address
	}
}

// artifacts returns what targets build, each once.
func artifacts(targets []*recipes.Target) (want []*engine.Artifact) {
	seen := map[*engine.Artifact]bool{}
	for _, t := range targets {
		for _, a := range t.Artifacts() {
			if !seen[a] {
				seen[a] = true
				want = append(want, a)
			}
		}
	}
	return want
}
