package tokenizer

import (
	"fmt"
	"strings"
)

// Kinds of tokens as tokenizer.ggml.token_type numbers them.
const (
	normalToken  int32 = 1
	unknownToken int32 = 2
	controlToken int32 = 3
	userToken    int32 = 4
	unusedToken  int32 = 5
	byteToken    int32 = 6
)

// Model returns the kind of tokenizer as tokenizer.ggml.model spells it: "gpt2" for
// byte-level BPE, "llama" for SentencePiece.
func (t *Tokenizer) Model() string {
	if t.bpe.byteLevel {
		return "gpt2"
	}
	return "llama"
}

// Pre returns the name of the pattern that cuts text, as tokenizer.ggml.pre spells it:
// "qwen2", "llama-bpe", "qwen35"; "default" for SentencePiece, which has none.
func (t *Tokenizer) Pre() string {
	if t.pre.pattern == nil {
		return "default"
	}
	return t.pre.pattern.pre
}

// SpacePrefix tells whether a text gets a space put before it, which is
// tokenizer.ggml.add_space_prefix. Byte-level tokenizers never do.
func (t *Tokenizer) SpacePrefix() bool {
	return t.spacePrefix != "" || t.pre.metaspace && t.pre.prepend != never
}

// Tokens returns the tokens by id, [VocabSize], as tokenizer.ggml.tokens has them. An id
// without a token is named [PAD7], with its number.
func (t *Tokenizer) Tokens() []string {
	tokens, _, _ := t.Padded(len(t.tokens))
	return tokens
}

// Types returns the kinds of the tokens, [VocabSize], as tokenizer.ggml.token_type has them:
// 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
func (t *Tokenizer) Types() []int32 {
	_, types, _ := t.Padded(len(t.tokens))
	return types
}

// Padded returns Tokens and Types for a model whose tables have rows rows. It is an error if
// the tokenizer has more ids than that.
func (t *Tokenizer) Padded(rows int) (tokens []string, types []int32, err error) {
	if rows < len(t.tokens) {
		return nil, nil, fmt.Errorf("the tokenizer has %d ids, the model's table %d rows", len(t.tokens), rows)
	}
	tokens, types = make([]string, rows), make([]int32, rows)
	for i := range rows {
		tokens[i], types[i] = fmt.Sprintf("[PAD%d]", i), unusedToken
		if i < len(t.tokens) && t.kinds[i] != unusedToken {
			tokens[i], types[i] = t.tokens[i], t.kinds[i]
		}
	}
	return tokens, types, nil
}

// Merges returns the merges by rank, "left right", as tokenizer.ggml.merges has them. A space
// within a part is written as U+0120.
func (t *Tokenizer) Merges() []string {
	all := make([]string, len(t.bpe.merges))
	for i, m := range t.bpe.merges {
		left := strings.ReplaceAll(t.tokens[m.left], " ", "Ġ")
		right := strings.ReplaceAll(t.tokens[m.right], " ", "Ġ")
		all[i] = left + " " + right
	}
	return all
}

// Scores returns how readily each token is made, [VocabSize], as tokenizer.ggml.scores has
// it: 0, -1, -2 and on in the order of the merges that first make them, and then for the
// tokens that no merge makes, in the order of ids; 0 for tokens that are not normal ones.
// SentencePiece numbers its pieces in that way.
func (t *Tokenizer) Scores() []float32 {
	scores := make([]float32, len(t.tokens))
	seen := make([]bool, len(t.tokens))
	next := 0
	give := func(id int32) {
		if !seen[id] && t.kinds[id] == normalToken {
			scores[id], seen[id] = float32(-next), true
			next++
		}
	}
	for _, m := range t.bpe.merges {
		give(m.id)
	}
	for id := range t.tokens {
		give(int32(id))
	}
	return scores
}
