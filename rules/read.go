package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Read is one thing outside the recipe that is about to be looked at while the recipe is read.
// What comes of the recipe depends on the recipe and on what was read, on nothing else.
type Read struct {
	Kind  ReadKind
	Name  string // path of a file or folder, as it was opened; or an environment variable
	Value string // of an environment variable that is set
	Set   bool   // an environment variable is set
}

// A ReadKind is what was looked at.
type ReadKind int

// What is read outside a recipe. Each may be missing; that it is counts too.
const (
	FileRead   ReadKind = iota // the bytes of a file, or some of them
	FileStat                   // whether there is something, its size and whether it is a folder
	FolderList                 // the names in a folder
	EnvRead                    // an environment variable
)

// String names the kind as a sentence does.
func (k ReadKind) String() string {
	return [...]string{"file", "presence of", "folder", "environment variable"}[k]
}

// saw reports that a path is looked at.
func (x *Expansion) saw(kind ReadKind, path string) { x.Read(Read{Kind: kind, Name: path}) }

// readFile is os.ReadFile, reported.
func (x *Expansion) readFile(path string) ([]byte, error) {
	x.saw(FileRead, path)
	return os.ReadFile(path)
}

// open is os.Open, reported.
func (x *Expansion) open(path string) (*os.File, error) {
	x.saw(FileRead, path)
	return os.Open(path)
}

// stat is os.Stat, reported.
func (x *Expansion) stat(path string) (fs.FileInfo, error) {
	x.saw(FileStat, path)
	return os.Stat(path)
}

// list returns the names in a folder, sorted, and reports that it was listed.
func (x *Expansion) list(dir string) (names []string, err error) {
	x.saw(FolderList, dir)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// sawShards reports what safetensors.OpenDir reads of a folder with these names in it:
// one file or, if that is not there, an index and the shards that it names.
func (x *Expansion) sawShards(dir string, names []string) {
	whole := filepath.Join(dir, "model.safetensors")
	x.saw(FileRead, whole)
	if _, err := os.Stat(whole); err == nil {
		return
	}
	x.saw(FileRead, filepath.Join(dir, "model.safetensors.index.json"))
	for _, name := range names {
		if strings.HasSuffix(name, ".safetensors") {
			x.saw(FileRead, filepath.Join(dir, name))
		}
	}
}
