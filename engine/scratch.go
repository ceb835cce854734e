package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// What the folder of a resumable action holds: the folder that its op is given, and a
// text with what the action's sources looked like when a run began.
const (
	workFolder  = "work"
	sourcesFile = "sources"
)

// scratch returns the folder in which the op finds what an earlier run left. What was
// left by a run that may have read other bytes than the key names, because a source was
// written since it began, is dropped first.
func (t *attempt) scratch() (string, error) {
	folder, err := t.opt.Scratch.Scratch(t.key)
	if err != nil {
		return "", err
	}
	now, err := t.sources()
	if err != nil {
		return "", err
	}
	was, err := os.ReadFile(filepath.Join(folder, sourcesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if string(was) != now || err != nil {
		if folder, err = t.renewScratch(now); err != nil {
			return "", err
		}
	}
	work := filepath.Join(folder, workFolder)
	return work, os.MkdirAll(work, 0o777)
}

// renewScratch empties the folder and notes what the sources look like.
func (t *attempt) renewScratch(sources string) (string, error) {
	if err := t.opt.Scratch.DropScratch(t.key); err != nil {
		return "", err
	}
	folder, err := t.opt.Scratch.Scratch(t.key)
	if err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, sourcesFile), []byte(sources), 0o666)
}

// sources describes the sources that the action reads, without reading them.
func (t *attempt) sources() (string, error) {
	var text []byte
	for _, a := range t.action.In {
		path, ok := a.Source()
		if !ok {
			continue
		}
		fi, err := os.Stat(path)
		if err != nil {
			return "", &SourceError{Path: path, Err: err}
		}
		text = fmt.Appendf(text, "%q %d %d\n", path, fi.Size(), fi.ModTime().UnixNano())
	}
	return string(text), nil
}

// resumes reports whether the op has a scratch folder.
func (t *attempt) resumes() bool {
	_, ok := t.action.Op.(Resumable)
	return ok && t.opt.Scratch != nil && !t.shared
}

// dropScratch removes what is of no use any more: after a result was recorded, and after
// a source changed under the run.
func (t *attempt) dropScratch() error {
	if !t.resumes() {
		return nil
	}
	return t.opt.Scratch.DropScratch(t.key)
}
