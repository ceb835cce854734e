//go:build integration

package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// TestIntegrationFuzzSoak lives random lives of all kinds for a minute, or as long as
// BONSAI_SOAK says, and says how many edits these were.
func TestIntegrationFuzzSoak(t *testing.T) {
	long := time.Minute
	if text := os.Getenv("BONSAI_SOAK"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	lives, edits := 0, 0
	for end := time.Now().Add(long); time.Now().Before(end) && !t.Failed(); lives++ { //nolint:forbidigo // of a test
		seed := lives + 1_000_000
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			b := make([]byte, 40+seed%200)
			_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), 4}).Read(b)
			switch seed % 5 {
			case 0:
				edits += life(t, b)
			case 1:
				edits += fickleLife(t, b)
			case 2:
				edits += unluckyLife(t, b)
			default:
				edits += stormyLife(t, stormOf(seed))
			}
		})
	}
	t.Logf("%d lives with %d edits", lives, edits)
}
