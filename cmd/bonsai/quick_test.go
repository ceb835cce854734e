package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/rules"
	"bonsai/rules/rulestest"
)

// A quickWorld is a recipe and its surroundings, which the test changes.
type quickWorld struct {
	t   *testing.T
	rng *rand.Rand
	env map[string]string
	at  time.Time
	arg []string // words that say what is built
}

// quickRecipe reads everything that a recipe can depend on.
const quickRecipe = `
variable "salt" { default = "plain" }
locals {
  keys  = toset(["a", "b", "c"])
  extra = fileexists("extra.txt") ? file("extra.txt") : "none"
}
file "in" {
  for_each = local.keys
  path     = "${each.key}.txt"
}
mix "low" {
  for_each = local.keys
  of       = [file.in[each.key]]
  text     = "${var.salt} ${env("QUICK_TEST", "unset")}"
}
mix "between" {
  of        = [mix.low["a"], mix.low["b"]]
  transient = true
  bytes     = 100
}
mix "high" {
  of   = [mix.between, mix.low["c"]]
  text = local.extra
  file = "high.bin"
}
mix "side" { of = [mix.low["c"]] }
target "all" {
  steps = [mix.high]
  out   = "out"
}
`

func newQuickWorld(t *testing.T, seed uint64) *quickWorld {
	w := &quickWorld{t: t, rng: rand.New(rand.NewPCG(seed, 1)), env: map[string]string{}, at: time.Now().Add(time.Hour)}
	t.Chdir(t.TempDir())
	w.write("r/recipe.hcl", quickRecipe)
	w.write("r/a.txt", "a")
	w.write("r/b.txt", "b")
	w.write("r/c.txt", "c")
	w.arg = []string{"recipe=r", "target=all", "cache=cache"}
	return w
}

func (w *quickWorld) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// program is bonsai in this world. Its clock is an hour ahead of that of the file system,
// so that files are old at once; the pauses in edit are longer than a tick.
func (w *quickWorld) program() *program {
	return &program{
		catalogue: func(rules.Settings) rules.Catalogue { return rulestest.Catalogue() },
		lookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		stderr:    io.Discard,
		now:       func() time.Time { return w.at },
		room:      func(string) (free, total int64) { return 0, 0 },
	}
}

// run is bonsai with these words. It returns the exit status and what is printed.
func (w *quickWorld) run(words ...string) (int, []byte) {
	w.at = w.at.Add(10 * time.Second)
	var out bytes.Buffer
	return w.program().run(context.Background(), append(words, w.arg...), &out), out.Bytes()
}

// isQuick reports whether a build would say without the recipe that nothing is to do.
func (w *quickWorld) isQuick() bool {
	w.t.Helper()
	w.at = w.at.Add(10 * time.Second)
	c, err := commandNamed("plan")
	if err != nil {
		w.t.Fatal(err)
	}
	words, err := parseWords(c, w.arg)
	if err != nil {
		w.t.Fatal(err)
	}
	p := w.program()
	plan, _ := p.quickly("plan", words, readCacheArgs(words), cache.OpenReadOnly).find(p)
	return plan != nil
}

// todo returns how many actions run or may run by the full walk, -1 if it fails.
func (w *quickWorld) todo() int {
	w.t.Helper()
	status, out := w.run("plan", "json=true")
	if status != exitBuilt {
		return -1
	}
	var plan struct {
		Totals map[string]struct{ Actions int }
	}
	if err := json.Unmarshal(out, &plan); err != nil {
		w.t.Fatalf("plan %s: %v", out, err)
	}
	return plan.Totals["run"].Actions + plan.Totals["maybe"].Actions
}

