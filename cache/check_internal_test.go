package cache

import (
	"os"
	"path/filepath"
	"testing"
)

// Between finding damage and moving it away, another process may put a whole file
// under the name.
func TestQuarantineSparesANewFile(t *testing.T) {
	d := openTestDir(t)
	path := filepath.Join(d.path, "file")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "damaged")
	f, err := d.disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(path+".new", "whole")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	d.quarantine(f)
	if b, err := os.ReadFile(path); err != nil || string(b) != "whole" {
		t.Errorf("the new file is %q, %v", b, err)
	}
}
