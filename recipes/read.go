package recipes

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bonsai/rules"
)

// A File is one file of a recipe or of values of variables.
type File struct {
	Name  string // path that diagnostics show; HCL's JSON syntax if it ends in .json
	Bytes []byte
}

// Read reads the recipe at path: a folder, of which every *.hcl and *.hcl.json is part,
// or one file. It also returns the folder that relative paths in it start from.
// It returns an error if there is no such file or no recipe in the folder.
func Read(path string) (files []File, dir string, err error) {
	return read(path, func(rules.Read) {})
}

// read is Read that tells saw what it is about to look at.
func read(path string, saw func(rules.Read)) (files []File, dir string, err error) {
	saw(rules.Read{Kind: rules.FileStat, Name: path})
	stat, err := os.Stat(path)
	if err != nil {
		return nil, "", fmt.Errorf("read recipe: %w", err)
	}
	names, dir := []string{path}, filepath.Dir(path)
	if stat.IsDir() {
		dir = path
		saw(rules.Read{Kind: rules.FolderList, Name: path})
		if names, err = recipesIn(path); err != nil {
			return nil, "", err
		}
	}
	for _, name := range names {
		saw(rules.Read{Kind: rules.FileRead, Name: name})
		b, err := ReadText(name)
		if err != nil {
			return nil, "", fmt.Errorf("read recipe: %w", err)
		}
		files = append(files, File{Name: name, Bytes: b})
	}
	return files, dir, nil
}

// maxText bounds the files of a recipe, in bytes: they are read whole, and a device may
// have no end.
const maxText = 64 << 20

// ReadText is os.ReadFile for the texts that recipes are made of. It returns an error for
// one of more than 64 MiB.
func ReadText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(b) > maxText {
		return nil, fmt.Errorf("%s has more than %d MiB, the most that a text of a recipe may have", path, maxText>>20)
	}
	return b, err
}

// recipesIn returns the paths of the recipe files in a folder, in order of name.
func recipesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read recipe: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && isRecipe(e.Name()) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("read recipe: no *.hcl in folder %s", dir)
	}
	return names, nil
}

// isRecipe says whether a file belongs to the recipe of its folder. Names that start
// with a dot are left out: editors keep their own copies under such names.
func isRecipe(name string) bool {
	return !strings.HasPrefix(name, ".") &&
		(strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json"))
}

//go:embed *.hcl
var shipped embed.FS

// Builtin returns the recipe that bonsai ships under this name, as in tiny.
// The error is an [fs.ErrNotExist] if there is none.
func Builtin(name string) ([]File, error) {
	b, err := shipped.ReadFile(name + ".hcl")
	if err != nil {
		return nil, fmt.Errorf("built-in recipe %s: %w", quote(name), fs.ErrNotExist)
	}
	return []File{{Name: path.Join("recipes", name+".hcl"), Bytes: b}}, nil
}

// BuiltinNames returns the names of the recipes that bonsai ships, in order.
func BuiltinNames() []string {
	files, err := fs.Glob(shipped, "*.hcl")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], ".hcl")
	}
	return files
}
