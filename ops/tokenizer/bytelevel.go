package tokenizer

import "unicode/utf8"

// GPT-2 writes every byte as a printable character: 33-126, 161-172 and 174-255 as
// themselves, the other 68 as U+0100 and on in increasing order.

// byteRunes holds the character of each byte.
var byteRunes = func() (t [256]rune) {
	next := rune(0x100)
	for c := range t {
		if c >= 33 && c <= 126 || c >= 161 && c != 173 {
			t[c] = rune(c)
			continue
		}
		t[c] = next
		next++
	}
	return t
}()

// runeBytes is its inverse.
var runeBytes = func() map[rune]byte {
	t := make(map[rune]byte, len(byteRunes))
	for c, r := range byteRunes {
		t[r] = byte(c)
	}
	return t
}()

// appendByteLevel appends the bytes of s, written in GPT-2's alphabet, to b.
func appendByteLevel(b []byte, s string) []byte {
	for i := range len(s) {
		b = utf8.AppendRune(b, byteRunes[s[i]])
	}
	return b
}

// appendBytes appends the bytes that a token in GPT-2's alphabet stands for to b. A token
// with a character that is not in the alphabet stands for itself.
func appendBytes(b []byte, token string) []byte {
	start := len(b)
	for _, r := range token {
		c, ok := runeBytes[r]
		if !ok {
			return append(b[:start], token...)
		}
		b = append(b, c)
	}
	return b
}
