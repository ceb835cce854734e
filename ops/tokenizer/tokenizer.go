// Package tokenizer turns text into token ids and back, as the model in a Hugging Face
// folder was trained to see it.
//
// It knows byte-level BPE (Llama 3, Qwen2 to Qwen3.5) and SentencePiece-style BPE (Llama 2,
// Mistral 7B, stories260K) from tokenizer.json and tokenizer_config.json, and the form of
// both in a GGUF. What it does not know it refuses by name, since a tokenizer that is almost
// right gives a model that is almost right. It does not render chat templates.
//
// Start at Parse.
package tokenizer

import "sync"

// A Tokenizer is a vocabulary with the rules that cut text into its tokens. Its methods may
// be called from many goroutines at once as long as nobody changes a field.
type Tokenizer struct {
	// The ids of the special tokens, -1 where there is none.
	BOS, EOS, PAD, UNK int32

	// Whether BOS precedes, or EOS ends, a text that is given to the model as a whole.
	// EncodeWithBOS heeds AddBOS; Encode heeds neither.
	AddBOS, AddEOS bool

	// ChatTemplate is the Jinja template from tokenizer_config.json, the default one of
	// several, or "".
	ChatTemplate string

	tokens []string         // by id; "" is a hole or the empty token
	ids    map[string]int32 // every token, added ones included
	kinds  []int32          // by id, see Types
	added  map[int32]bool   // ids of added tokens, which stand for their own text

	raw, normal matcher               // added tokens found before and after the normalizer
	rewrite     []func(string) string // the normalizer
	spacePrefix string                // what it puts before a text
	pre         preTokenizer
	post        postDecoder
	bpe         bpe

	encoders sync.Pool // of *encoder
}

// VocabSize returns the number of ids, holes included: the highest id plus one. The model's
// tables may have more rows.
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// Token returns the token with that id as it stands in the vocabulary, in GPT-2's byte
// alphabet where the tokenizer is byte-level. It is "" for an id without a token.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return ""
	}
	return t.tokens[id]
}

// ID returns the id of a token as Token spells it.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.ids[token]
	return id, ok
}
