package tokenizer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/tokenizer"
)

// spm returns a tokenizer.json of SentencePiece's kind: the bytes as tokens 0 to 255, then
// a, b, c, ▁, ab, ▁c. change edits it before it becomes text.
func spm(t *testing.T, change func(file, model map[string]any)) []byte {
	t.Helper()
	vocab := map[string]any{}
	for c := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", c)] = c
	}
	for i, s := range []string{"a", "b", "c", "▁", "ab", "▁c"} {
		vocab[s] = 256 + i
	}
	model := map[string]any{
		"type": "BPE", "byte_fallback": true, "vocab": vocab,
		"merges": []any{"a b", "▁ c"},
	}
	file := map[string]any{
		"model":      model,
		"normalizer": map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"},
		"decoder":    map[string]any{"type": "Sequence", "decoders": []any{map[string]any{"type": "Replace", "pattern": map[string]any{"String": "▁"}, "content": " "}, map[string]any{"type": "ByteFallback"}, map[string]any{"type": "Fuse"}}},
	}
	if change != nil {
		change(file, model)
	}
	b, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseRefuses(t *testing.T) {
	type m = map[string]any
	vocab := func(model m) m { return model["vocab"].(m) }
	split := func(regex string) m {
		return m{"type": "Split", "pattern": m{"Regex": regex}, "behavior": "Isolated", "invert": false}
	}
	cases := []struct {
		what   string
		change func(file, model m)
		want   string // in the error
	}{
		{"another kind of model", func(_, model m) { model["type"] = "Unigram" }, `model.type "Unigram" is not BPE`},
		{"dropout", func(_, model m) { model["dropout"] = 0.1 }, "model.dropout 0.1"},
		{"a prefix of subwords", func(_, model m) { model["continuing_subword_prefix"] = "##" }, `continuing_subword_prefix "##"`},
		{"no vocabulary", func(_, model m) { delete(model, "vocab") }, "model.vocab is empty"},
		{"a negative id", func(_, model m) { vocab(model)["x"] = -1 }, `token "x" has id -1`},
		{"an id that would take gigabytes", func(_, model m) { vocab(model)["x"] = 1 << 30 }, `token "x" has id 1073741824`},
		{"an id that is not an integer", func(_, model m) { vocab(model)["x"] = 1.5 }, "number 1.5"},
		{"two tokens with one id", func(_, model m) { vocab(model)["x"] = 256 }, `tokens "a" and "x" both have id 256`},
		{"a merge of nothing known", func(_, model m) { model["merges"] = []any{"a b", "b a"} }, `model.merges[1]: "ba" is not in model.vocab`},
		{"a merge of three", func(_, model m) { model["merges"] = []any{"a b c"} }, `merge 0, "a b c", is not two tokens`},
		{"a merge that is a number", func(_, model m) { model["merges"] = []any{1} }, "neither a list of strings nor a list of pairs"},
		{"a byte without a token", func(_, model m) { delete(vocab(model), "<0x41>") }, "byte_fallback without the token <0x41>"},
		{"characters without a way out", func(_, model m) { model["byte_fallback"] = false }, "characters would be lost"},
		{"an unknown token that is not there", func(_, model m) { model["unk_token"] = "<unk>" }, `model.unk_token "<unk>" is not in model.vocab`},
		{"an unknown normalizer", func(file, _ m) { file["normalizer"] = m{"type": "NFKC"} }, `normalizer: unknown type "NFKC"`},
		{"a normalizer with a pattern", func(file, _ m) { file["normalizer"] = m{"type": "Replace", "pattern": m{"Regex": "a+"}} }, "normalizer: Replace of a pattern"},
		{"an unknown pattern", func(file, _ m) { file["pre_tokenizer"] = split(`\w+|\W+`) }, `pre_tokenizer: unknown pattern "\\w+|\\W+"`},
		{"an unknown pre-tokenizer", func(file, _ m) { file["pre_tokenizer"] = m{"type": "Digits"} }, `pre_tokenizer: unknown type "Digits"`},
		{"a split that removes", func(file, _ m) { s := split("x"); s["behavior"] = "Removed"; file["pre_tokenizer"] = s }, `Split with behavior "Removed"`},
		{"GPT-2's pattern", func(file, _ m) {
			file["pre_tokenizer"] = m{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
		}, "use_regex"},
		{"bytes without tokens", func(file, _ m) {
			file["pre_tokenizer"] = m{"type": "Sequence", "pretokenizers": []any{split(qwen2Pattern), m{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}}}
			delete(file, "decoder")
		}, "model.vocab lacks"},
		{"an unknown decoder", func(file, _ m) { file["decoder"] = m{"type": "WordPiece"} }, "decoder: WordPiece"},
		{"an unknown post-processor", func(file, _ m) { file["post_processor"] = m{"type": "BertProcessing"} }, `post_processor: unknown type "BertProcessing"`},
		{"a template with an unknown token", func(file, _ m) {
			file["post_processor"] = m{"type": "TemplateProcessing", "single": []any{m{"SpecialToken": m{"id": "<s>"}}}}
		}, `post_processor: token "<s>" is not in the vocabulary`},
		{"an added token with another's id", func(file, _ m) { file["added_tokens"] = []any{m{"id": 256, "content": "<s>"}} }, `added_tokens: tokens "<s>" and "a" both have id 256`},
		{"an added token with two ids", func(file, _ m) { file["added_tokens"] = []any{m{"id": 300, "content": "a"}} }, `added_tokens: token "a" has ids 256 and 300`},
		{"an added token without text", func(file, _ m) { file["added_tokens"] = []any{m{"id": 300, "content": ""}} }, "added_tokens: token 300 is empty"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			_, err := tokenizer.Parse(spm(t, c.change), nil)
			checkError(t, err, "tokenizer.json: ", c.want)
		})
	}
}

