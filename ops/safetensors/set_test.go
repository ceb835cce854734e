package safetensors_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/safetensors"
)

// shard returns a file of F32 tensors of one element.
func shard(t *testing.T, names ...string) []byte {
	t.Helper()
	var list []safetensors.Spec
	for _, name := range names {
		list = append(list, safetensors.Spec{Name: name, DType: safetensors.F32, Shape: []int64{1}})
	}
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if err := w.WriteFloats(name, []float32{float32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// folder writes files into a new folder.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	indexName = "model.safetensors.index.json"
	first     = "model-00001-of-00002.safetensors"
	second    = "model-00002-of-00002.safetensors"
)

func index(weights string) []byte {
	return []byte(`{"metadata":{"total_size":12,"nested":[{}]},"weight_map":{` + weights + `}}`)
}

func TestOpenDirSharded(t *testing.T) {
	dir := folder(t, map[string][]byte{
		indexName: index(`"c":"` + second + `","a":"` + first + `"`),
		first:     shard(t, "a", "b"), // b is left out of the index
		second:    shard(t, "x", "c"),
	})
	s, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Shards(); !slices.Equal(got, []string{first, second}) {
		t.Errorf("Shards() = %v", got)
	}
	if got, err := s.Floats("c"); err != nil || got[0] != 1 {
		t.Errorf("Floats(c) = %v, %v", got, err)
	}
	if err := s.ReadFloats("b", make([]float32, 1), 0); err != nil {
		t.Error(err)
	}
	if f, err := s.File("a"); err != nil || filepath.Base(f.Name()) != first {
		t.Errorf("File(a) = %v, %v", f, err)
	}
	if x, ok := s.Lookup("x"); !ok || x.Len() != 1 || len(s.Tensors()) != 4 {
		t.Errorf("Lookup(x) = %v, %v", x, ok)
	}
	if b, err := s.Bytes("a"); err != nil || len(b) != 4 {
		t.Errorf("Bytes(a) = %v, %v", b, err)
	}
	for _, err := range []error{errOf(s.Floats("d")), errOf(s.Bytes("d")), s.ReadFloats("d", nil, 0)} {
		if !errors.Is(err, safetensors.ErrMissing) {
			t.Errorf("a tensor that is not there: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestOpenDirSingle(t *testing.T) {
	dir := folder(t, map[string][]byte{"model.safetensors": shard(t, "a"), indexName: index(`"a":"` + first + `"`)})
	s, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Shards(); !slices.Equal(got, []string{"model.safetensors"}) {
		t.Errorf("Shards() = %v", got)
	}
}

func TestOpenDirRefuses(t *testing.T) {
	both := map[string][]byte{first: shard(t, "a"), second: shard(t, "a", "b")}
	for _, test := range []struct{ name, index, want string }{
		{"a path upwards", `"a":"../x.safetensors"`, `tensor "a": "../x.safetensors" is not the name`},
		{"an absolute path", `"a":"/x.safetensors"`, `"/x.safetensors"`},
		{"a Windows path", `"a":"C:\\x.safetensors"`, `is not the name`},
		{"a path downwards", `"a":"sub/x.safetensors"`, `is not the name`},
		{"another kind of file", `"a":"pytorch_model.bin"`, `"pytorch_model.bin"`},
		{"no name", `"a":7`, `tensor "a": "7"`},
		{"an empty name", `"a":""`, `tensor "a"`},
		{"a missing shard", `"a":"model-00003-of-00003.safetensors"`, `shard "model-00003-of-00003.safetensors" is missing`},
		{"a tensor that its shard lacks", `"z":"` + first + `"`, `tensor "z" is not in ` + first},
		{"a tensor in another shard", `"b":"` + first + `","c":"` + second + `"`, `tensor "a" is in`},
		{"a tensor in two shards", `"a":"` + first + `","b":"` + second + `"`, `tensor "a" is in`},
		{"a tensor twice", `"a":"` + first + `","a":"` + second + `"`, `"a" stands there twice`},
		{"no tensors", ``, `no tensors`},
		{"half an index", `"a":{`, `index.json`},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string][]byte{indexName: index(test.index)}
			for name, b := range both {
				files[name] = b
			}
			_, err := safetensors.OpenDir(folder(t, files))
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("OpenDir = %v, want ErrFormat with %q", err, test.want)
			}
		})
	}
	if _, err := safetensors.OpenDir(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds neither") {
		t.Errorf("OpenDir of an empty folder = %v", err)
	}
}
