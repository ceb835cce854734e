package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A document is tokenizer.json.
type document struct {
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    *component   `json:"normalizer"`
	PreTokenizer  *component   `json:"pre_tokenizer"`
	PostProcessor *component   `json:"post_processor"`
	Decoder       *component   `json:"decoder"`
	Model         struct {
		Type         string           `json:"type"`
		Dropout      *float64         `json:"dropout"`
		UnkToken     *string          `json:"unk_token"`
		Prefix       string           `json:"continuing_subword_prefix"`
		Suffix       string           `json:"end_of_word_suffix"`
		FuseUnk      bool             `json:"fuse_unk"`
		ByteFallback bool             `json:"byte_fallback"`
		IgnoreMerges bool             `json:"ignore_merges"`
		Vocab        map[string]int32 `json:"vocab"`
		Merges       mergeList        `json:"merges"`
	} `json:"model"`
}

// A component is a normalizer, pre-tokenizer, post-processor or decoder: all fields of all
// types that are known.
type component struct {
	Type          string      `json:"type"`
	Normalizers   []component `json:"normalizers"`
	Pretokenizers []component `json:"pretokenizers"`
	Processors    []component `json:"processors"`
	Decoders      []component `json:"decoders"`
	Prepend       string      `json:"prepend"`
	Pattern       *struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	} `json:"pattern"`
	Content        string          `json:"content"`
	Behavior       string          `json:"behavior"`
	Invert         bool            `json:"invert"`
	AddPrefixSpace *bool           `json:"add_prefix_space"`
	UseRegex       *bool           `json:"use_regex"`
	Replacement    string          `json:"replacement"`
	PrependScheme  string          `json:"prepend_scheme"`
	Split          *bool           `json:"split"`
	Start          int             `json:"start"`
	Stop           int             `json:"stop"`
	Single         []templatePiece `json:"single"`
}

// A templatePiece is the text itself, or a special token beside it.
type templatePiece struct {
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
}

// flatten returns the components that c stands for: none for nil, its members for a
// Sequence, else itself.
func (c *component) flatten() []component {
	if c == nil {
		return nil
	}
	if c.Type != "Sequence" {
		return []component{*c}
	}
	var all []component
	for _, members := range [][]component{c.Normalizers, c.Pretokenizers, c.Processors, c.Decoders} {
		for _, m := range members {
			all = append(all, m.flatten()...)
		}
	}
	return all
}

// A mergeList is merges: of elements "a b", or of elements ["a", "b"].
type mergeList [][2]string

// UnmarshalJSON reads either form.
func (l *mergeList) UnmarshalJSON(b []byte) error {
	var pairs [][]string
	if json.Unmarshal(b, &pairs) != nil {
		var lines []string
		if err := json.Unmarshal(b, &lines); err != nil {
			return errors.New("neither a list of strings nor a list of pairs of strings")
		}
		pairs = nil
		for _, s := range lines {
			pairs = append(pairs, strings.Split(s, " "))
		}
	}
	*l = make(mergeList, len(pairs))
	for i, p := range pairs {
		if len(p) != 2 {
			return fmt.Errorf("merge %d, %.60q, is not two tokens", i, strings.Join(p, " "))
		}
		(*l)[i] = [2]string(p)
	}
	return nil
}

// Parse reads a tokenizer from the bytes of tokenizer.json and tokenizer_config.json. The
// latter may be empty: then there is no chat template, and of the special tokens BOS alone is
// known, if the post-processor adds it. truncation and padding in tokenizer.json are the
// caller's affair and not read.
//
// Errors name the file and the key, and quote what is not known.
func Parse(tokenizerJSON, configJSON []byte) (*Tokenizer, error) {
	t, err := parse(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if len(configJSON) == 0 {
		return t, nil
	}
	if err := t.configure(configJSON); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	return t, nil
}

func parse(text []byte) (*Tokenizer, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	t := &Tokenizer{BOS: -1, EOS: -1, PAD: -1, UNK: -1, added: map[int32]bool{}}
	steps := []func(*document) error{
		checkModel, t.setVocab, t.setPieces, t.setMerges, t.setAdded, t.setCut, t.setPost,
	}
	for _, step := range steps {
		if err := step(&d); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkModel refuses models that are not BPE as the packages' models have it.
func checkModel(d *document) error {
	m := &d.Model
	switch {
	case m.Type != "BPE" && (m.Type != "" || m.Merges == nil):
		return fmt.Errorf("model.type %q is not BPE", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("model.dropout %g makes the tokens random", *m.Dropout)
	case m.Prefix != "":
		return fmt.Errorf("model.continuing_subword_prefix %q", m.Prefix)
	case m.Suffix != "":
		return fmt.Errorf("model.end_of_word_suffix %q", m.Suffix)
	case len(m.Vocab) == 0:
		return errors.New("model.vocab is empty")
	}
	return nil
}
