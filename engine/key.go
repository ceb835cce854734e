package engine

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"

	"bonsai/cache"
)

// A name is how a manifest names an input: by the digest of its bytes, or, if it is
// transient, by the key and the output of the action that makes it. It is comparable.
type name struct {
	sum       [32]byte
	transient bool
	output    int
}

// inputLine is how the lines of a manifest begin that name inputs.
const inputLine = "in "

// manifest returns the text that decides whether an action is up to date. It is
// hashed to make the key and printed to explain one; there is no other.
//
// It is the text of op, then platform as a line unless it is empty (Options.Strict), and
// then a line for each input, "in 0 digest HEX" or "in 0 key HEX.OUTPUT".
func manifest(op Op, platform string, in []name) ([]byte, error) {
	b, err := op.AppendText(make([]byte, 0, 256+80*len(in)))
	if err != nil {
		return nil, fmt.Errorf("text of the op: %w", err)
	}
	if len(b) == 0 || b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	if platform != "" {
		b = fmt.Appendf(b, "platform %q\n", platform)
	}
	if bytes.HasPrefix(b, []byte(inputLine)) || bytes.Contains(b, []byte("\n"+inputLine)) {
		return nil, fmt.Errorf("text of the op has a line that reads as an input: %q", b)
	}
	for i, n := range in {
		b = appendName(b, i, n)
	}
	return b, nil
}

func appendName(b []byte, i int, n name) []byte {
	b = append(b, inputLine...)
	b = strconv.AppendInt(b, int64(i), 10)
	if !n.transient {
		b = append(b, " digest "...)
		b = hex.AppendEncode(b, n.sum[:])
		return append(b, '\n')
	}
	b = append(b, " key "...)
	b = hex.AppendEncode(b, n.sum[:])
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(n.output), 10)
	return append(b, '\n')
}

// keyOf returns the manifest of an action and its hash.
func keyOf(op Op, platform string, in []name) (cache.Key, string, error) {
	text, err := manifest(op, platform, in)
	if err != nil {
		return cache.Key{}, "", err
	}
	return cache.KeyOf(text), string(text), nil
}
