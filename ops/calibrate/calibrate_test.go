package calibrate_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bonsai/ops/calibrate"
	"bonsai/ops/opstest"
	"bonsai/ops/safetensors"
	"bonsai/ops/tokenizer"
)

// The tokenizers of two trained models: one like Qwen's, which adds nothing to a text, and
// one that begins each with <s>.
const (
	qwen    = "tiny-qwen3"
	stories = "stories260K"
)

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"../../testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// files are the two files of a tokenizer.
type files struct{ tokenizer, config []byte }

func filesOf(t testing.TB, model string) files {
	t.Helper()
	return files{read(t, "models", model, "tokenizer.json"), read(t, "models", model, "tokenizer_config.json")}
}

func (f files) parse(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Parse(f.tokenizer, f.config)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// lines returns texts as documents.
func lines(t testing.TB, texts ...string) []byte {
	t.Helper()
	var b []byte
	for _, s := range texts {
		line, err := json.Marshal(map[string]string{"text": s})
		if err != nil {
			t.Fatal(err)
		}
		b = append(append(b, line...), '\n')
	}
	return b
}

// A result is what Run made.
type result struct {
	ids   []int32
	shape []int64
	facts map[string]string
	note  string
	bytes []byte
}

// blocks returns the tokens of each block.
func (r *result) blocks() [][]int32 { return slices.Collect(slices.Chunk(r.ids, int(r.shape[1]))) }

func run(op calibrate.Calibrate, f files, takes ...[]byte) (*result, error) {
	var in []*io.SectionReader
	for _, b := range append(slices.Clone(takes), f.tokenizer, f.config) {
		in = append(in, opstest.Blob(b))
	}
	return runInputs(context.Background(), op, in)
}

func runInputs(ctx context.Context, op calibrate.Calibrate, in []*io.SectionReader) (*result, error) {
	r, last := &result{}, 0.0
	report := func(done float64, note string) {
		if done < last || done > 1 {
			panic(fmt.Sprintf("progress %v after %v", done, last))
		}
		last, r.note = done, note
	}
	var out bytes.Buffer
	if err := op.Run(ctx, in, []io.Writer{&out}, report); err != nil {
		return nil, err
	}
	if last != 1 {
		return nil, fmt.Errorf("the last progress is %v", last)
	}
	r.bytes = out.Bytes()
	f, err := safetensors.Open(bytes.NewReader(r.bytes), int64(len(r.bytes)), "calibration")
	if err != nil {
		return nil, err
	}
	if r.ids, err = f.Int32s("tokens"); err != nil {
		return nil, err
	}
	tensor, _ := f.Lookup("tokens")
	r.shape, r.facts = tensor.Shape, f.Metadata()
	return r, nil
}

func mustRun(t testing.TB, op calibrate.Calibrate, f files, takes ...[]byte) *result {
	t.Helper()
	r, err := run(op, f, takes...)
	if err != nil {
		t.Fatalf("Run(%+v) = %v", op, err)
	}
	return r
}

// sorted returns blocks in an order that depends on their tokens alone.
func sorted(blocks [][]int32) [][]int32 {
	return slices.SortedFunc(slices.Values(blocks), slices.Compare)
}

func equal(a, b [][]int32) bool {
	return slices.EqualFunc(a, b, slices.Equal[[]int32])
}

func TestManifest(t *testing.T) {
	opstest.CheckManifest(t, calibrate.Calibrate{Length: 8, Takes: []calibrate.Take{{Name: "a"}, {Name: "b", Blocks: 2}}})
}

// TestPacking cuts joined ids by hand: with all blocks taken, each of them is there once,
// whatever the order.
func TestPacking(t *testing.T) {
	f := filesOf(t, qwen)
	tok := f.parse(t)
	texts := slices.Collect(strings.SplitSeq(string(read(t, "texts", "calibration.txt"))[:20000], "<|endoftext|>"))
	end, _ := tok.ID("<|endoftext|>")
	var ids []int32
	for i, s := range texts {
		if i > 0 {
			ids = append(ids, end)
		}
		ids = append(ids, tok.Encode(s)...)
	}
	for _, length := range []int{1, 7, 128, len(ids) - 1, len(ids)} {
		op := calibrate.Calibrate{Length: length, Takes: []calibrate.Take{{Name: "all"}}}
		r := mustRun(t, op, f, lines(t, texts...))
		n := len(ids) / length
		want := slices.Collect(slices.Chunk(ids[:n*length], length))
		if !slices.Equal(r.shape, []int64{int64(n), int64(length)}) || !equal(sorted(r.blocks()), sorted(want)) {
			t.Errorf("length %d: blocks %v are not those of the joined ids, [%d %d]", length, r.shape, n, length)
		}
		if n > 20 && equal(r.blocks(), want) {
			t.Errorf("length %d: %d blocks stand in the order of the text", length, n)
		}
		for key, want := range map[string]int{
			"documents": len(texts), "tokens": len(ids), "blocks": n, "chosen": n, "dropped": len(ids) - n*length,
			"length": length,
		} {
			if r.facts[key] != strconv.Itoa(want) {
				t.Errorf("length %d: %s = %s, want %d", length, key, r.facts[key], want)
			}
		}
	}
}

// TestGolden pins what a seed chooses: no update may change a calibration that a recipe names.
func TestGolden(t *testing.T) {
	text := string(read(t, "texts", "calibration.txt"))[:20000]
	op := calibrate.Calibrate{
		Length: 16, Seed: 3, Separator: "<|im_end|>",
		Takes: []calibrate.Take{{Name: "a", Blocks: 40, Seed: 1}, {Name: "b", Blocks: 7}},
	}
	r := mustRun(t, op, filesOf(t, qwen), lines(t, text[:9000], text[9000:]), lines(t, text[:4000]))
	var raw []byte
	for _, id := range r.ids {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
	}
	sum := sha256.Sum256(raw)
	const want = "c887ce0289f007d9"
	if got := hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("the tokens' SHA-256 begins with %s, want %s", got, want)
	}
}

