package view

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"bonsai/engine"
	"bonsai/engine/record"
	"bonsai/ops/compare"
)

// DiffOptions say how a comparison is shown.
type DiffOptions struct {
	Style
	JSON bool
	All  bool // each action, tensor or value by itself, those that are equal too
}

// A Diff says how two things differ.
type Diff struct {
	Kind    string          `json:"kind"` // run, recipe or artifact
	Old     string          `json:"old"`
	New     string          `json:"new"`
	Same    bool            `json:"same"`
	Runs    []record.Head   `json:"runs,omitempty"`
	Actions []ActionDiff    `json:"actions,omitempty"` // that are not the same
	Equal   int             `json:"equal_actions"`
	Files   *compare.Report `json:"files,omitempty"`
}

// An ActionDiff is an action that two runs or recipes do not have in common.
type ActionDiff struct {
	Step    string          `json:"step"`
	Name    string          `json:"action,omitempty"`
	Status  compare.Status  `json:"status"`
	Reasons []record.Reason `json:"reasons,omitempty"`
	Old     float64         `json:"old_s,omitempty"` // seconds that it ran; 0: it did not
	New     float64         `json:"new_s,omitempty"`
}

// WriteDiff writes how two things differ.
func WriteDiff(w io.Writer, d Diff, opt DiffOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"diff", d})
	}
	var b strings.Builder
	if d.Runs != nil {
		writeRunsDiff(&b, d.Runs[0], d.Runs[1], opt)
	}
	if d.Files != nil {
		writeFilesDiff(&b, d.Files, opt)
	} else {
		writeActionsDiff(&b, d, opt)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRunsDiff writes what differs of two runs as a whole.
func writeRunsDiff(b *strings.Builder, x, y record.Head, opt DiffOptions) {
	fmt.Fprintf(b, "%s → %s\n", opt.palette().strong.Render("run "+record.Short(x.ID)), opt.palette().strong.Render(record.Short(y.ID)))
	row := func(name, was, is string) {
		if was != is {
			b.WriteString(clip(printable(fmt.Sprintf("  %-8s %s → %s", name, was, is)), opt.Width) + "\n")
		}
	}
	words := func(h record.Head) string { return strings.Join(append([]string{h.Command}, h.Words...), " ") }
	row("words", words(x), words(y))
	row("recipe", x.Recipe, y.Recipe)
	row("bonsai", x.Version, y.Version)
	row("backend", x.Backend, y.Backend)
	row("outcome", outcomeWord(x.Outcome), outcomeWord(y.Outcome))
	row("took", duration(x.Took()), duration(y.Took()))
	row("ran", fmt.Sprint(x.Ran), fmt.Sprint(y.Ran))
	row("hits", fmt.Sprint(x.Hits), fmt.Sprint(y.Hits))
}

// mark returns the sign of a status, in its colour.
func mark(p palette, s compare.Status) string {
	switch s {
	case compare.Added:
		return p.good.Render("+")
	case compare.Removed:
		return p.bad.Render("-")
	case compare.Differs:
		return p.warm.Render("~")
	default:
		return p.faint.Render("=")
	}
}

// writeActionsDiff writes the actions that differ, those of a step for the same reasons
// together, and those that only have other inputs last.
func writeActionsDiff(b *strings.Builder, d Diff, opt DiffOptions) {
	var groups [][]ActionDiff
	followers := 0
	for _, a := range d.Actions {
		if !opt.All && d.Runs != nil && a.onlyFollows() {
			followers++
			continue
		}
		i := slices.IndexFunc(groups, func(g []ActionDiff) bool {
			return !opt.All && g[0].Step == a.Step && g[0].Status == a.Status && becauseText(g[0].Reasons) == becauseText(a.Reasons)
		})
		if i < 0 {
			groups = append(groups, []ActionDiff{a})
			continue
		}
		groups[i] = append(groups[i], a)
	}
	for _, g := range groups {
		b.WriteString(actionsLine(g, opt))
	}
	if followers > 0 {
		fmt.Fprintf(b, "%s more with other inputs alone\n", count(followers, "action"))
	}
	verb := "are"
	if d.Equal == 1 {
		verb = "is"
	}
	fmt.Fprintf(b, "%s %s the same\n", count(d.Equal, "action"), verb)
}

// onlyFollows reports whether only inputs differ: what is the reason for that is another
// line.
func (a *ActionDiff) onlyFollows() bool {
	kinds := record.ReasonKinds()
	return len(a.Reasons) > 0 && !slices.ContainsFunc(a.Reasons, func(r record.Reason) bool { return r.Kind != kinds[engine.Input] })
}

func actionsLine(g []ActionDiff, opt DiffOptions) string {
	names := &group{}
	var was, is float64
	for _, a := range g {
		names.entries = append(names.entries, &engine.Entry{Step: a.Step, Name: a.Name})
		was += a.Old
		is += a.New
	}
	line := printable(names.name())
	if len(g) > 1 {
		line += fmt.Sprintf(": %d actions", len(g))
	}
	if was > 0 && is > 0 {
		line += fmt.Sprintf(", %s → %s", seconds(was), seconds(is))
	}
	list := g[0].Reasons
	if !opt.All {
		list = list[:min(len(list), 2*mostReasons)]
	}
	for _, r := range list {
		line += "\n    " + printable(r.Text)
		if was, is := inputName(r.Old), inputName(r.New); was != "" && is != "" {
			line += ": " + was + " → " + is
		} else if r.Kind == record.ReasonKinds()[engine.Input] && r.Old != "" {
			line += printable(": " + strings.TrimPrefix(r.Old, "name ") + " → " + strings.TrimPrefix(r.New, "name "))
		}
	}
	if n := len(g[0].Reasons) - len(list); n > 0 {
		line += fmt.Sprintf("\n    %d more", n)
	}
	return mark(opt.palette(), g[0].Status) + " " + line + "\n"
}

// writeFilesDiff writes how two files differ.
func writeFilesDiff(b *strings.Builder, r *compare.Report, opt DiffOptions) {
	switch r.Format {
	case compare.Bytes:
		writeBytesDiff(b, r)
		return
	case compare.JSON:
		writeValues(b, r.Values, opt)
	default:
		writeValues(b, r.Metadata, opt)
		writeTensorsDiff(b, r.Tensors, opt)
	}
	if r.Same {
		b.WriteString("no difference\n")
	}
}

func writeBytesDiff(b *strings.Builder, r *compare.Report) {
	switch {
	case r.Same:
		fmt.Fprintf(b, "no difference: %s\n", Bytes(r.Sizes[0]))
	default:
		fmt.Fprintf(b, "%d bytes → %d bytes; the first difference is at byte %d\n", r.Sizes[0], r.Sizes[1], r.First)
	}
}

// writeValues writes values, a line each, with how much a number changed.
func writeValues(b *strings.Builder, values []compare.Value, opt DiffOptions) {
	equal := 0
	for _, v := range values {
		text := v.Old
		switch v.Status {
		case compare.Equal:
			equal++
			if !opt.All {
				continue
			}
		case compare.Added:
			text = v.New
		case compare.Differs:
			text = v.Old + " → " + v.New + growth(v.Old, v.New)
		case compare.Removed:
		}
		line := clip(printable(v.Name+": "+text), max(20, opt.Width-2))
		fmt.Fprintf(b, "%s %s\n", mark(opt.palette(), v.Status), strings.ReplaceAll(line, "\n", " "))
	}
	if equal > 0 && !opt.All {
		fmt.Fprintf(b, "%s equal\n", count(equal, "value"))
	}
}

// growth returns by how much a number changed, "" if it is none.
func growth(old, now string) string {
	var x, y float64
	if n, err := fmt.Sscan(old, &x); n != 1 || err != nil || x == 0 {
		return ""
	}
	if n, err := fmt.Sscan(now, &y); n != 1 || err != nil || math.IsNaN(y/x) || math.IsInf(y/x, 0) {
		return ""
	}
	return fmt.Sprintf(" (%+.3g %%)", (y/x-1)*100)
}

// writeTensorsDiff writes tensors, a line each, and how many codes differ in all.
func writeTensorsDiff(b *strings.Builder, tensors []compare.Tensor, opt DiffOptions) {
	width, equal := 0, 0
	for _, t := range tensors {
		if opt.All || t.Status != compare.Equal {
			width = max(width, len(t.Name))
		}
	}
	width = min(width, 40)
	var weights, other float64
	for _, t := range tensors {
		if t.Status == compare.Equal {
			equal++
			if !opt.All {
				continue
			}
		}
		if t.Ternary != nil {
			weights += float64(t.Ternary.Elements)
			other += t.Ternary.Codes * float64(t.Ternary.Elements)
		}
		line := fmt.Sprintf("%-*s  %s", width, printable(t.Name), tensorText(t))
		fmt.Fprintf(b, "%s %s\n", mark(opt.palette(), t.Status), clip(line, max(20, opt.Width-2)))
	}
	if equal > 0 && !opt.All {
		fmt.Fprintf(b, "%s equal\n", count(equal, "tensor"))
	}
	if weights > 0 {
		fmt.Fprintf(b, "%s of the %.0f codes in ternary tensors that differ are others\n", percent(other/weights), weights)
	}
}

// tensorText says how a tensor differs.
func tensorText(t compare.Tensor) string {
	switch {
	case t.Status == compare.Added:
		return layoutText(t.New)
	case t.Status == compare.Removed || t.Status == compare.Equal && layoutText(t.Old) == layoutText(t.New):
		return layoutText(t.Old)
	}
	layout, text := layoutText(t.Old), ""
	if is := layoutText(t.New); is != layout {
		layout += " → " + is
	}
	switch {
	case t.Ternary != nil:
		zeros, is := percent(t.Ternary.Zeros[0]), percent(t.Ternary.Zeros[1])
		if is != zeros {
			zeros = strings.TrimSuffix(zeros, " %") + " → " + is
		}
		text = fmt.Sprintf("codes %s, scales %s, zeros %s  ", percent(t.Ternary.Codes), relative(t.Ternary.Scales), zeros)
	case t.Float != nil:
		text = fmt.Sprintf("max %.3g, relative %s  ", t.Float.Max, relative(t.Float.Relative))
	case t.Note != "":
		text = printable(t.Note) + "  "
	}
	return text + layout
}

func layoutText(l *compare.Layout) string {
	return printable(l.Type) + " " + strings.ReplaceAll(fmt.Sprint(l.Shape), " ", "×")
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", share*100) }

func relative(x float64) string {
	if x == math.MaxFloat64 {
		return "new" // all was zero before
	}
	return fmt.Sprintf("%.3g", x)
}
