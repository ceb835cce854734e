package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func openTestDir(t *testing.T) *Dir {
	t.Helper()
	d, err := OpenDir(t.TempDir(), func() time.Time { return time.Unix(1_800_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func keyOf(i int) Key { return KeyOf(fmt.Append(nil, i)) }

func setLast(t *testing.T, d *Dir, id string, k Key) {
	t.Helper()
	if err := d.SetLast(id, k); err != nil {
		t.Fatalf("SetLast(%q): %v", id, err)
	}
}

func wantLast(t *testing.T, d *Dir, id string, k Key) {
	t.Helper()
	if got, ok := d.Last(id); got != k || !ok {
		t.Errorf("Last(%q) = %s, %v; want %s", id, got.Short(), ok, k.Short())
	}
}

func TestHistory(t *testing.T) {
	d := openTestDir(t)
	other, err := OpenDir(d.path, d.now)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"recipe codes.body layer 3", "", "with \"quotes\"\nand lines", "\xff not UTF-8", "é\u2028"}
	for i, id := range ids {
		if k, ok := d.Last(id); ok {
			t.Errorf("Last(%q) = %s before SetLast", id, k)
		}
		setLast(t, d, id, keyOf(i))
	}
	for i, id := range ids {
		wantLast(t, d, id, keyOf(i))
		wantLast(t, other, id, keyOf(i))
	}
	setLast(t, other, ids[0], keyOf(99))
	wantLast(t, d, ids[0], keyOf(99))
	wantLast(t, d, ids[1], keyOf(1))
}

func TestMemHistory(t *testing.T) {
	m := NewMem(func() time.Time { return time.Time{} })
	if _, ok := m.Last("id"); ok {
		t.Error("Last before SetLast")
	}
	if err := m.SetLast("id", keyOf(1)); err != nil {
		t.Error(err)
	}
	if k, ok := m.Last("id"); k != keyOf(1) || !ok {
		t.Errorf("Last = %v, %v", k, ok)
	}
}

func TestSetLastOfTheSameKeyWritesNothing(t *testing.T) {
	d := openTestDir(t)
	setLast(t, d, "id", keyOf(1))
	before, err := os.Stat(d.history.path)
	if err != nil {
		t.Fatal(err)
	}
	setLast(t, d, "id", keyOf(1))
	if after, err := os.Stat(d.history.path); err != nil || after.Size() != before.Size() {
		t.Errorf("journal grew from %d bytes to %d, %v", before.Size(), after.Size(), err)
	}
}

// A line cut short anywhere, as by lost power, costs that line and no other.
func TestTornLineSpoilsNoOther(t *testing.T) {
	d := openTestDir(t)
	setLast(t, d, "first", keyOf(1))
	whole, err := os.ReadFile(d.history.path)
	if err != nil {
		t.Fatal(err)
	}
	setLast(t, d, "torn", keyOf(2))
	both, err := os.ReadFile(d.history.path)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(whole); n < len(both); n++ {
		d := openTestDir(t)
		if err := os.WriteFile(d.history.path, both[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		wantLast(t, d, "first", keyOf(1))
		if k, ok := d.Last("torn"); ok {
			t.Fatalf("%d bytes of %d: Last of the torn line = %s", n, len(both), k)
		}
		setLast(t, d, "next", keyOf(3))
		again, err := OpenDir(d.path, d.now)
		if err != nil {
			t.Fatal(err)
		}
		wantLast(t, again, "first", keyOf(1))
		wantLast(t, again, "next", keyOf(3))
	}
}

func TestDamagedLineIsSkipped(t *testing.T) {
	d := openTestDir(t)
	for i := range 3 {
		setLast(t, d, fmt.Sprint(i), keyOf(i))
	}
	whole, err := os.ReadFile(d.history.path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		d := openTestDir(t)
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= 1
		if err := os.WriteFile(d.history.path, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		good := 0
		for i := range 3 {
			if k, ok := d.Last(fmt.Sprint(i)); ok && k == keyOf(i) {
				good++
			} else if ok {
				t.Fatalf("%q gives Last(%d) = %s", damaged, i, k)
			}
		}
		if good < 1 {
			t.Errorf("%q: %d lines are left of 3", damaged, good)
		}
	}
}

func TestJournalIsCompacted(t *testing.T) {
	d := openTestDir(t)
	other, err := OpenDir(d.path, d.now)
	if err != nil {
		t.Fatal(err)
	}
	setLast(t, other, "once", keyOf(-1))
	for i := range minCompact + 10 {
		setLast(t, d, fmt.Sprint("id", i%10), keyOf(i))
	}
	b, err := os.ReadFile(d.history.path)
	if err != nil || len(b) > 100*100 {
		t.Errorf("journal of 11 ids has %d bytes, %v", len(b), err)
	}
	for _, d := range []*Dir{d, other} {
		wantLast(t, d, "once", keyOf(-1))
		for i := minCompact; i < minCompact+10; i++ {
			wantLast(t, d, fmt.Sprint("id", i%10), keyOf(i))
		}
	}
}

func TestJournalIsBounded(t *testing.T) {
	d := openTestDir(t)
	var b []byte
	for i := range maxEntries {
		b = appendLine(b, d.history.encode(fmt.Sprint(i), keyOf(i)))
	}
	if err := os.WriteFile(d.history.path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	wantLast(t, d, "0", keyOf(0))
	setLast(t, d, "newest", keyOf(-1))
	if k, ok := d.Last("0"); ok {
		t.Errorf("the oldest entry is still there: %s", k)
	}
	wantLast(t, d, "newest", keyOf(-1))
	wantLast(t, d, fmt.Sprint(maxEntries-1), keyOf(maxEntries-1))
	if n := len(d.history.entries); n != maxEntries/2 {
		t.Errorf("%d entries are left, want %d", n, maxEntries/2)
	}
}

// Appending while another rewrites may lose a line and must never mix any up.
func TestJournalUnderManyWriters(t *testing.T) {
	d := openTestDir(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			d, err := OpenDir(d.path, d.now)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 1500 {
				if err := d.SetLast(fmt.Sprint(g, i%3), keyOf(1000*g+i%3)); err != nil {
					t.Errorf("SetLast: %v", err)
				}
				if err := d.SetLast(fmt.Sprint(g), keyOf(i)); err != nil {
					t.Errorf("SetLast: %v", err)
				}
			}
			if k, ok := d.Last(fmt.Sprint(g)); !ok || k != keyOf(1499) {
				t.Errorf("Last(%d) = %v, %v; want that of the last SetLast", g, k, ok)
			}
		})
	}
	wg.Wait()
	for g := range 4 {
		for i := range 3 {
			if k, ok := d.Last(fmt.Sprint(g, i)); ok && k != keyOf(1000*g+i) {
				t.Errorf("Last(%d %d) is another's", g, i)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(d.path, tempDir, "*")); len(left) > 0 || err != nil {
		t.Errorf("leftovers %v, %v", left, err)
	}
}
