package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/rules"
	"bonsai/rules/rulestest"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

// TestMain lets the test binary pose as the commands that scripts run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"bonsai":    main,
		"toybonsai": toyMain,
		"smalldisk": smallDisk,
	})
}

// toyMain is bonsai with toy rules, for graphs of any size: see rulestest.
func toyMain() { serve(func(rules.Settings) rules.Catalogue { return rulestest.Catalogue() }) }

// topData is the folder of test data that packages share.
const topData = "../../testdata"

// TestScripts tells each story in testdata/script, at the top of the repository.
func TestScripts(t *testing.T) {
	data, err := filepath.Abs(topData)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(data, "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TESTDATA", data)
			env.Setenv("BONSAI_CACHE", filepath.Join(env.WorkDir, "cache"))
			return os.WriteFile(filepath.Join(env.WorkDir, "text.txt"), sampleText(t), 0o666)
		},
		Condition: func(cond string) (bool, error) {
			if cond != "mounts" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return exec.Command("smalldisk", t.TempDir(), "100k", "true").Run() == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model":   func(ts *testscript.TestScript, _ bool, args []string) { writeModel(t, ts, args) },
			"replace": replace,
			"damage":  damage,
			"extract": extract,
			"past":    past,
			"listing": listing,
		},
	})
}

// sampleText returns some stories, enough to calibrate small models on.
func sampleText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(topData, "texts", "calibration.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return text[:20000]
}

// writeModel is the command model DIR [KIND] [FLAW]: it writes an untrained checkpoint
// with a tokenizer, and does to it what the name of the flaw says.
func writeModel(t *testing.T, ts *testscript.TestScript, args []string) {
	kind, flaw := "qwen3", ""
	if len(args) > 1 {
		kind = args[1]
	}
	if len(args) > 2 {
		flaw = args[2]
	}
	dir := ts.MkAbs(args[0])
	ts.Check(smallModel(t, dir, kind, flaw))
}

// smallModel writes a checkpoint with the tokenizer of the trained model in testdata.
func smallModel(t *testing.T, dir, kind, flaw string) error {
	t.Helper()
	c := modeltest.Tiny(kind)
	c.Vocab = 2048
	if flaw == "narrow" {
		c.Intermediate = 192
	}
	modeltest.Write(t, dir, c, modeltest.Random(c, 1))
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "generation_config.json"} {
		text, err := os.ReadFile(filepath.Join(topData, "models", "tiny-qwen3", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return spoil(dir, flaw, c)
}

// spoil makes a checkpoint wrong in one way.
func spoil(dir, flaw string, c *model.Config) error {
	config, weights := filepath.Join(dir, "config.json"), filepath.Join(dir, "model.safetensors")
	switch flaw {
	case "", "narrow":
		return nil
	case "truncated":
		return rewrite(weights, func(b []byte) []byte { return b[:len(b)-100] })
	case "missing-weights":
		return os.Remove(weights)
	case "nan":
		return rewrite(weights, func(b []byte) []byte {
			head := 8 + int(binary.LittleEndian.Uint64(b))
			at := head + 4*(c.Vocab*c.Hidden+c.Hidden+7) // in the first projection
			binary.LittleEndian.PutUint32(b[at:], math.Float32bits(float32(math.NaN())))
			return b
		})
	case "moe":
		return rewrite(config, func(b []byte) []byte {
			return bytes.Replace(b, []byte("{"), []byte(`{"num_experts": 8, "num_experts_per_tok": 2,`), 1)
		})
	case "unknown":
		return rewrite(config, func(b []byte) []byte {
			return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(c.Type), []byte("gptj")), []byte("Qwen3"), []byte("GPTJ"))
		})
	default:
		return fmt.Errorf("no flaw is called %q", flaw)
	}
}

func rewrite(path string, change func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, change(b), 0o666)
}

// listing is the command listing FILE: it writes the name, the size, the mode and the time
// of every file and folder below the working directory, but for listings.
func listing(ts *testscript.TestScript, _ bool, args []string) {
	var b strings.Builder
	ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == ts.MkAbs(".") || d.Name() == "before" || d.Name() == "after" {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, fi.Size(), fi.Mode(), fi.ModTime().UnixNano())
		return nil
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o666))
}

// replace is the command replace FILE OLD NEW.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o666))
}

// damage is the command damage PATH AT: it alters byte AT of the first file in PATH, and
// leaves its times, as the decay of a disk does.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: damage PATH AT")
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	done := false
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || done {
			return err
		}
		done = true
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
		err = rewrite(path, func(b []byte) []byte {
			b[at%len(b)] ^= 1
			return b
		})
		return errors.Join(err, os.Chmod(path, fi.Mode()), os.Chtimes(path, fi.ModTime(), fi.ModTime()))
	}))
	if !done {
		ts.Fatalf("%s has no file", args[0])
	}
}

// extract is the command extract FILE PATTERN NAME: it sets a variable to what the group
// in the pattern matches first.
func extract(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: extract FILE PATTERN NAME")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile(args[0]))
	if len(m) != 2 {
		ts.Fatalf("%s does not match %s", args[0], args[1])
	}
	ts.Setenv(args[2], m[1])
}

// past is the command past TIME: it makes all in the cache older by that time.
func past(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: past TIME")
	}
	by, err := time.ParseDuration(args[0])
	ts.Check(err)
	for _, folder := range []string{"blobs", "results"} {
		ts.Check(filepath.WalkDir(filepath.Join(ts.Getenv("BONSAI_CACHE"), folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			fi, err := e.Info()
			if err != nil {
				return err
			}
			at := fi.ModTime().Add(-by)
			return os.Chtimes(path, at, at)
		}))
	}
}
