// Package modeltest has what tests of several packages need of a model: a checkpoint opened from a folder, a random
// one in memory, a trained one widened to ternary widths, and a reader of .npy files.
// It is for tests only: it fails the test instead of returning errors.
package modeltest

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/safetensors"
)

// Open opens a checkpoint's folder until the test ends.
func Open(t testing.TB, dir string) (*model.Config, *safetensors.Set) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return c, set
}

// ReadNPY reads a little-endian float32 array, row-major, from a .npy file of format version 1
// (numpy.lib.format documents it).
func ReadNPY(t testing.TB, path string) (values []float32, shape []int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const magic = "\x93NUMPY\x01\x00"
	if !bytes.HasPrefix(b, []byte(magic)) || len(b) < 10 {
		t.Fatalf("%s is no .npy file of version 1", path)
	}
	end := 10 + int(binary.LittleEndian.Uint16(b[8:]))
	header := string(b[10:end])
	m := regexp.MustCompile(`'shape': \(([0-9, ]*)\)`).FindStringSubmatch(header)
	if m == nil || !strings.Contains(header, "'<f4'") || !strings.Contains(header, "'fortran_order': False") {
		t.Fatalf("%s: want float32 in C order, got %s", path, header)
	}
	n := 1
	for field := range strings.SplitSeq(strings.TrimRight(m[1], ", "), ",") {
		d, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil {
			t.Fatalf("%s: shape %s", path, m[1])
		}
		shape = append(shape, d)
		n *= d
	}
	b = b[end:]
	if len(b) != 4*n {
		t.Fatalf("%s: %d bytes for shape %v", path, len(b), shape)
	}
	values = make([]float32, n)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values, shape
}
