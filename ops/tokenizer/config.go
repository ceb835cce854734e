package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// A config is tokenizer_config.json, as far as it is read.
type config struct {
	ChatTemplate json.RawMessage       `json:"chat_template"`
	BOS          tokenName             `json:"bos_token"`
	EOS          tokenName             `json:"eos_token"`
	PAD          tokenName             `json:"pad_token"`
	UNK          tokenName             `json:"unk_token"`
	AddBOS       *bool                 `json:"add_bos_token"`
	AddEOS       *bool                 `json:"add_eos_token"`
	Added        map[string]addedToken `json:"added_tokens_decoder"`
}

// A tokenName is a token's text, or an object with it as content; "" for null.
type tokenName string

// UnmarshalJSON reads any of the forms.
func (n *tokenName) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) == nil {
		if s != nil {
			*n = tokenName(*s)
		}
		return nil
	}
	var tok struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(b, &tok); err != nil || tok.Content == "" {
		return fmt.Errorf("%.60s is not a token", b)
	}
	*n = tokenName(tok.Content)
	return nil
}

// configure takes over tokenizer_config.json. It has the last word on what is added to a
// text, as in llama.cpp's converter.
func (t *Tokenizer) configure(text []byte) error {
	var c config
	err := json.Unmarshal(text, &c)
	if err != nil {
		return err
	}
	if err := t.configureAdded(c.Added); err != nil {
		return fmt.Errorf("added_tokens_decoder: %w", err)
	}
	for _, s := range []struct {
		key  string
		name tokenName
		id   *int32
	}{{"bos_token", c.BOS, &t.BOS}, {"eos_token", c.EOS, &t.EOS}, {"pad_token", c.PAD, &t.PAD}, {"unk_token", c.UNK, &t.UNK}} {
		if s.name == "" {
			continue
		}
		id, ok := t.ids[string(s.name)]
		if !ok {
			return fmt.Errorf("%s %q is not in the vocabulary", s.key, string(s.name))
		}
		*s.id = id
	}
	if c.AddBOS != nil {
		t.AddBOS = *c.AddBOS
	}
	if c.AddEOS != nil {
		t.AddEOS = *c.AddEOS
	}
	if t.AddBOS && t.BOS < 0 {
		return errors.New("add_bos_token without bos_token")
	}
	if t.AddEOS && t.EOS < 0 {
		return errors.New("add_eos_token without eos_token")
	}
	t.ChatTemplate, err = chatTemplate(c.ChatTemplate)
	return err
}

// configureAdded adds the tokens that tokenizer.json does not have, by id.
func (t *Tokenizer) configureAdded(added map[string]addedToken) error {
	byID := make(map[int32]addedToken, len(added))
	for key, tok := range added {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return fmt.Errorf("%.60q is not an id", key)
		}
		tok.ID = int32(id)
		byID[tok.ID] = tok
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if tok := byID[id]; !t.added[id] || t.Token(id) != tok.Content {
			if err := t.addToken(tok); err != nil {
				return err
			}
		}
	}
	return nil
}

// chatTemplate reads a template, or the default one of a list of {name, template}.
func chatTemplate(b json.RawMessage) (string, error) {
	if len(b) == 0 || string(b) == "null" {
		return "", nil
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s, nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(b, &list); err != nil {
		return "", errors.New("chat_template is neither a string nor a list of {name, template}")
	}
	for _, c := range list {
		if c.Name == "default" {
			return c.Template, nil
		}
	}
	return "", errors.New("chat_template has no template named default")
}
