package prism

import (
	"encoding/json"
	"fmt"
	"slices"

	"bonsai/ops/gguf"
	"bonsai/ops/tokenizer"
)

// Files of a checkpoint that are not weights.
const (
	ConfigFile          = "config.json"
	TokenizerFile       = "tokenizer.json"
	TokenizerConfigFile = "tokenizer_config.json"  // optional
	GenerationFile      = "generation_config.json" // optional
	TemplateFile        = "chat_template.jinja"    // optional; before the template in tokenizer_config.json
)

// A vocabulary is what the files of a checkpoint say about its tokens.
type vocabulary struct {
	tokens   *tokenizer.Tokenizer
	template string
	bos, pad int32   // -1 where there is none
	stops    []int32 // ids that end a text, the tokenizer's own first
}

// newVocabulary reads the files, by name. rows is how many tokens the model's tables have.
func newVocabulary(files map[string][]byte, rows int) (*vocabulary, error) {
	text, ok := files[TokenizerFile]
	if !ok {
		return nil, fmt.Errorf("no %s: a file without its tokenizer cannot be used", TokenizerFile)
	}
	t, err := tokenizer.Parse(text, files[TokenizerConfigFile])
	if err != nil {
		return nil, err
	}
	v := &vocabulary{tokens: t, template: t.ChatTemplate, bos: t.BOS, pad: t.PAD}
	if jinja, ok := files[TemplateFile]; ok {
		v.template = string(jinja)
	}
	return v, v.addIDs(files, rows)
}

// ids are special tokens as config.json and generation_config.json name them.
type ids struct {
	BOS idList `json:"bos_token_id"`
	EOS idList `json:"eos_token_id"`
	PAD idList `json:"pad_token_id"`
}

// An idList is a number, a list of numbers, or null.
type idList []int32

// UnmarshalJSON reads any of the forms.
func (l *idList) UnmarshalJSON(b []byte) error {
	var one *int32
	if json.Unmarshal(b, &one) == nil {
		if one != nil {
			*l = idList{*one}
		}
		return nil
	}
	var all []int32
	err := json.Unmarshal(b, &all)
	*l = all
	return err
}

// addIDs takes what the tokenizer does not know from generation_config.json, and then
// from config.json. What ends a text is in all three.
func (v *vocabulary) addIDs(files map[string][]byte, rows int) error {
	if v.tokens.EOS >= 0 {
		v.stops = append(v.stops, v.tokens.EOS)
	}
	for _, name := range []string{GenerationFile, ConfigFile} {
		text, ok := files[name]
		if !ok {
			continue
		}
		var more ids
		if err := json.Unmarshal(text, &more); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, id := range slices.Concat(more.BOS, more.EOS, more.PAD) {
			if id < -1 || int(id) >= rows {
				return fmt.Errorf("%s: token %d of a vocabulary of %d", name, id, rows)
			}
		}
		v.stops = append(v.stops, more.EOS...)
		v.bos, v.pad = firstID(v.bos, more.BOS), firstID(v.pad, more.PAD)
	}
	var distinct []int32
	for _, id := range v.stops {
		if id >= 0 && !slices.Contains(distinct, id) {
			distinct = append(distinct, id)
		}
	}
	v.stops = distinct
	return nil
}

func firstID(id int32, others idList) int32 {
	if id < 0 && len(others) > 0 {
		return others[0]
	}
	return id
}

// keys returns the keys of the tokenizer for tables of rows tokens.
func (v *vocabulary) keys(rows int) ([]gguf.KV, error) {
	t := v.tokens
	tokens, types, err := t.Padded(rows)
	if err != nil {
		return nil, err
	}
	keys := []gguf.KV{
		{Key: "tokenizer.ggml.model", Value: t.Model()},
		{Key: "tokenizer.ggml.pre", Value: t.Pre()},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.token_type", Value: types},
	}
	if t.Model() == "llama" {
		keys = append(keys,
			gguf.KV{Key: "tokenizer.ggml.scores", Value: paddedScores(t.Scores(), rows)},
			gguf.KV{Key: "tokenizer.ggml.add_space_prefix", Value: t.SpacePrefix()})
	} else {
		keys = append(keys, gguf.KV{Key: "tokenizer.ggml.merges", Value: t.Merges()})
	}
	keys = append(keys, v.special()...)
	keys = append(keys,
		gguf.KV{Key: "tokenizer.ggml.add_bos_token", Value: t.AddBOS},
		gguf.KV{Key: "tokenizer.ggml.add_eos_token", Value: t.AddEOS})
	if v.template != "" {
		keys = append(keys, gguf.KV{Key: "tokenizer.chat_template", Value: v.template})
	}
	return keys, nil
}

// special returns the keys of the special tokens. The second and third id that ends a
// text go where llama.cpp looks for them; the list of all is what others read.
func (v *vocabulary) special() (keys []gguf.KV) {
	add := func(name string, id int32) {
		if id >= 0 {
			keys = append(keys, gguf.KV{Key: "tokenizer.ggml." + name + "_token_id", Value: uint32(id)})
		}
	}
	add("bos", v.bos)
	for i, name := range []string{"eos", "eot", "eom"} {
		if i < len(v.stops) {
			add(name, v.stops[i])
		}
	}
	add("padding", v.pad)
	add("unknown", v.tokens.UNK)
	if len(v.stops) > 1 {
		keys = append(keys, gguf.KV{Key: "tokenizer.ggml.eos_token_ids", Value: v.stops})
	}
	return keys
}

// paddedScores gives ids without a token the score of converters, which no merge wins with.
func paddedScores(scores []float32, rows int) []float32 {
	const unused = -10000
	for len(scores) < rows {
		scores = append(scores, unused)
	}
	return scores
}