func TestSameSeedGivesSameBytes(t *testing.T) {
	f, text := filesOf(t, qwen), lines(t, string(read(t, "texts", "calibration.txt"))[:20000])
	op := calibrate.Calibrate{Length: 16, Seed: 3, Takes: []calibrate.Take{{Name: "a", Blocks: 40, Seed: 1}}}
	first := mustRun(t, op, f, text)
	if again := mustRun(t, op, f, text); !bytes.Equal(first.bytes, again.bytes) {
		t.Error("the same seed gave other bytes")
	}
	other := op
	other.Seed++
	if r := mustRun(t, other, f, text); equal(sorted(r.blocks()), sorted(first.blocks())) {
		t.Error("another seed chose the same blocks")
	}
	other = op
	other.Takes = []calibrate.Take{{Name: "a", Blocks: 40, Seed: 2}}
	if r := mustRun(t, other, f, text); equal(sorted(r.blocks()), sorted(first.blocks())) {
		t.Error("another seed of the take chose the same blocks")
	}
}

// TestTakes states that each take chooses by itself: beside others it chooses what it
// chooses alone.
func TestTakes(t *testing.T) {
	f, text := filesOf(t, qwen), string(read(t, "texts", "calibration.txt"))
	documents := [][]byte{lines(t, text[:15000]), lines(t, text[15000:20000], text[20000:30000]), lines(t, text[30000:36000])}
	takes := []calibrate.Take{{Name: "a", Blocks: 30, Seed: 5}, {Name: "b", Blocks: 12, Seed: 5}, {Name: "c"}}
	op := calibrate.Calibrate{Length: 32, Seed: 1, Takes: takes}
	all := mustRun(t, op, f, documents...)
	var alone [][]int32
	total := map[string]int{}
	counted := []string{"documents", "tokens", "blocks", "chosen", "dropped"}
	for i, take := range takes {
		op.Takes = []calibrate.Take{take}
		r := mustRun(t, op, f, documents[i])
		alone = append(alone, r.blocks()...)
		for _, key := range counted {
			n, _ := strconv.Atoi(r.facts[key])
			total[key] += n
			if is := all.facts["take."+take.Name+"."+key]; is != r.facts[key] {
				t.Errorf("take %s: %s = %s, alone %s", take.Name, key, is, r.facts[key])
			}
		}
		if is := all.facts["take."+take.Name+".seed"]; is != strconv.FormatUint(take.Seed, 10) {
			t.Errorf("take %s: seed %s, want %d", take.Name, is, take.Seed)
		}
	}
	for _, key := range counted {
		if all.facts[key] != strconv.Itoa(total[key]) {
			t.Errorf("%s = %s, of all takes %d", key, all.facts[key], total[key])
		}
	}
	if total["chosen"] != len(alone) || total["tokens"] != 32*total["blocks"]+total["dropped"] {
		t.Errorf("counts %v do not add up for %d blocks of 32", total, len(alone))
	}
	if !equal(sorted(all.blocks()), sorted(alone)) {
		t.Error("takes together chose other blocks than alone")
	}
	if equal(all.blocks()[:30], alone[:30]) {
		t.Error("blocks of the takes are not mixed")
	}
}

