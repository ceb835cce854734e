package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	single = "model.safetensors"
	index  = "model.safetensors.index.json"
	// maxIndex is the largest index in bytes; that of a 27B model takes 120 kB.
	maxIndex = 100_000_000
)

// A Set is the tensors of several files, each in one of them. Its methods may be called
// from many goroutines at once, Close excepted.
type Set struct {
	files []*File
	where map[string]*File
}

// OpenDir opens the checkpoint in a folder: model.safetensors, or else the shards that
// model.safetensors.index.json names. Close it after use.
//
// Errors wrap ErrFormat for a file or index that is refused: an index that names a
// path outside the folder, a file that is not there, or a tensor that its shard does
// not hold; a tensor in two shards.
func OpenDir(dir string) (*Set, error) {
	shards, weights, err := dirShards(dir)
	if err != nil {
		return nil, err
	}
	var files []*File
	for _, shard := range shards {
		f, err := OpenFile(filepath.Join(dir, shard))
		if errors.Is(err, fs.ErrNotExist) && weights != nil {
			err = fmt.Errorf("%s: %w: shard %s is missing", filepath.Join(dir, index), ErrFormat, quote(shard))
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(files))
		}
		files = append(files, f)
	}
	s, err := NewSet(files...)
	if err == nil {
		err = s.checkIndex(dir, weights)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(files))
	}
	return s, nil
}

// NewSet joins open files. Closing the set closes them.
// Errors wrap ErrFormat for a tensor in two files.
func NewSet(files ...*File) (*Set, error) {
	s := &Set{files: slices.Clone(files), where: map[string]*File{}}
	for _, f := range files {
		for _, t := range f.tensors {
			if first, ok := s.where[t.Name]; ok {
				return nil, fmt.Errorf("%s: %w: tensor %s is in %s too", f.name, ErrFormat, quote(t.Name), first.name)
			}
			s.where[t.Name] = f
		}
	}
	return s, nil
}

// Close closes every file.
func (s *Set) Close() error { return closeAll(s.files) }

func closeAll(files []*File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Shards returns the names of the files, without folders, in the order of their opening.
func (s *Set) Shards() []string {
	var names []string
	for _, f := range s.files {
		names = append(names, filepath.Base(f.name))
	}
	return names
}

// Tensors returns the tensors of all files, file by file.
func (s *Set) Tensors() []Tensor {
	var all []Tensor
	for _, f := range s.files {
		all = append(all, f.tensors...)
	}
	return all
}

// File returns the file that holds a tensor. Errors wrap ErrMissing.
func (s *Set) File(name string) (*File, error) {
	f, ok := s.where[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(s.Shards(), ", "), ErrMissing, quote(name))
	}
	return f, nil
}

// Lookup returns the tensor of that name.
func (s *Set) Lookup(name string) (Tensor, bool) {
	f, ok := s.where[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Lookup(name)
}

// Floats is File.Floats of the file that holds the tensor.
func (s *Set) Floats(name string) ([]float32, error) {
	f, err := s.File(name)
	if err != nil {
		return nil, err
	}
	return f.Floats(name)
}

// ReadFloats is File.ReadFloats of the file that holds the tensor.
func (s *Set) ReadFloats(name string, x []float32, first int64) error {
	f, err := s.File(name)
	if err != nil {
		return err
	}
	return f.ReadFloats(name, x, first)
}

// Bytes is File.Bytes of the file that holds the tensor.
func (s *Set) Bytes(name string) ([]byte, error) {
	f, err := s.File(name)
	if err != nil {
		return nil, err
	}
	return f.Bytes(name)
}

// checkIndex compares what the shards hold with what their index says. A tensor that
// the index leaves out is kept: other loaders read whole shards.
func (s *Set) checkIndex(dir string, weights map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		f, ok := s.where[name]
		if !ok || filepath.Base(f.name) != weights[name] {
			return fmt.Errorf("%s: %w: tensor %s is not in %s", filepath.Join(dir, index), ErrFormat, quote(name), weights[name])
		}
	}
	return nil
}

// dirShards returns the checkpoint's files, sorted, and the index if it has one.
func dirShards(dir string) (shards []string, weights map[string]string, err error) {
	if _, err := os.Stat(filepath.Join(dir, single)); err == nil {
		return []string{single}, nil, nil
	}
	path := filepath.Join(dir, index)
	text, err := readIndex(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: holds neither %s nor %s", dir, single, index)
	}
	if err != nil {
		return nil, nil, err
	}
	weights, err = parseIndex(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, formatError(err))
	}
	shards = slices.Compact(slices.Sorted(maps.Values(weights)))
	return shards, weights, nil
}

func readIndex(path string) ([]byte, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if stat.Size() > maxIndex {
		return nil, fmt.Errorf("%s: %w: index of %d bytes, more than the limit of %d", path, ErrFormat, stat.Size(), maxIndex)
	}
	return os.ReadFile(path)
}

// parseIndex reads the member weight_map: tensor → file.
func parseIndex(text []byte) (map[string]string, error) {
	var weights map[string]string
	dec := json.NewDecoder(bytes.NewReader(text))
	err := members(dec, func(key string) error {
		if key != "weight_map" {
			var skipped json.RawMessage
			return dec.Decode(&skipped)
		}
		weights = map[string]string{}
		return members(dec, func(tensor string) error {
			token, err := dec.Token()
			if err != nil {
				return err
			}
			shard, ok := token.(string)
			if !ok || !isShard(shard) {
				return refuse("tensor %s: %s is not the name of a .safetensors file in the folder", quote(tensor), quote(fmt.Sprint(token)))
			}
			weights[tensor] = shard
			return nil
		})
	})
	if err == nil && len(weights) == 0 {
		err = refuse("no tensors in weight_map")
	}
	return weights, err
}

// isShard reports whether an index may name a file so: a plain name, which cannot lead
// out of the folder on any system.
func isShard(name string) bool {
	return strings.HasSuffix(name, ".safetensors") && !strings.ContainsAny(name, `/\:`) && filepath.IsLocal(name)
}
