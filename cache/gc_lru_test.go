package cache_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
)

// TestGCAgainstLRU replays a year of asking for artifacts through a store of a tenth of
// their size, once dropping what was used longest ago, once by gc. It prints what each
// keeps and what it costs to make the rest again.
func TestGCAgainstLRU(t *testing.T) {
	// As in a recipe of a model: large inputs that take a minute, small codes that take
	// an hour, reports that take seconds.
	var all []kept
	for i := range 40 {
		all = append(all,
			kept{name: fmt.Sprintf("inputs %d", i), size: 4000, took: time.Minute},
			kept{name: fmt.Sprintf("codes %d", i), size: 100, took: time.Hour},
			kept{name: fmt.Sprintf("report %d", i), size: 10, took: 5 * time.Second})
	}
	replay := func(worth func(a kept, unused time.Duration) float64) (lost time.Duration, codes int) {
		random := rand.New(rand.NewPCG(1, 2))
		last := map[int]time.Duration{}
		for now := time.Hour; now < 365*day; now += time.Hour {
			// What is asked for was, more often than not, asked for lately.
			i := int(float64(len(all)) * math.Pow(random.Float64(), 2.5))
			if _, there := last[i]; !there {
				lost += all[i].took
			}
			last[i] = now
			for total := 0; ; total = 0 {
				worst, least := -1, math.Inf(1)
				for j, at := range last {
					total += all[j].size
					if w := worth(all[j], now-at); w < least || w == least && j < worst {
						worst, least = j, w
					}
				}
				if total <= 17_000 {
					break
				}
				delete(last, worst)
			}
		}
		for i := range last {
			if strings.HasPrefix(all[i].name, "codes") {
				codes++
			}
		}
		return lost, codes
	}
	lru, lruCodes := replay(func(_ kept, unused time.Duration) float64 { return -unused.Hours() })
	ours, ourCodes := replay(func(a kept, unused time.Duration) float64 {
		return cache.Value(a.took.Seconds(), int64(a.size)<<10, unused)
	})
	t.Logf("least recently used: %v of work done again, keeps %d of 40 codes", lru, lruCodes)
	t.Logf("gc:                  %v of work done again, keeps %d of 40 codes", ours, ourCodes)
	if ours > lru/2 || ourCodes <= lruCodes {
		t.Errorf("gc: %v and %d codes; want less than half of %v, and more than %d", ours, ourCodes, lru, lruCodes)
	}
}