// edit changes one thing somewhere, and says what.
func (w *quickWorld) edit() string {
	time.Sleep(12 * time.Millisecond)
	defer time.Sleep(12 * time.Millisecond)
	n := w.rng.IntN(3)
	source := fmt.Sprintf("r/%c.txt", 'a'+rune(n))
	switch w.rng.IntN(20) {
	case 0, 1:
		w.write(source, fmt.Sprint(w.rng.IntN(3)))
		return "write " + source
	case 2:
		if b, err := os.ReadFile(source); err == nil {
			w.write(source, string(b))
		}
		return "touch " + source
	case 3:
		w.write("r/recipe.hcl", quickRecipe+fmt.Sprintf("# %d\n", n))
		return "comment"
	case 4:
		w.write("r/recipe.hcl", quickRecipe+fmt.Sprintf("target \"t%d\" { steps = [mix.side] }\n", n))
		return "declare a target"
	case 5:
		w.write("r/more.hcl", "mix \""+[]string{"side", "more", "most"}[n]+"\" {}\n") // the first is a mistake
		return "add a file to the recipe"
	case 6:
		os.Remove("r/more.hcl")
		return "remove a file of the recipe"
	case 7:
		w.env["QUICK_TEST"] = fmt.Sprint(n)
		return "set QUICK_TEST"
	case 8:
		w.env["BONSAI_VAR_salt"] = fmt.Sprint(n)
		return "set BONSAI_VAR_salt"
	case 9:
		clear(w.env)
		return "clear the environment"
	case 10:
		w.write("r/extra.txt", fmt.Sprint(n))
		return "write extra.txt"
	case 11:
		os.Remove("r/extra.txt")
		return "remove extra.txt"
	case 12:
		w.at = w.at.Add(time.Duration(w.rng.IntN(100)-50) * time.Hour)
		return "set the clock"
	case 13:
		os.Remove("out/high.bin")
		return "remove what was placed"
	default:
		return w.spoil()
	}
}

// filesUnder returns the files in a folder and those below it.
func filesUnder(dir string) (files []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	return files
}

// spoil damages one file of the cache.
func (w *quickWorld) spoil() string {
	files := filesUnder(filepath.Join("cache", []string{"results", "blobs", "blobs", "plans"}[w.rng.IntN(4)]))
	if len(files) == 0 {
		return "nothing"
	}
	path := files[w.rng.IntN(len(files))]
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = os.Chmod(path, 0o666)
	switch w.rng.IntN(4) {
	case 0:
		os.Remove(path)
		return "remove " + path
	case 1:
		w.write(path, string(b[:len(b)/2]))
		return "cut " + path
	case 2:
		w.write(path, string(b)+"x")
		return "lengthen " + path
	default:
		if len(b) > 0 {
			b[w.rng.IntN(len(b))] ^= 1
		}
		w.write(path, string(b))
		return "flip a bit of " + path
	}
}

// TestQuickIsRight edits at random and holds what is said without the recipe against the
// full walk: whenever the quick answer is that nothing is to do, the full one is the same.
func TestQuickIsRight(t *testing.T) {
	checkQuick(t, 1, 120)
}

func checkQuick(t *testing.T, seed uint64, edits int) {
	w := newQuickWorld(t, seed)
	quicks := 0
	for i := range edits {
		what := "nothing"
		if w.rng.IntN(4) > 0 {
			what = w.edit()
		}
		quick, todo := w.isQuick(), w.todo()
		if quick && todo != 0 {
			t.Fatalf("edit %d, %s: the quick answer is that nothing is to do; by the full walk %d actions are", i, what, todo)
		}
		if quick {
			quicks++
		}
		if w.rng.IntN(3) == 0 || todo < 0 {
			continue // several edits before the next build
		}
		w.build(i, what)
	}
	if quicks < edits/10 {
		t.Errorf("the quick answer was given %d times in %d: too seldom to tell that it is right", quicks, edits)
	}
}

// build builds, quickly or not, and then again in a new cache, which must give the same.
func (w *quickWorld) build(i int, what string) {
	w.t.Helper()
	if status, out := w.run("build"); status != exitBuilt {
		w.t.Fatalf("edit %d, %s: build exits with %d\n%s", i, what, status, out)
	}
	got, err := os.ReadFile("out/high.bin")
	if err != nil {
		w.t.Fatal(err)
	}
	if left := w.todo(); left != 0 {
		w.t.Fatalf("edit %d, %s: after the build %d actions are to do", i, what, left)
	}
	warm := w.arg
	defer func() { w.arg = warm }()
	w.arg = []string{"recipe=r", "target=all", "cache=" + w.t.TempDir(), "out=cold"}
	if status, out := w.run("build"); status != exitBuilt {
		w.t.Fatalf("edit %d, %s: build in a new cache exits with %d\n%s", i, what, status, out)
	}
	want, err := os.ReadFile("cold/high.bin")
	if err != nil {
		w.t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		w.t.Fatalf("edit %d, %s: other bytes than in a new cache", i, what)
	}
}

