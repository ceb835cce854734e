package cache_test

import (
	"encoding/json"
	"strings"
	"testing"

	"bonsai/cache"
)

const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestDigestText(t *testing.T) {
	d, k := cache.DigestOf(nil), cache.KeyOf(nil)
	if d.String() != emptySum || k.String() != emptySum {
		t.Errorf("String = %s and %s, want %s", d, k, emptySum)
	}
	if d.Short() != emptySum[:12] || k.Short() != emptySum[:12] {
		t.Errorf("Short = %s and %s, want %s", d.Short(), k.Short(), emptySum[:12])
	}
	if got, err := cache.ParseDigest(emptySum); got != d || err != nil {
		t.Errorf("ParseDigest = %s, %v; want %s", got, err, d)
	}
	if got, err := cache.ParseKey(emptySum); got != k || err != nil {
		t.Errorf("ParseKey = %s, %v; want %s", got, err, k)
	}
}

func TestDigestJSON(t *testing.T) {
	type both struct {
		D cache.Digest
		K cache.Key
		M map[cache.Key]cache.Digest
	}
	d, k := cache.DigestOf([]byte("d")), cache.KeyOf([]byte("k"))
	in := both{d, k, map[cache.Key]cache.Digest{k: d}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out both
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if out.D != d || out.K != k || out.M[k] != d {
		t.Errorf("%s decodes to %v", b, out)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", "e3", emptySum[1:], emptySum + "0", emptySum[1:] + "g", strings.ToUpper(emptySum),
		emptySum[1:] + "\n", emptySum[2:] + "é", strings.Repeat("x", 1<<16),
	} {
		if _, err := cache.ParseDigest(s); err == nil || !strings.Contains(err.Error(), "digest") || len(err.Error()) > 200 {
			t.Errorf("ParseDigest(%.40q) error %v, want a short one about a digest", s, err)
		}
		if _, err := cache.ParseKey(s); err == nil || !strings.Contains(err.Error(), "key") {
			t.Errorf("ParseKey(%.40q) error %v, want one about a key", s, err)
		}
	}
}
