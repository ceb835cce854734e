package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine/record"
)

// at is the moment at which the cache is looked at in these tests.
var at = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func cacheOptions(json bool) view.CacheOptions {
	return view.CacheOptions{Style: view.Style{Width: 80}, JSON: json, Now: at}
}

// sampleSurvey has a pinned result, one that was evicted, a transient one whose blob was
// dropped, and a blob that two results name.
func sampleSurvey() *cache.Survey {
	digest := func(b byte) cache.Digest { return cache.Digest{b} }
	out := func(b byte, n int64) []cache.Output { return []cache.Output{{Digest: digest(b), Size: n}} }
	return &cache.Survey{
		At: at,
		Results: []cache.Stored{
			{Key: cache.Key{1}, Step: "codes.body", Action: "layer 0 qkv codes", Outputs: out(1, 3<<20), There: []bool{true}, Took: time.Hour, Used: at.Add(-3 * time.Hour), Size: 1000, Pins: []string{"release"}},
			{Key: cache.Key{2}, Step: "codes.body", Action: "layer 0 qkv inputs", Outputs: out(2, 4<<30), There: []bool{false}, Took: time.Minute, Used: at.Add(-90 * 24 * time.Hour), Size: 1000, Transient: true},
			{Key: cache.Key{3}, Step: "gguf.model", Action: "write \x1b[2J", Outputs: out(3, 2<<30), There: []bool{false}, Took: 90 * time.Second, Used: at.Add(-5 * 24 * time.Hour), Size: 1000, Evicted: at.Add(-time.Hour)},
			{Key: cache.Key{4}, Step: "dataset.a", Outputs: out(4, 1<<20), There: []bool{true}, Took: time.Second, Used: at, Size: 1000},
			{Key: cache.Key{5}, Outputs: out(4, 1<<20), There: []bool{true}, Took: time.Second, Used: at, Size: 1000},
		},
		Blobs: map[cache.Digest]*cache.StoredBlob{
			digest(1): {Size: 3 << 20, Results: []int{0}, Pins: []string{"release"}, Stored: at.Add(-3 * time.Hour)},
			digest(4): {Size: 1 << 20, Results: []int{3, 4}, Stored: at},
			digest(9): {Size: 512, Stored: at},
		},
		Pins:  []cache.Pin{{Name: "release", Note: "target gguf of recipes/tiny.hcl", At: at.Add(-48 * time.Hour), Keys: []cache.Key{{1}, {7}}}},
		Other: map[string]int64{"": 100, "runs": 2000, "tmp": 10},
	}
}