func TestFacts(t *testing.T) {
	f := filesOf(t, qwen)
	op := calibrate.Calibrate{Length: 2, Seed: 9, Separator: "<|im_end|>", Takes: []calibrate.Take{{Name: "x", Blocks: 2, Seed: 4}}}
	r := mustRun(t, op, f, lines(t, "a b c d e f g h"))
	digest := sha256.Sum256(f.tokenizer)
	for key, want := range map[string]string{
		"seed": "9", "length": "2", "separator": "<|im_end|>", "tokenizer": hex.EncodeToString(digest[:]), "take.x.seed": "4",
	} {
		if r.facts[key] != want {
			t.Errorf("%s = %q, want %q", key, r.facts[key], want)
		}
	}
	n := len(f.parse(t).Encode("a b c d e f g h"))
	want := fmt.Sprintf("2 blocks of 2 tokens, of %d; 1 documents, %d tokens, %d dropped", n/2, n, n%2)
	if r.note != want {
		t.Errorf("note %q, want %q", r.note, want)
	}
	keys := slices.Sorted(maps.Keys(r.facts))
	if len(keys) != 4+5+6 {
		t.Errorf("facts %v", keys)
	}
}

// TestSeparators checks what stands between documents, in Run and in Tokens.
func TestSeparators(t *testing.T) {
	noEnd := filesOf(t, qwen)
	noEnd.tokenizer = bytes.ReplaceAll(noEnd.tokenizer, []byte("<|endoftext|>"), []byte("<|other|>"))
	noEnd.config = bytes.ReplaceAll(noEnd.config, []byte("<|endoftext|>"), []byte("<|other|>"))
	for _, c := range []struct {
		what   string
		files  files
		name   string
		token  string // that is wanted
		before bool   // also before the first document
	}{
		{"like Qwen's", filesOf(t, qwen), "", "<|endoftext|>", false},
		{"like Qwen's, without a config", files{filesOf(t, qwen).tokenizer, nil}, "", "<|endoftext|>", false},
		{"without <|endoftext|>", noEnd, "", "<|im_end|>", false},
		{"that adds BOS", filesOf(t, stories), "", "<s>", true},
		{"that adds BOS, EOS named", filesOf(t, stories), "</s>", "</s>", false},
		{"that adds BOS, BOS named", filesOf(t, stories), "<s>", "<s>", true},
		{"like Qwen's, a word named", filesOf(t, qwen), "e", "e", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			tok := c.files.parse(t)
			sep, ok := tok.ID(c.token)
			if !ok {
				t.Fatalf("no token %s", c.token)
			}
			texts := []string{"Once upon a time", "", "", "The end."}
			var want []int32
			for i, s := range texts {
				if i > 0 || c.before {
					want = append(want, sep)
				}
				want = append(want, tok.Encode(s)...)
			}
			op := calibrate.Calibrate{Length: len(want), Separator: c.name, Takes: []calibrate.Take{{Name: "a", Blocks: 1}}}
			if r := mustRun(t, op, c.files, lines(t, texts...)); !slices.Equal(r.ids, want) {
				t.Errorf("Run made %v, want %v", r.ids, want)
			}
		})
	}
}

