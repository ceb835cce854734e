package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bonsai/cache"
)

// CacheOptions say how the contents of the cache are shown.
type CacheOptions struct {
	Style
	JSON bool
	Now  time.Time
}

// mostDropped is how many dropped artifacts are listed.
const mostDropped = 12

// WriteCollection writes what a gc dropped and what is left.
func WriteCollection(w io.Writer, c cache.Collection, l cache.Limits, opt CacheOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"gc", collectionJSON(c, l.DryRun)})
	}
	p := opt.palette()
	var b strings.Builder
	verb := "dropped"
	if l.DryRun {
		verb = "would drop"
	}
	list := slices.Clone(c.Dropped)
	slices.SortStableFunc(list, func(a, b cache.Dropped) int { return int(max(-1, min(1, b.Size-a.Size))) })
	for i, d := range list {
		if i == mostDropped && len(list) > mostDropped+1 {
			fmt.Fprintf(&b, "  … and %d smaller ones\n", len(list)-i)
			break
		}
		line := fmt.Sprintf("%s %10s  %9s to make  used %-9s ", d.Digest.Short(), Bytes(d.Size), seconds(d.Seconds), since(opt.Now, d.Used))
		what := orUnknown(label(d.Step, d.Action))
		if d.Why == cache.DroppedUnnamed {
			what = "no result names it"
		}
		fmt.Fprintln(&b, strings.TrimRight(clip("  "+line+printable(what), opt.Width), " "))
	}
	fmt.Fprintf(&b, "%s %s, %s, %s to make again", p.strong.Render(verb), count(len(c.Dropped), "artifact"), Bytes(c.Bytes()), seconds(c.Seconds()))
	writeRest(&b, c)
	fmt.Fprintf(&b, "\nthe cache takes %s of %s before\n", Bytes(c.After), Bytes(c.Before))
	if c.Over > 0 {
		fmt.Fprintln(&b, p.warm.Render(overText(c)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// overText says why a gc could not drop as much as it should.
func overText(c cache.Collection) string {
	text := fmt.Sprintf("still %s too many: ", Bytes(c.Over))
	if c.Pinned == 0 && c.InUse == 0 {
		return text + "what is left are results, records and logs"
	}
	return text + fmt.Sprintf("%s pinned, %s in use by builds or just stored", Bytes(c.Pinned), Bytes(c.InUse))
}

func writeRest(b *strings.Builder, c cache.Collection) {
	if c.Trimmed > 0 {
		fmt.Fprintf(b, ", %s", count(c.Trimmed, "old file"))
	}
	if c.Forgotten > 0 {
		fmt.Fprintf(b, ", %s for good", count(c.Forgotten, "result"))
	}
}

func collectionJSON(c cache.Collection, dry bool) any {
	type dropped struct {
		Digest  cache.Digest `json:"digest"`
		Size    int64        `json:"size"`
		Why     string       `json:"why"`
		Used    time.Time    `json:"used"`
		Seconds float64      `json:"seconds"`
		Step    string       `json:"step,omitempty"`
		Action  string       `json:"action,omitempty"`
	}
	list := []dropped{}
	for _, d := range c.Dropped {
		d.Used = d.Used.UTC()
		list = append(list, dropped(d))
	}
	return struct {
		DryRun    bool      `json:"dry_run"`
		Before    int64     `json:"bytes_before"`
		After     int64     `json:"bytes_after"`
		Dropped   []dropped `json:"dropped"`
		Bytes     int64     `json:"dropped_bytes"`
		Seconds   float64   `json:"dropped_seconds"`
		Trimmed   int       `json:"trimmed"`
		Forgotten int       `json:"forgotten"`
		Pinned    int64     `json:"pinned_bytes"`
		InUse     int64     `json:"in_use_bytes"`
		Over      int64     `json:"over_bytes"`
	}{dry, c.Before, c.After, list, c.Bytes(), c.Seconds(), c.Trimmed, c.Forgotten, c.Pinned, c.InUse, c.Over}
}

// CollectionLine says in one line what a gc did, "" if it did nothing.
func CollectionLine(c cache.Collection) string {
	if len(c.Dropped) == 0 && c.Over == 0 {
		return ""
	}
	line := fmt.Sprintf("gc dropped %s (%s, %s to make again); the cache takes %s",
		count(len(c.Dropped), "artifact"), Bytes(c.Bytes()), seconds(c.Seconds()), Bytes(c.After))
	if c.Over > 0 {
		line += ", " + overText(c)
	}
	return line
}

// since says how long before now something was, in a few characters.
func since(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d ago", int(d.Hours()/24))
	}
}

// orUnknown names what was stored before bonsai kept names.
func orUnknown(name string) string {
	if name == "" {
		return "(unknown step)"
	}
	return name
}

// WritePins writes the pins and what each keeps.
func WritePins(w io.Writer, s *cache.Survey, opt CacheOptions) error {
	rows := pinRows(s)
	if opt.JSON {
		return writeJSON(w, headed{"pins", struct {
			Pins []pinRow `json:"pins"`
		}{rows}})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no pins: bonsai cache pin target=NAME keeps what a target's last build made")
		return err
	}
	p := opt.palette()
	var b strings.Builder
	for _, r := range rows {
		line := fmt.Sprintf("%-20s %10s  %-9s ", printable(r.Name), Bytes(r.Bytes), since(opt.Now, r.At))
		line = clip(line+printable(r.Note), opt.Width)
		if r.Missing > 0 {
			line += "\n  " + p.warm.Render(fmt.Sprintf("%s of it not in the cache: build it to have it kept", count(r.Missing, "artifact")))
		}
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A pinRow is a pin with what it keeps.
type pinRow struct {
	cache.Pin
	Bytes   int64 `json:"bytes"`
	Missing int   `json:"missing,omitempty"` // outputs whose blobs are not there
}

func pinRows(s *cache.Survey) []pinRow {
	rows := []pinRow{}
	for _, pin := range s.Pins {
		row := pinRow{Pin: pin}
		for _, b := range s.Blobs {
			if slices.Contains(b.Pins, pin.Name) {
				row.Bytes += b.Size
			}
		}
		found := 0
		for i := range s.Results {
			r := &s.Results[i]
			if !slices.Contains(r.Pins, pin.Name) {
				continue
			}
			found++
			for _, there := range r.There {
				if !there {
					row.Missing++
				}
			}
		}
		row.Missing += len(pin.Keys) - found
		for _, d := range pin.Digests {
			if s.Blobs[d] == nil {
				row.Missing++
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// WriteVerification writes what was hashed and what of it is damaged.
func WriteVerification(w io.Writer, v cache.Verification, opt CacheOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"verification", struct {
			Blobs   int            `json:"blobs"`
			Results int            `json:"results"`
			Pins    int            `json:"pins"`
			Bytes   int64          `json:"bytes"`
			Damaged []cache.Damage `json:"damaged"`
		}{v.Blobs, v.Results, v.Pins, v.Bytes, append([]cache.Damage{}, v.Damaged...)}})
	}
	p := opt.palette()
	var b strings.Builder
	for _, d := range v.Damaged {
		line := d.What + ": " + d.Reason
		if d.Step != "" {
			line += ", of " + label(d.Step, d.Action)
		}
		fmt.Fprintf(&b, "%s%s\n", p.bad.Render("damaged  "), printable(line))
	}
	fmt.Fprintf(&b, "%s, %s and %s hashed, %s: ", count(v.Blobs, "blob"), count(v.Results, "result"), count(v.Pins, "pin"), Bytes(v.Bytes))
	if len(v.Damaged) == 0 {
		b.WriteString(p.good.Render("all whole") + "\n")
	} else {
		b.WriteString(p.bad.Render(fmt.Sprintf("%d damaged", len(v.Damaged))) + ", set aside; the next build makes them again\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteDeleted writes what was deleted.
func WriteDeleted(w io.Writer, what string, freed int64, opt CacheOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"deleted", struct {
			What  string `json:"what"`
			Bytes int64  `json:"bytes"`
		}{what, freed}})
	}
	_, err := fmt.Fprintf(w, "deleted %s, %s\n", what, Bytes(freed))
	return err
}

// WriteBundle writes what a bundle holds that was written to path.
func WriteBundle(w io.Writer, path string, b cache.Bundle, size int64, opt CacheOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"exported", struct {
			Path    string `json:"path"`
			Bytes   int64  `json:"bytes"`
			Blobs   int    `json:"blobs"`
			Results int    `json:"results"`
		}{path, size, len(b.Blobs), len(b.Results)}})
	}
	_, err := fmt.Fprintf(w, "exported %s: %s and %s, %s\n", printable(path), count(len(b.Results), "result"), count(len(b.Blobs), "blob"), Bytes(size))
	return err
}

// WriteUnpacked writes what came of reading a bundle from path.
func WriteUnpacked(w io.Writer, path string, u cache.Unpacked, opt CacheOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"imported", struct {
			Path       string `json:"path"`
			Note       string `json:"note,omitempty"`
			Bytes      int64  `json:"bytes"`
			Blobs      int    `json:"blobs"`
			Results    int    `json:"results"`
			NewBytes   int64  `json:"new_bytes"`
			NewBlobs   int    `json:"new_blobs"`
			NewResults int    `json:"new_results"`
		}{path, u.Note, u.Bytes(), len(u.Blobs), len(u.Results), u.NewBytes, u.NewBlobs, u.NewResults}})
	}
	_, err := fmt.Fprintf(w, "imported %s: %s: %d of %s new, %d of %s, %s\n", printable(path), printable(u.Note),
		u.NewResults, count(len(u.Results), "result"), u.NewBlobs, count(len(u.Blobs), "blob"), Bytes(u.NewBytes))
	return err
}
