package view

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Request is what a saved plan was asked with: enough to plan it again.
type Request struct {
	Bonsai string            `json:"bonsai"` // version
	Made   time.Time         `json:"made"`
	Folder string            `json:"folder"` // working directory, which words are relative to
	Cache  string            `json:"cache"`  // folder
	Words  []string          `json:"words"`  // arguments of build
	Files  []FileDigest      `json:"files"`  // of the recipe and of its variables
	Places []StepPlace       `json:"places"` // files that targets place, unless out= says where
	Inputs map[string]string `json:"-"`      // of each action: digest of all that is known of it before anything runs
}

// A FileDigest names the bytes of a file of a recipe.
type FileDigest struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// A StepPlace is where the file of a step is placed.
type StepPlace struct {
	Step string `json:"step"`
	Path string `json:"path"`
}

// A SavedPlan is a plan that was read from a file.
type SavedPlan struct {
	Version int          `json:"version"`
	Type    string       `json:"type"`
	Request *Request     `json:"request"`
	Sources []sourceJSON `json:"sources"`
	Entries []entryJSON  `json:"entries"`
}

// seal begins the digest that ends a saved plan.
const seal = `,"sha256":"`

// WriteSavedPlan writes a plan as JSON, with what it was asked with and, last, the digest
// of all before.
func WriteSavedPlan(w io.Writer, p *Planning, r *Request) error {
	j := newPlanJSON(p)
	j.Request = r
	for i := range j.Entries {
		e := &j.Entries[i]
		e.Settings = r.Inputs[label(e.Step, e.Action)]
	}
	text, err := json.Marshal(headed{"plan", j})
	if err != nil {
		return err
	}
	text = bytes.TrimSuffix(text, []byte("}"))
	sum := sha256.Sum256(text)
	_, err = fmt.Fprintf(w, "%s%s%x\"}\n", text, seal, sum)
	return err
}

// ReadSavedPlan reads what WriteSavedPlan wrote. Whatever is wrong with it is a
// *PlanFileError.
func ReadSavedPlan(name string, text []byte) (*SavedPlan, error) {
	p := new(SavedPlan)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, &PlanFileError{name, "it is no JSON, or was cut short"}
	}
	at := bytes.LastIndex(text, []byte(seal))
	switch {
	case p.Type != "plan":
		return nil, &PlanFileError{name, "it is no plan"}
	case p.Version != FormatVersion:
		return nil, &PlanFileError{name, fmt.Sprintf("it has version %d of the form, and this bonsai reads %d", p.Version, FormatVersion)}
	case p.Request == nil:
		return nil, &PlanFileError{name, "it was printed and not saved, so that what it was asked with is not in it"}
	}
	sum := sha256.Sum256(text[:max(at, 0)])
	if at < 0 || string(text[at:]) != seal+hex.EncodeToString(sum[:])+"\"}\n" {
		return nil, &PlanFileError{name, "it was changed after it was written"}
	}
	return p, nil
}

// A PlanFileError says that a file holds no plan that can be built.
type PlanFileError struct{ Path, Why string }

// Error implements error.
func (e *PlanFileError) Error() string { return "plan " + e.Path + ": " + e.Why }

// A StaleError says what moved since a plan was saved.
type StaleError struct {
	Path  string
	Moved []string // such as "source text.txt changed"
}

// Error implements error.
func (e *StaleError) Error() string {
	const most = 12
	list := e.Moved[:min(len(e.Moved), most)]
	text := fmt.Sprintf("plan %s no longer holds:\n  %s", e.Path, strings.Join(list, "\n  "))
	if n := len(e.Moved) - most; n > 0 {
		text += fmt.Sprintf("\n  and %d more", n)
	}
	return text
}

// Moved returns what is other in now than in the saved plan, a text for each. That work
// was done since is no difference: a plan that was interrupted can go on.
func (s *SavedPlan) Moved(p *Planning, now *Request) (moved []string) {
	if s.Request.Bonsai != now.Bonsai {
		moved = append(moved, fmt.Sprintf("bonsai: %s → %s", s.Request.Bonsai, now.Bonsai))
	}
	moved = append(moved, movedFiles("file", s.Request.Files, now.Files)...)
	moved = append(moved, movedPlaces(s.Request.Places, now.Places)...)
	j := newPlanJSON(p)
	moved = append(moved, movedFiles("source", digestsOf(s.Sources), digestsOf(j.Sources))...)
	was := make(map[string]*entryJSON, len(s.Entries))
	for i := range s.Entries {
		was[label(s.Entries[i].Step, s.Entries[i].Action)] = &s.Entries[i]
	}
	var followers []string
	for i := range j.Entries {
		name := label(j.Entries[i].Step, j.Entries[i].Action)
		text := movedEntry(was[name], &j.Entries[i], now.Inputs[name])
		switch {
		case text == "":
		case j.Entries[i].Cause:
			moved = append(moved, name+" "+text)
		default:
			followers = append(followers, name+" "+text)
		}
	}
	for _, e := range s.Entries {
		if name := label(e.Step, e.Action); now.Inputs[name] == "" {
			moved = append(moved, name+" is no longer made")
		}
	}
	if len(moved) == 0 {
		return followers
	}
	return moved
}

// movedPlaces says which files would be placed that were not before, and the reverse.
func movedPlaces(was, is []StepPlace) (moved []string) {
	for _, pl := range is {
		if !slices.Contains(was, pl) {
			moved = append(moved, fmt.Sprintf("%s would be placed as %s", pl.Step, pl.Path))
		}
	}
	for _, pl := range was {
		if !slices.Contains(is, pl) {
			moved = append(moved, fmt.Sprintf("%s would not be placed as %s", pl.Step, pl.Path))
		}
	}
	return moved
}

// movedEntry says how an entry of a plan differs from what it was, "" if it does not.
func movedEntry(was, is *entryJSON, inputs string) string {
	reasons := ""
	for _, r := range is.Reasons {
		if r.Kind == "setting" && was != nil && was.Settings == inputs {
			continue // it differs from the last build, not from the plan
		}
		reasons += [...]string{": ", "; "}[min(len(reasons), 1)] + r.Text
	}
	switch {
	case was == nil && is.Status == "hit":
		return ""
	case was == nil:
		return "was not in the plan" + reasons
	case was.Settings != inputs || was.Key != nil && is.Key != nil && *was.Key != *is.Key:
		return "changed" + reasons
	case was.Status == "hit" && is.Status != "hit":
		return "was up to date" + reasons
	default:
		return ""
	}
}

// movedFiles says which files changed, came or went.
func movedFiles(what string, was, is []FileDigest) (moved []string) {
	old := map[string]string{}
	for _, f := range was {
		old[f.Name] = f.Digest
	}
	for _, f := range is {
		switch digest, known := old[f.Name]; {
		case !known:
			moved = append(moved, what+" "+f.Name+" is new")
		case digest != f.Digest:
			moved = append(moved, what+" "+f.Name+" changed")
		}
		delete(old, f.Name)
	}
	for _, f := range was {
		if _, gone := old[f.Name]; gone {
			moved = append(moved, what+" "+f.Name+" is gone")
		}
	}
	return moved
}

func digestsOf(sources []sourceJSON) (list []FileDigest) {
	for _, s := range sources {
		list = append(list, FileDigest{s.Path, s.Digest.String()})
	}
	return list
}
