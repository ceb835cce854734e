package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
)

// base is a recipe without a mistake. {model} stands for a checkpoint's folder.
const base = `
checkpoint "base" { from = "{model}" }
dataset "text" {
  kind = "text"
  path = "text.txt"
}
calibration "mix" {
  model  = checkpoint.base
  length = 16
  take "text" {
    from = dataset.text
    n    = 32
  }
}
rotation "signs" { model = checkpoint.base }
codes "body" {
  model       = checkpoint.base
  calibration = calibration.mix
  rotation    = rotation.signs
}
endpoints "ends" { codes = codes.body }
gguf "file" {
  weights = endpoints.ends
  name    = "tiny"
}
evaluation "final" {
  model   = gguf.file
  against = checkpoint.base
  window  = 16
  text "text" { from = dataset.text }
}
`

// folder returns a folder with checkpoints of several kinds and a text.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, edit := range map[string]func(c *model.Config){
		"qwen3": func(*model.Config) {},
		"tied":  func(c *model.Config) { c.Tied = true },
		"odd":   func(c *model.Config) { c.Intermediate = 160 },
		"large": func(c *model.Config) { c.Intermediate = 512 },
	} {
		c := modeltest.Tiny("qwen3")
		edit(c)
		modeltest.Write(t, filepath.Join(dir, name), c, modeltest.Random(c, 1))
		addTokenizer(t, filepath.Join(dir, name))
	}
	c := modeltest.Tiny("qwen2")
	modeltest.Write(t, filepath.Join(dir, "qwen2"), c, modeltest.Random(c, 1))
	addTokenizer(t, filepath.Join(dir, "qwen2"))
	write(t, filepath.Join(dir, "text.txt"), "some text")
	write(t, filepath.Join(dir, "lora", "adapter_config.json"), "{}")
	write(t, filepath.Join(dir, "moe", "config.json"), `{"model_type": "qwen3_moe", "num_experts": 8}`)
	write(t, filepath.Join(dir, "new", "config.json"), `{"model_type": "gpt9"}`)
	c = modeltest.Tiny("qwen3")
	modeltest.Write(t, filepath.Join(dir, "mute"), c, modeltest.Random(c, 1))
	c = modeltest.Tiny("qwen3")
	modeltest.Write(t, filepath.Join(dir, "shards"), c, modeltest.Random(c, 1))
	split(t, filepath.Join(dir, "shards"))
	if err := os.Remove(filepath.Join(dir, "shards", "model-00002-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func addTokenizer(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "tokenizer.json"), "{}")
	write(t, filepath.Join(dir, "tokenizer_config.json"), "{}")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestMistakes makes one mistake at a time in a recipe without any, and holds what is
// said of it: one diagnostic, with these words.
func TestMistakes(t *testing.T) {
	dir := folder(t)
	if _, said := load(t, dir, strings.ReplaceAll(base, "{model}", "qwen3")); said != "" {
		t.Fatalf("the recipe without a mistake: %s", said)
	}
	for _, c := range []struct{ name, model, old, new, want string }{
		{"a folder that is not there", "nowhere", "", "", "2: Checkpoint not found: There is no folder"},
		{"an adapter", "lora", "", "", "belongs to an adapter"},
		{"a mixture of experts", "moe", "", "", "a mixture of experts"},
		{"an unknown architecture", "new", "", "", `model_type "gpt9"; supported are`},
		{"a width that is no multiple of 128", "odd", "", "", "15: Model that cannot be rotated: input width 160"},
		{"no tokenizer", "mute", "", "", "8: Checkpoint without a tokenizer"},
		{"an architecture that the runtime refuses", "qwen2", "", "", "Model that the format cannot express"},
		{"too few tokens", "qwen3", "n    = 32", "n    = 31", "18: Too few tokens to calibrate on: The calibration has 496 tokens, and the widest inputs have 256 columns: at least 2 a column are needed, and 16 are usual. Take more blocks, at least 32"},
		{"a tied table", "tied", "", "", "21: Endpoints of a tied model"},
		{"a file that is not there", "qwen3", `"text.txt"`, `"gone.txt"`, "5: File not found"},
		{"a folder for a file", "qwen3", `"text.txt"`, `"qwen3"`, "5: File expected"},
		{"an unknown kind", "qwen3", `"text"
  path`, `"words"
  path`, "4: Settings that do not fit"},
		{"an attribute of another kind", "qwen3", `"text.txt"`, `"text.txt"
  field = "x"`, "Settings that do not fit"},
		{"a length beyond the context", "qwen3", "length = 16", "length = 1000000", "9: Length out of range"},
		{"no take", "qwen3", `  take "text" {
    from = dataset.text
    n    = 32
  }
`, "", "7: Calibration on nothing"},
		{"a take of nothing", "qwen3", "n    = 32", "n    = 0", "12: Number of blocks out of range"},
		{"a take of more than there can be", "qwen3", "n    = 32", "n    = 99999999999999999", "12: Number of blocks out of range: take \"text\" must draw from 1 to 16777216 blocks, and n is 99999999999999999"},
		{"a length whose product with n overflows", "qwen3", "length = 16", "length = 4611686018427387904", "9: Length out of range"},
		{"tokens to score that overflow", "qwen3", "text \"text\" { from = dataset.text }", "text \"text\" {\n    from = dataset.text\n    tokens = 4611686018427387904\n  }", "32: Tokens out of range"},
		{"rows that overflow", "qwen3", `"text.txt"`, "\"text.txt\"\n  from = 9223372036854775807\n  n = 1", "4: Settings that do not fit"},
		{"a negative context", "qwen3", `name    = "tiny"`, "name    = \"tiny\"\n  context = -1", "25: Context out of range"},
		{"a context beyond the format's", "qwen3", `name    = "tiny"`, "name    = \"tiny\"\n  context = 4294967296", "25: Context out of range"},
		{"a number beyond an int", "qwen3", "n    = 32", "n    = 99999999999999999999", "whole number"},
		{"a shard that is missing", "shards", "", "", "2: Unusable checkpoint: shards: {dir}/shards/model.safetensors.index.json: invalid safetensors file: shard \"model-00002-of-00002.safetensors\" is missing"},
		{"two takes of one name", "qwen3", "    n    = 32\n  }", "    n    = 32\n  }\n  take \"text\" {\n    from = dataset.text\n    n = 1\n  }", "Duplicate take"},
		{"an unknown attribute in a take", "qwen3", "n    = 32", "n    = 32\n    m = 1", "Unsupported argument"},
		{"a misspelled argument", "qwen3", `name    = "tiny"`, `nme    = "tiny"`, `Unsupported argument: An argument named "nme" is not expected here. Did you mean "name"?`},
		{"another kind of step", "qwen3", "rotation    = rotation.signs", "rotation    = calibration.mix", "19: Wrong kind of reference: This must refer to a rotation, and it is a calibration"},
		{"text for a step", "qwen3", "rotation    = rotation.signs", `rotation    = "signs"`, "and it is a value of type string"},
		{"null for a step", "qwen3", "rotation    = rotation.signs", "rotation    = null", "19: Wrong kind of reference: This must refer to a rotation, and it is null or missing"},
		{"a missing reference", "qwen3", "  rotation    = rotation.signs\n", "", "16: Missing required argument: The argument \"rotation\" is required"},
		{"a missing reference in a nested block", "qwen3", "    from = dataset.text\n", "", "and it is null or missing"},
		{"an unknown method", "qwen3", "rotation    = rotation.signs", "rotation    = rotation.signs\n  method = \"magic\"", "20: Unknown method"},
		{"negative damping", "qwen3", "rotation    = rotation.signs", "rotation    = rotation.signs\n  damping = -1", "20: Damping out of range"},
		{"a pattern that matches nothing", "qwen3", "rotation    = rotation.signs", "rotation    = rotation.signs\n  keep = [\"model.layer.*\"]", "20: Pattern without a tensor"},
		{"a malformed pattern", "qwen3", "rotation    = rotation.signs", "rotation    = rotation.signs\n  keep = [\"[\"]", "Malformed pattern"},
		{"a block that is no power of two", "qwen3", "{ model = checkpoint.base }", "{\n  model = checkpoint.base\n  block = 96\n}", "17: Unusable Hadamard block"},
		{"endpoints of endpoints", "qwen3", "gguf \"file\"", "endpoints \"again\" { codes = endpoints.ends }\ngguf \"file\"", "22: Wrong kind of reference"},
		{"an unknown format", "qwen3", `name    = "tiny"`, "name    = \"tiny\"\n  format = \"Q4_K\"", "Unknown format: The formats are PTQ1_0, PQ2_0"},
		{"a name that is a path", "qwen3", `name    = "tiny"`, `name    = "../tiny"`, "24: Unusable name"},
		{"a window beyond the context", "qwen3", "window  = 16", "window  = 100000", "29: Window out of range"},
		{"BOS at an unknown place", "qwen3", "window  = 16", "window  = 16\n  bos = \"always\"", "30: Unknown place for BOS"},
		{"no text to score", "qwen3", "  text \"text\" { from = dataset.text }\n", "", "26: Evaluation on nothing"},
		{"a model in a dataset's place", "qwen3", "text \"text\" { from = dataset.text", "text \"text\" { from = gguf.file", "30: Wrong kind of reference"},
		{"a rotation in a model's place", "qwen3", "model   = gguf.file", "model   = rotation.signs", "27: Wrong kind of reference"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.ReplaceAll(base, "{model}", c.model)
			if c.old != "" && !strings.Contains(text, c.old) {
				t.Fatalf("the recipe does not hold %q", c.old)
			}
			_, said := load(t, dir, strings.Replace(text, c.old, c.new, 1))
			if !strings.Contains(said, strings.ReplaceAll(c.want, "{dir}", dir)) || strings.Count(said, "\n") > 0 {
				t.Errorf("said\n%s\nwant one diagnostic with\n%s", said, c.want)
			}
		})
	}
}

func TestRotationOfAnotherModel(t *testing.T) {
	dir := folder(t)
	text := strings.ReplaceAll(base, "{model}", "qwen3") + `checkpoint "other" { from = "large" }`
	text = strings.Replace(text, `"signs" { model = checkpoint.base }`, `"signs" { model = checkpoint.other }`, 1)
	if _, said := load(t, dir, text); !strings.Contains(said, "Rotation of another model") {
		t.Errorf("said %s", said)
	}
}

// TestKeep holds that a tensor that is kept has no codes, and is in no Hessian's group
// when all of the group is kept.
func TestKeep(t *testing.T) {
	dir := folder(t)
	text := strings.ReplaceAll(base, "{model}", "qwen3")
	text = strings.Replace(text, "rotation    = rotation.signs", `rotation    = rotation.signs
  keep = ["*.0.*down_proj.weight", "*.v_proj.weight"]`, 1)
	r, said := load(t, dir, text)
	if said != "" {
		t.Fatal(said)
	}
	names := map[string]bool{}
	for a := range r.Graph.Actions() {
		names[a.String()] = true
	}
	if names["codes.body layer 0 down codes"] || !names["codes.body layer 1 down codes"] || !names["codes.body layer 0 qkv codes"] {
		t.Errorf("actions are %v", names)
	}
}