func TestSpecialTokensInTextAreTokens(t *testing.T) {
	f := filesOf(t, qwen)
	tok := f.parse(t)
	end, _ := tok.ID("<|im_end|>")
	want := slices.Concat(tok.Encode("a"), []int32{end}, tok.Encode("b"))
	op := calibrate.Calibrate{Length: len(want), Takes: []calibrate.Take{{Name: "a", Blocks: 1}}}
	if r := mustRun(t, op, f, lines(t, "a<|im_end|>b")); !slices.Equal(r.ids, want) {
		t.Errorf("Run made %v, want %v", r.ids, want)
	}
}

func TestRefuses(t *testing.T) {
	good := filesOf(t, qwen)
	noSeparator := files{bytes.ReplaceAll(good.tokenizer, []byte("<|endoftext|>"), []byte("<|other|>")), nil}
	one := func(n int) []calibrate.Take { return []calibrate.Take{{Name: "x", Blocks: n}} }
	text := lines(t, "a b c", "d")
	ids := len(good.parse(t).Encode("a b c")) + 1 + len(good.parse(t).Encode("d"))
	for _, c := range []struct {
		what      string
		op        calibrate.Calibrate
		files     files
		documents []byte
		want      string
	}{
		{"no length", calibrate.Calibrate{Takes: one(1)}, good, text, "blocks of 0 tokens"},
		{"a negative length", calibrate.Calibrate{Length: -1, Takes: one(1)}, good, text, "blocks of -1 tokens"},
		{"an enormous length", calibrate.Calibrate{Length: 1 << 60, Takes: one(1)}, good, text, "blocks of 1152921504606846976 tokens"},
		{"a negative number", calibrate.Calibrate{Length: 1, Takes: one(-1)}, good, text, `take "x": -1 blocks`},
		{"an enormous number", calibrate.Calibrate{Length: 1, Takes: one(1 << 40)}, good, text, `take "x": 1099511627776 blocks`},
		{"no takes", calibrate.Calibrate{Length: 1}, good, text, "calibration takes nothing"},
		{"a take without its input", calibrate.Calibrate{Length: 1, Takes: []calibrate.Take{{Name: "x"}, {Name: "y"}}}, good, text, "3 inputs for 2 takes"},
		{
			"too few blocks",
			calibrate.Calibrate{Length: 2, Takes: one(10)},
			good, text,
			fmt.Sprintf(`take "x": asked for 10 blocks of 2 tokens; its 2 documents have %d tokens, %d blocks`, ids, ids/2),
		},
		{"less than a block", calibrate.Calibrate{Length: 99, Takes: one(0)}, good, text, fmt.Sprintf(`take "x": its 2 documents have %d tokens, not one block of 99`, ids)},
		{"no documents", calibrate.Calibrate{Length: 1, Takes: one(0)}, good, nil, `take "x": its 0 documents have 0 tokens`},
		{"a separator that is no token", calibrate.Calibrate{Length: 1, Separator: "<nope>", Takes: one(1)}, good, text, `separator "<nope>" is not a token`},
		{"no separator", calibrate.Calibrate{Length: 1, Takes: one(1)}, noSeparator, text, "no token to put between documents"},
		{"documents that are not JSON", calibrate.Calibrate{Length: 1, Takes: one(1)}, good, []byte("{\"text\": \"a\"}\nnope\n"), `take "x": documents, line 2`},
		{"documents without text", calibrate.Calibrate{Length: 1, Takes: one(1)}, good, []byte(`{"txt": "a"}`), `documents, line 1: no "text"`},
		{"documents cut off", calibrate.Calibrate{Length: 1, Takes: one(1)}, good, text[:len(text)-5], `documents, line 2`},
		{"a tokenizer that is not one", calibrate.Calibrate{Length: 1, Takes: one(1)}, files{[]byte("{}"), nil}, text, "tokenizer.json"},
		{"a config that is not one", calibrate.Calibrate{Length: 1, Takes: one(1)}, files{good.tokenizer, []byte("[")}, text, "tokenizer_config.json"},
	} {
		r, err := run(c.op, c.files, c.documents)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Run = %v, %v, want an error with %q", c.what, r, err, c.want)
		}
	}
	twice := calibrate.Calibrate{Length: 1, Takes: []calibrate.Take{{Name: "x"}, {Name: "x"}}}
	if _, err := run(twice, good, text, text); err == nil || !strings.Contains(err.Error(), `two takes named "x"`) {
		t.Errorf("two takes of one name: Run = %v", err)
	}
	if _, err := runInputs(context.Background(), twice, nil); err == nil {
		t.Error("no inputs: Run = nil")
	}
}

