package cache_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
)

// A result as large as those of real actions: the manifest has some 2 KB.
func benchResult() cache.Result {
	return cache.Result{
		Outputs:  []cache.Output{{Digest: cache.DigestOf(nil), Size: 1 << 20}},
		Manifest: strings.Repeat("set field some value of a setting\n", 60),
		Started:  clock(), Duration: time.Second, Version: "0.1", Backend: "go",
	}
}

func BenchmarkLookup(b *testing.B) {
	d := openDir(b)
	k := cache.KeyOf(nil)
	if err := d.Record(k, benchResult()); err != nil {
		b.Fatal(err)
	}
	b.Run("hit", func(b *testing.B) {
		for b.Loop() {
			if _, err := d.Lookup(k); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("miss", func(b *testing.B) {
		for b.Loop() {
			if _, err := d.Lookup(cache.Key{}); err == nil {
				b.Fatal("no error")
			}
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	d := openDir(b)
	r := benchResult()
	for i := 0; b.Loop(); i++ {
		if err := d.Record(cache.KeyOf(strconv.AppendInt(nil, int64(i), 10)), r); err != nil {
			b.Fatal(err)
		}
	}
}

// Each blob is new: its first bytes count.
func BenchmarkCreate(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			d := openDir(b)
			bytes := sample(size, "blob")
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				copy(bytes, strconv.AppendInt(nil, int64(i), 10))
				out := put(b, d, bytes)
				if err := d.Remove(out.Digest); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStat(b *testing.B) {
	d := openDir(b)
	digest := put(b, d, []byte("blob")).Digest
	for b.Loop() {
		if _, err := d.Stat(digest); err != nil {
			b.Fatal(err)
		}
	}
}

// One round is what a build that has nothing to do asks of 1,000 sources: a store
// that was just opened reads its journal first.
func BenchmarkSourceDigest(b *testing.B) {
	dir := b.TempDir()
	var paths []string
	for i := range 1000 {
		paths = append(paths, filepath.Join(dir, strconv.Itoa(i)))
		writeFile(b, paths[i], strconv.Itoa(i))
	}
	d := reopen(b, filepath.Join(b.TempDir(), "cache"), later(time.Minute))
	hash := func(b *testing.B, d *cache.Dir) {
		for _, path := range paths {
			if _, err := d.SourceDigest(b.Context(), path); err != nil {
				b.Fatal(err)
			}
		}
	}
	hash(b, d)
	b.Run("files=1000/journal=read", func(b *testing.B) {
		for b.Loop() {
			hash(b, d)
		}
	})
	b.Run("files=1000/journal=unread", func(b *testing.B) {
		for b.Loop() {
			hash(b, reopen(b, d.Path(), later(time.Minute)))
		}
	})
}

func BenchmarkHistory(b *testing.B) {
	d := openDir(b)
	for i := range 1000 {
		if err := d.SetLast(strconv.Itoa(i), cache.Key{}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("Last", func(b *testing.B) {
		for b.Loop() {
			if _, ok := d.Last("500"); !ok {
				b.Fatal("no last key")
			}
		}
	})
	b.Run("SetLast", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if err := d.SetLast("500", cache.Key{byte(i)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