func TestParseRefusesWhatIsNotJSON(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "null", `{"model":1}`, "\xff", strings.Repeat(`{"model":`, 20_000)} {
		if _, err := tokenizer.Parse([]byte(text), nil); err == nil {
			t.Errorf("Parse(%.20q) gave no error", text)
		}
	}
}

func TestParseRefusesConfigs(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"bos_token": "<s>"}`, `bos_token "<s>" is not in the vocabulary`},
		{`{"bos_token": 3}`, "3 is not a token"},
		{`{"add_bos_token": true}`, "add_bos_token without bos_token"},
		{`{"add_eos_token": true}`, "add_eos_token without eos_token"},
		{`{"chat_template": 3}`, "chat_template is neither"},
		{`{"chat_template": [{"name": "tool_use", "template": "x"}]}`, "no template named default"},
		{`{"added_tokens_decoder": {"x": {"content": "<s>"}}}`, `added_tokens_decoder: "x" is not an id`},
		{`{"added_tokens_decoder": {"256": {"content": "<s>"}}}`, `tokens "<s>" and "a" both have id 256`},
		{`{`, "unexpected end"},
	} {
		_, err := tokenizer.Parse(spm(t, nil), []byte(c.config))
		checkError(t, err, "tokenizer_config.json: ", c.want)
	}
}

func TestConfigAddsWhatTheFileLacks(t *testing.T) {
	tok, err := tokenizer.Parse(spm(t, nil), []byte(`{
		"added_tokens_decoder": {"300": {"content": "<s>", "special": true}, "301": {"content": "<tool>"}},
		"bos_token": {"content": "<s>"}, "add_bos_token": true, "pad_token": null,
		"chat_template": [{"name": "rag", "template": "no"}, {"name": "default", "template": "yes"}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	if tok.BOS != 300 || tok.EOS != -1 || tok.PAD != -1 || !tok.AddBOS || tok.ChatTemplate != "yes" {
		t.Errorf("BOS %d, EOS %d, PAD %d, AddBOS %t, template %q; want 300, -1, -1, true, yes", tok.BOS, tok.EOS, tok.PAD, tok.AddBOS, tok.ChatTemplate)
	}
	if got, want := tok.EncodeWithBOS("ab<tool>"), []int32{300, 260, 301}; !slices.Equal(got, want) {
		t.Errorf("ids %d, want %d", got, want)
	}
	if got, want := tok.Types()[298:], []int32{5, 5, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("types %d, want %d", got, want)
	}
	if tok.Tokens()[299] != "[PAD299]" || tok.Token(299) != "" || tok.Token(-1) != "" || tok.Token(302) != "" {
		t.Errorf("an id without a token has one")
	}
}

func TestMergesAsPairsAndSpacesInMerges(t *testing.T) {
	tok, err := tokenizer.Parse(spm(t, func(_, model map[string]any) {
		vocab := model["vocab"].(map[string]any)
		vocab[" "], vocab["a "] = 262, 263
		model["merges"] = []any{[]any{"a", "b"}, []any{"a", " "}}
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Merges(), []string{"a b", "a Ġ"}; !slices.Equal(got, want) {
		t.Errorf("merges %q, want %q", got, want)
	}
}

func TestAddedTokensTakeTheirSurroundings(t *testing.T) {
	tok, err := tokenizer.Parse(spm(t, func(file, _ map[string]any) {
		type m = map[string]any
		file["added_tokens"] = []any{
			m{"id": 262, "content": "<l>", "lstrip": true},
			m{"id": 263, "content": "<r>", "rstrip": true},
			m{"id": 264, "content": "word", "single_word": true},
			m{"id": 265, "content": "<l><r>"},
			m{"id": 266, "content": "n n", "normalized": true},
		}
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		ids  []int32
	}{
		{"a \n<l> b", []int32{256, 262, 259, 257}},
		{"a <r> \t\nb", []int32{256, 259, 263, 257}},
		{"a <r>  <l>b", []int32{256, 259, 263, 262, 257}},
		{"a <l><r> b", []int32{256, 259, 265, 259, 257}},
		{"word ab", []int32{264, 259, 260}},
		{"(word)", []int32{'(', 264, ')'}},
		{"words", []int32{'w', 'o', 'r', 'd', 's'}},
		{"éword", []int32{0xc3, 0xa9, 'w', 'o', 'r', 'd'}},
		{"an nb", []int32{256, 266, 257}},
		{"a\xffb", []int32{256, 0xef, 0xbf, 0xbd, 257}},
	} {
		for i, id := range c.ids { // bytes of a, b and c have tokens of their own
			if id >= 'a' && id <= 'c' {
				c.ids[i] = 256 + id - 'a'
			}
		}
		checkIDs(t, tok, c.text, c.ids)
	}
}

func TestMetaspace(t *testing.T) {
	for _, c := range []struct {
		scheme string
		text   string
		ids    []int32
	}{
		{"first", "c <s>c", []int32{261, 259, 262, 258}},
		{"always", "c <s>c", []int32{261, 259, 262, 261}},
		{"never", "c <s>c", []int32{258, 259, 262, 258}},
		{"first", " c", []int32{261}},
	} {
		tok, err := tokenizer.Parse(spm(t, func(file, _ map[string]any) {
			type m = map[string]any
			file["normalizer"] = nil
			file["pre_tokenizer"] = m{"type": "Metaspace", "replacement": "▁", "prepend_scheme": c.scheme, "split": false}
			file["decoder"] = m{"type": "Metaspace", "replacement": "▁", "prepend_scheme": c.scheme, "split": false}
			file["added_tokens"] = []any{m{"id": 262, "content": "<s>", "special": true}}
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(c.text); !slices.Equal(got, c.ids) {
			t.Errorf("%s: Encode(%q) = %d, want %d", c.scheme, c.text, got, c.ids)
		}
		if tok.SpacePrefix() != (c.scheme != "never") {
			t.Errorf("%s: SpacePrefix() = %t", c.scheme, tok.SpacePrefix())
		}
	}
}

func TestUnknownCharacters(t *testing.T) {
	for _, fuse := range []bool{false, true} {
		tok, err := tokenizer.Parse(spm(t, func(_, model map[string]any) {
			model["byte_fallback"], model["fuse_unk"], model["unk_token"] = false, fuse, "c"
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []int32{256, 258, 258, 257, 258}
		if fuse {
			want = []int32{256, 258, 257, 258}
		}
		checkIDs(t, tok, "aéxbz", want)
	}
}

func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, s := range parts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q, want %q in it", err, s)
		}
	}
}