func TestRunStopsWhenCancelled(t *testing.T) {
	f := filesOf(t, qwen)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	op := calibrate.Calibrate{Length: 1, Takes: []calibrate.Take{{Name: "x"}}}
	in := []*io.SectionReader{opstest.Blob(lines(t, "a")), opstest.Blob(f.tokenizer), opstest.Blob(f.config)}
	if _, err := runInputs(ctx, op, in); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
}

// A full writer takes n bytes.
type full struct{ n int }

func (w *full) Write(p []byte) (int, error) {
	if len(p) > w.n {
		return 0, errFull
	}
	w.n -= len(p)
	return len(p), nil
}

var errFull = errors.New("no space left")

func TestRunPassesOnWhatWritersSay(t *testing.T) {
	f := filesOf(t, qwen)
	op := calibrate.Calibrate{Length: 1, Takes: []calibrate.Take{{Name: "x"}}}
	size := len(mustRun(t, op, f, lines(t, "a b c d e f")).bytes)
	for n := range size {
		in := []*io.SectionReader{opstest.Blob(lines(t, "a b c d e f")), opstest.Blob(f.tokenizer), opstest.Blob(f.config)}
		err := op.Run(t.Context(), in, []io.Writer{&full{n}}, func(float64, string) {})
		if !errors.Is(err, errFull) {
			t.Fatalf("space for %d bytes of %d: Run = %v", n, size, err)
		}
	}
}

// FuzzCalibrate checks for any documents that Run refuses them or makes blocks whose counts
// add up.
func FuzzCalibrate(f *testing.F) {
	f.Add([]byte(`{"text": "a b c"}`), 1, 2, uint64(3))
	f.Add([]byte("{\"text\": \"\"}\n\n{\"text\": \"\\ud800<|im_end|>\"}"), 3, 0, uint64(0))
	f.Add([]byte("{"), 1, 1, uint64(1))
	tok := filesOf(f, stories)
	vocab := tok.parse(f).VocabSize()
	f.Fuzz(func(t *testing.T, documents []byte, length, blocks int, seed uint64) {
		op := calibrate.Calibrate{Length: length, Seed: seed, Takes: []calibrate.Take{{Name: "x", Blocks: blocks, Seed: seed}}}
		r, err := run(op, tok, documents)
		if err != nil {
			return
		}
		count := func(key string) int {
			n, err := strconv.Atoi(r.facts[key])
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			return n
		}
		if count("tokens") != length*count("blocks")+count("dropped") || count("dropped") >= length ||
			len(r.ids) != length*count("chosen") || blocks > 0 && count("chosen") != blocks {
			t.Errorf("%d ids, %v", len(r.ids), r.facts)
		}
		for i, id := range r.ids {
			if id < 0 || int(id) >= vocab {
				t.Fatalf("id %d is %d", i, id)
			}
		}
	})
}