// TestQuickSees changes one thing that matters, and then nothing is up to date quickly.
func TestQuickSees(t *testing.T) {
	damage := func(folder string, change func(b []byte) []byte) func(*quickWorld) {
		return func(w *quickWorld) {
			for _, path := range filesUnder(filepath.Join("cache", folder)) {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				_ = os.Chmod(path, 0o666)
				w.write(path, string(change(b)))
			}
		}
	}
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	remove := func(path string) func(*quickWorld) { return func(*quickWorld) { os.RemoveAll(path) } }
	for name, change := range map[string]func(w *quickWorld){
		"source":             func(w *quickWorld) { w.write("r/a.txt", "b") },
		"source is gone":     remove("r/a.txt"),
		"recipe":             func(w *quickWorld) { w.write("r/recipe.hcl", quickRecipe+"\n") },
		"one more file":      func(w *quickWorld) { w.write("r/more.hcl", `mix "side" {}`) },
		"file that is there": func(w *quickWorld) { w.write("r/extra.txt", "x") },
		"environment":        func(w *quickWorld) { w.env["QUICK_TEST"] = "" },
		"variable":           func(w *quickWorld) { w.env["BONSAI_VAR_salt"] = "x" },
		"word":               func(w *quickWorld) { w.arg = append(w.arg, "var.salt=x") },
		"results are gone":   remove("cache/results"),
		"results are cut":    damage("results", cut),
		"bits of results":    damage("results", flip),
		"blobs are gone":     remove("cache/blobs"),
		"blobs are cut":      damage("blobs", cut),
		"blobs between are cut": damage("blobs", func(b []byte) []byte {
			if high, err := os.ReadFile("out/high.bin"); err != nil || bytes.Equal(b, high) {
				return b
			}
			return cut(b)
		}),
		"plans are gone": remove("cache/plans"),
		"bits of plans":  damage("plans", flip),
		"plans are cut":  damage("plans", cut),
	} {
		t.Run(name, func(t *testing.T) {
			w := newQuickWorld(t, 1)
			w.run("build")
			w.run("build")
			if !w.isQuick() {
				t.Fatal("two builds do not make a third one quick")
			}
			time.Sleep(12 * time.Millisecond)
			change(w)
			if w.isQuick() {
				t.Error("is not seen")
			}
		})
	}
}

// A build after one that had nothing to do needs no recipe, nor does one with other words
// and back again.
func TestQuickIsQuick(t *testing.T) {
	w := newQuickWorld(t, 1)
	again := func(arg ...string) {
		t.Helper()
		w.arg = append([]string{"recipe=r", "cache=cache"}, arg...)
		for range 2 {
			if status, out := w.run("build"); status != exitBuilt {
				t.Fatalf("build exits with %d\n%s", status, out)
			}
		}
		if !w.isQuick() {
			t.Errorf("build %q is not quick after two builds", arg)
		}
	}
	again("target=all")
	again("target=all", "var.salt=other")
	again("target=mix.side")
	for _, arg := range [][]string{{"target=all"}, {"target=all", "var.salt=other"}, {"target=mix.side"}} {
		if w.arg = append([]string{"recipe=r", "cache=cache"}, arg...); !w.isQuick() {
			t.Errorf("build %q is not quick any more after others", arg)
		}
	}
}

// What the last build was is known after a quick one too, for the reasons of the next.
func TestQuickRemembersTheLastBuild(t *testing.T) {
	w := newQuickWorld(t, 1)
	all := w.arg
	other := append([]string{"var.salt=other"}, all...)
	for _, arg := range [][]string{all, all, other, other, all} {
		if w.arg = arg; true {
			w.run("build")
		}
	}
	w.arg = append([]string{"var.salt=third"}, all...)
	_, out := w.run("plan")
	if !bytes.Contains(out, []byte(`"plain unset" → "third unset"`)) {
		t.Errorf("plan after a quick build of another variable:\n%s\nwant the change since that build", out)
	}
}

// Words that ask for more than whether something is to do take the full walk, and so does
// a file that was written just now.
func TestQuickIsNot(t *testing.T) {
	w := newQuickWorld(t, 1)
	w.run("build")
	w.run("build")
	for _, more := range []string{"json=true", "all=true"} {
		words, err := parseWords(command{name: "plan", keys: []string{"json", "all", "recipe", "target", "cache"}}, append(w.arg, more))
		if err != nil {
			t.Fatal(err)
		}
		if name := planName("plan", words); name != "" {
			t.Errorf("with %s the plan is called %s, want none", more, name)
		}
	}
	w.at = time.Now()
	w.write("r/a.txt", "new")
	w.at = w.at.Add(-10 * time.Second)
	w.run("build") // ten seconds later than that: now
	w.at = w.at.Add(-10 * time.Second)
	w.run("build")
	if w.isQuick() {
		t.Errorf("a source that was written within two seconds of the build is trusted")
	}
}
