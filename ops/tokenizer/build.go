package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// maxTokens bounds the ids that a file can make us allocate for. The largest vocabulary known
// has 262,144 tokens.
const maxTokens = 1 << 22

// setVocab takes the vocabulary over and gives every id its token.
func (t *Tokenizer) setVocab(d *document) error {
	t.bpe.vocab = d.Model.Vocab
	t.ids = make(map[string]int32, len(d.Model.Vocab)+len(d.AddedTokens))
	for token, id := range d.Model.Vocab {
		if err := t.setToken(id, token, normalToken); err != nil {
			return fmt.Errorf("model.vocab: %w", err)
		}
	}
	return nil
}

// setToken gives id the text and the kind of a token, and makes room for it.
func (t *Tokenizer) setToken(id int32, token string, kind int32) error {
	if id < 0 || id >= maxTokens {
		return fmt.Errorf("token %.60q has id %d", token, id)
	}
	for int(id) >= len(t.tokens) {
		t.tokens = append(t.tokens, "")
		t.kinds = append(t.kinds, unusedToken)
	}
	if t.kinds[id] != unusedToken && t.tokens[id] != token {
		return fmt.Errorf("tokens %.60q and %.60q both have id %d", min(t.tokens[id], token), max(t.tokens[id], token), id)
	}
	if was, ok := t.ids[token]; ok && was != id {
		return fmt.Errorf("token %.60q has ids %d and %d", token, min(was, id), max(was, id))
	}
	t.tokens[id], t.kinds[id], t.ids[token] = token, kind, id
	return nil
}

// setPieces takes over what happens to text before and after the model.
func (t *Tokenizer) setPieces(d *document) (err error) {
	m := &t.bpe
	if t.rewrite, t.spacePrefix, err = newNormalizer(d.Normalizer); err != nil {
		return err
	}
	if t.pre, m.byteLevel, err = newPreTokenizer(d.PreTokenizer); err != nil {
		return err
	}
	m.ignoreMerges, m.fallback, m.fuseUnk = d.Model.IgnoreMerges, d.Model.ByteFallback, d.Model.FuseUnk
	if m.byteLevel {
		return t.setByteLevel(d)
	}
	if t.post, err = newPostDecoder(d.Decoder); err != nil {
		return err
	}
	return t.setFallback(d)
}

// setByteLevel finds the token of every byte.
func (t *Tokenizer) setByteLevel(d *document) error {
	for _, c := range d.Decoder.flatten() {
		if c.Type != "ByteLevel" {
			return fmt.Errorf("decoder: %q after a ByteLevel pre_tokenizer", c.Type)
		}
	}
	t.bpe.fallback = false // every byte is in the vocabulary
	for c, r := range byteRunes {
		id, ok := t.bpe.vocab[string(r)]
		if !ok {
			return fmt.Errorf("model.vocab lacks %q, the token of byte 0x%02X", r, c)
		}
		t.bpe.bytes[c] = id
	}
	return nil
}

// setFallback finds what a character becomes that is not in the vocabulary.
func (t *Tokenizer) setFallback(d *document) error {
	m := &t.bpe
	m.unk = -1
	if d.Model.UnkToken != nil {
		id, ok := m.vocab[*d.Model.UnkToken]
		if !ok {
			return fmt.Errorf("model.unk_token %q is not in model.vocab", *d.Model.UnkToken)
		}
		m.unk, t.UNK, t.kinds[id] = id, id, unknownToken
	}
	if !m.fallback {
		if m.unk < 0 {
			return errors.New("model: no byte_fallback, no unk_token and no ByteLevel: characters would be lost")
		}
		return nil
	}
	for c := range m.bytes {
		token := fmt.Sprintf("<0x%02X>", c)
		id, ok := m.vocab[token]
		if !ok {
			return fmt.Errorf("model: byte_fallback without the token %s", token)
		}
		m.bytes[c], t.kinds[id] = id, byteToken
	}
	return nil
}

// setMerges turns the merges into ranks of pairs. Of two equal merges the later counts, as in
// Hugging Face's tokenizers.
func (t *Tokenizer) setMerges(d *document) error {
	m := &t.bpe
	m.ranks = make(map[uint64]uint32, len(d.Model.Merges))
	m.merges = make([]merge, 0, len(d.Model.Merges))
	for i, parts := range d.Model.Merges {
		var ids [3]int32
		for j, s := range []string{parts[0], parts[1], parts[0] + parts[1]} {
			id, ok := m.vocab[s]
			if !ok {
				return fmt.Errorf("model.merges[%d]: %.60q is not in model.vocab", i, s)
			}
			ids[j] = id
		}
		m.ranks[pair(ids[0], ids[1])] = uint32(i)
		m.merges = append(m.merges, merge{ids[0], ids[1], ids[2]})
	}
	return nil
}

// setAdded takes over the added tokens.
func (t *Tokenizer) setAdded(d *document) error {
	for _, tok := range d.AddedTokens {
		if err := t.addToken(tok); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
	}
	return nil
}

// addToken makes tok an added token, one of the vocabulary's or a new one.
func (t *Tokenizer) addToken(tok addedToken) error {
	if tok.Content == "" {
		return fmt.Errorf("token %d is empty", tok.ID)
	}
	kind := userToken
	if tok.Special || strings.HasPrefix(tok.Content, "<|") && strings.HasSuffix(tok.Content, "|>") {
		kind = controlToken
	}
	if tok.ID == t.UNK {
		kind = unknownToken
	}
	if err := t.setToken(tok.ID, tok.Content, kind); err != nil {
		return err
	}
	t.added[tok.ID] = true
	if !tok.Normalized {
		t.raw.add(tok.Content, tok)
		return nil
	}
	content := tok.Content
	for _, f := range t.rewrite {
		content = f(content)
	}
	t.normal.add(content, tok)
	return nil
}

// setCut lets pieces end before a blank where nothing merges across it. Without it a whole
// text is one piece.
func (t *Tokenizer) setCut(*document) error {
	const blank = "▁"
	if t.pre.pattern != nil || !t.bpe.fallback || t.bpe.ignoreMerges {
		return nil
	}
	for _, m := range t.bpe.merges {
		if strings.Contains(strings.TrimLeft(t.tokens[m.id], blank), blank) {
			return nil
		}
	}
	t.pre.cut = blank
	return nil
}

// setPost reads which tokens the post-processor puts around a text.
func (t *Tokenizer) setPost(d *document) error {
	for _, c := range d.PostProcessor.flatten() {
		switch c.Type {
		case "ByteLevel": // offsets only
		case "TemplateProcessing":
			if err := t.setTemplate(c.Single); err != nil {
				return fmt.Errorf("post_processor: %w", err)
			}
		default:
			return fmt.Errorf("post_processor: unknown type %q", c.Type)
		}
	}
	return nil
}

// setTemplate understands one token before and one after the text.
func (t *Tokenizer) setTemplate(pieces []templatePiece) error {
	before := true
	for i, p := range pieces {
		if p.SpecialToken == nil {
			before = false
			continue
		}
		id, ok := t.ids[p.SpecialToken.ID]
		if !ok {
			return fmt.Errorf("token %q is not in the vocabulary", p.SpecialToken.ID)
		}
		switch {
		case before && i == 0:
			t.BOS, t.AddBOS = id, true
		case !before && i == len(pieces)-1 && !t.AddEOS:
			t.EOS, t.AddEOS = id, true
		default:
			return errors.New("more than one token before or after the text")
		}
	}
	return nil
}
