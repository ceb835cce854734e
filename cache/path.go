package cache

import (
	"errors"
	"path/filepath"
)

// DefaultPath returns the absolute path of the folder that holds the cache:
// BONSAI_CACHE, else bonsai in XDG_CACHE_HOME, else .cache/bonsai in the user's home
// folder (HOME, or USERPROFILE on Windows). getenv returns a variable of the
// environment, "" if it is not set.
func DefaultPath(getenv func(string) string) (string, error) {
	if path := getenv("BONSAI_CACHE"); path != "" {
		return filepath.Abs(path)
	}
	// The XDG specification says to ignore relative paths.
	if path := getenv("XDG_CACHE_HOME"); filepath.IsAbs(path) {
		return filepath.Join(path, "bonsai"), nil
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := getenv(name); home != "" {
			return filepath.Abs(filepath.Join(home, ".cache", "bonsai"))
		}
	}
	return "", errors.New("no folder for the cache: none of BONSAI_CACHE, XDG_CACHE_HOME and HOME is set")
}
