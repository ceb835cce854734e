package cache_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
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

// A model of 100 MiB, stored as one file and in chunks; and in chunks most of which are
// there, as those of a fine-tune are. "shared" is the share of its bytes that it has with
// the model it was tuned from: 5 MiB of it differ.
func BenchmarkChunks(b *testing.B) {
	model := make([]byte, 100<<20)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(model)
	create := func(b *testing.B, f func() (cache.Writer, error)) cache.Output {
		w, err := f()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(w, bytes.NewReader(model)); err != nil {
			b.Fatal(err)
		}
		out, err := w.Commit()
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	for _, how := range []string{"file", "chunks"} {
		b.Run("new/as="+how, func(b *testing.B) {
			b.SetBytes(int64(len(model)))
			for b.Loop() {
				b.StopTimer()
				d := openDir(b)
				b.StartTimer()
				if how == "file" {
					create(b, d.CreateTransient)
				} else {
					create(b, d.Create)
				}
				b.StopTimer()
				os.RemoveAll(d.Path())
				b.StartTimer()
			}
		})
	}
	d := openDir(b)
	out := create(b, d.Create)
	b.Run("tuned/as=chunks", func(b *testing.B) {
		b.SetBytes(int64(len(model)))
		before := blobBytes(b, d)
		n := 0
		for ; b.Loop(); n++ {
			_, _ = rng.Read(model[40<<20 : 45<<20])
			create(b, d.Create)
		}
		more := float64(blobBytes(b, d)-before) / float64(n)
		b.ReportMetric(100*(1-more/float64(len(model))), "%shared")
	})
	b.Run("read/as=chunks", func(b *testing.B) { benchRead(b, d, out.Digest) })
	whole := openDir(b)
	b.Run("read/as=file", func(b *testing.B) { benchRead(b, whole, create(b, whole.CreateTransient).Digest) })
}

func benchRead(b *testing.B, d *cache.Dir, digest cache.Digest) {
	b.SetBytes(100 << 20)
	buf := make([]byte, 1<<20)
	for b.Loop() {
		blob, err := d.Open(digest)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.NewSectionReader(blob, 0, blob.Size())}, buf); err != nil {
			b.Fatal(err)
		}
		blob.Close()
	}
}
