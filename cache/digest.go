package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Digest names a blob: the SHA-256 of its bytes.
type Digest [sha256.Size]byte

// A Key names an action: the SHA-256 of its manifest, which is everything that can
// change its outputs. It is a type of its own so that no call can confuse a cause
// with an effect.
type Key [sha256.Size]byte

// shortLen is the number of bytes in a short name: 12 hex digits tell 10,000
// blobs apart with a chance of one in five million that two are alike.
const shortLen = 6

// DigestOf returns the digest of b.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// KeyOf returns the key of an action's manifest.
func KeyOf(manifest []byte) Key { return sha256.Sum256(manifest) }

// ParseDigest reads 64 lower-case hex digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	err := parseHash(d[:], "digest", s)
	return d, err
}

// ParseKey reads 64 lower-case hex digits.
func ParseKey(s string) (Key, error) {
	var k Key
	err := parseHash(k[:], "key", s)
	return k, err
}

// String returns 64 hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first 12 hex digits, for people to read.
func (d Digest) Short() string { return hex.EncodeToString(d[:shortLen]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}

// String returns 64 hex digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Short returns the first 12 hex digits, for people to read.
func (k Key) Short() string { return hex.EncodeToString(k[:shortLen]) }

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKey(string(text))
	return err
}

// parseHash fills dst from s. Upper-case digits are refused, so that a hash has one
// spelling and its file one name.
func parseHash(dst []byte, what, s string) error {
	if len(s) != hex.EncodedLen(len(dst)) {
		return fmt.Errorf("%s %.80q has %d characters, want %d", what, s, len(s), hex.EncodedLen(len(dst)))
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("%s %q has a character that is not a lower-case hex digit", what, s)
		}
	}
	_, err := hex.Decode(dst, []byte(s))
	return err
}