func TestCacheViews(t *testing.T) {
	s := sampleSurvey()
	c := cache.Collection{Before: 10 << 30, After: 9 << 30, Trimmed: 2, Forgotten: 1, Pinned: 5 << 30, InUse: 1 << 20, Over: 4 << 30, Dropped: []cache.Dropped{
		{Digest: cache.Digest{1}, Size: 1 << 30, Why: cache.DroppedForRoom, Used: at.Add(-72 * time.Hour), Seconds: 61, Step: "codes.body", Action: "layer 0 qkv inputs"},
		{Digest: cache.Digest{2}, Size: 12, Why: cache.DroppedUnnamed, Used: at},
	}}
	runs := []view.StatRun{
		{Head: record.Head{Began: at.Add(-30 * time.Hour), Ran: 3, Busy: 7200, Written: 3 << 30}},
		{Head: record.Head{Began: at, Hits: 3, Saved: 7200}, Kept: 3 << 30},
	}
	rows := s.Results
	for _, c := range []struct {
		name string
		draw func(b *bytes.Buffer) error
		want string
	}{
		{"a gc", func(b *bytes.Buffer) error {
			return view.WriteCollection(b, c, cache.Limits{}, cacheOptions(false))
		}, `  010000000000    1.0 GiB  1 min 01 s to make  used 3 d ago   codes.body layer …
  020000000000       12 B       0 ms to make  used now       no result names it
dropped 2 artifacts, 1.0 GiB, 1 min 01 s to make again, 2 old files, 1 result for good
the cache takes 9.0 GiB of 10.0 GiB before
still 4.0 GiB too many: 5.0 GiB pinned, 1.0 MiB in use by builds or just stored
`},
		{"results", func(b *bytes.Buffer) error { return view.WriteStored(b, rows, 4, s, cacheOptions(false)) }, `key                size   to make  last used    state    step
010000000000    3.0 MiB 1 h 00 min  3 h ago      pinned   codes.body layer 0 qk…
020000000000        0 B 1 min 00 s  90 d ago     dropped  codes.body layer 0 qk…
030000000000        0 B 1 min 30 s  5 d ago      evicted  gguf.model write ` + "\uFFFD" + `[2J
040000000000    1.0 MiB     1.0 s  now                   dataset.a
… and 1 more: limit=5 shows them
5 results, 5.0 MiB
`},
		{"usage", func(b *bytes.Buffer) error {
			return view.WriteUsage(b, "/c", s, "step", func(r *cache.Stored) string { return r.Step }, cacheOptions(false))
		}, ""},
		{"pins", func(b *bytes.Buffer) error { return view.WritePins(b, s, cacheOptions(false)) }, `release                 3.0 MiB  2 d ago   target gguf of recipes/tiny.hcl
  1 artifact of it not in the cache: build it to have it kept
`},
		{"no pins", func(b *bytes.Buffer) error { return view.WritePins(b, &cache.Survey{}, cacheOptions(false)) }, "no pins: bonsai cache pin target=NAME keeps what a target's last build made\n"},
		{"a verification", func(b *bytes.Buffer) error {
			return view.WriteVerification(b, cache.Verification{Blobs: 3, Results: 2, Bytes: 4096, Damaged: []cache.Damage{{What: "blob 010000000000", Reason: "its bytes have another digest", Step: "a.b"}}}, cacheOptions(false))
		}, `damaged  blob 010000000000: its bytes have another digest, of a.b
3 blobs, 2 results and 0 pins hashed, 4.0 KiB: 1 damaged, set aside; the next build makes them again
`},
		{"stats", func(b *bytes.Buffer) error { return view.WriteStats(b, runs, s, 30, cacheOptions(false)) }, `cache    4.0 MiB: 5 results, 1 of them evicted
runs     2 since 2026-11-30 06:00
hits     50 % of 6 actions
saved    2 h 00 min of work, 3.0 GiB
spent    2 h 00 min of work, 3.0 GiB
day         runs   hits     ran      saved       spent    written
2026-11-30     1    0 %       3       0 ms  2 h 00 min    3.0 GiB
2026-12-01     1  100 %       0 2 h 00 min        0 ms        0 B
`},
		{"a blob", func(b *bytes.Buffer) error { return view.WriteBlob(b, cache.Digest{4}, s, cacheOptions(false)) }, `blob 040000000000  1.0 MiB, stored now
  digest     0400000000000000000000000000000000000000000000000000000000000000
  made by    040000000000  dataset.a
  made by    050000000000  (unknown step)
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := c.draw(&b); err != nil {
				t.Fatal(err)
			}
			if c.want != "" && b.String() != c.want {
				t.Errorf("drawn:\n%s\nwant:\n%s", b.String(), c.want)
			}
			if strings.ContainsAny(b.String(), "\x1b\a\r") {
				t.Errorf("control characters in %q", b.String())
			}
		})
	}
}

// What each says as JSON is one line, with its version and type.
func TestCacheViewsAsJSON(t *testing.T) {
	s := sampleSurvey()
	for kind, draw := range map[string]func(b *bytes.Buffer) error{
		"gc": func(b *bytes.Buffer) error {
			return view.WriteCollection(b, cache.Collection{}, cache.Limits{}, cacheOptions(true))
		},
		"results": func(b *bytes.Buffer) error { return view.WriteStored(b, s.Results, 0, s, cacheOptions(true)) },
		"pins":    func(b *bytes.Buffer) error { return view.WritePins(b, s, cacheOptions(true)) },
		"verification": func(b *bytes.Buffer) error {
			return view.WriteVerification(b, cache.Verification{}, cacheOptions(true))
		},
		"stats":    func(b *bytes.Buffer) error { return view.WriteStats(b, nil, s, 30, cacheOptions(true)) },
		"blob":     func(b *bytes.Buffer) error { return view.WriteBlob(b, cache.Digest{4}, s, cacheOptions(true)) },
		"deleted":  func(b *bytes.Buffer) error { return view.WriteDeleted(b, "blob 01", 7, cacheOptions(true)) },
		"exported": func(b *bytes.Buffer) error { return view.WriteBundle(b, "a", cache.Bundle{}, 7, cacheOptions(true)) },
		"imported": func(b *bytes.Buffer) error { return view.WriteUnpacked(b, "a", cache.Unpacked{}, cacheOptions(true)) },
		"usage": func(b *bytes.Buffer) error {
			return view.WriteUsage(b, "/c", s, "step", func(r *cache.Stored) string { return r.Step }, cacheOptions(true))
		},
		"result": func(b *bytes.Buffer) error {
			return view.WriteResult(b, cache.Key{1}, cache.Result{}, s, cacheOptions(true))
		},
	} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			t.Fatal(err)
		}
		if want := `{"version":1,"type":"` + kind + `",`; !strings.HasPrefix(b.String(), want) || strings.Count(b.String(), "\n") != 1 {
			t.Errorf("drawn %q, want one line that begins with %s", b.String(), want)
		}
	}
}
