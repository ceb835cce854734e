package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A killed is a build that is killed, perhaps, and built again.
type killed struct {
	program string   // bonsai, or toybonsai
	recipe  []string // words that say what is built
	dir     string   // working directory; it gets cache and out
	again   string   // how the addresses of steps begin that may run again: what they make is transient
}

// An ended is what the events of one process tell.
type ended struct {
	ran     []string // keys of the actions that ran to their end, but for those that may run again
	waiting int      // times that it waited for another process
	whole   bool     // it came to its summary
	took    time.Duration
}

// build runs bonsai build and kills it without warning after a while, 0 for never.
func (k killed) build(t *testing.T, after time.Duration) ended {
	t.Helper()
	cmd := exec.Command(k.program, append([]string{"build", "json=true", "cache=cache", "out=out"}, k.recipe...)...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.dir, &stdout, &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	if err != nil && after == 0 {
		t.Fatalf("build: %v\n%s", err, stderr.Bytes())
	}
	end := k.readEvents(t, stdout.Bytes())
	end.took = time.Since(began)
	return end
}

// readEvents reads the events of a process, whose last line may be cut.
func (k killed) readEvents(t *testing.T, text []byte) (e ended) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var event struct {
			Type, Step, Key string
			Hit             bool
		}
		if err := json.Unmarshal(line, &event); err != nil {
			if bytes.HasSuffix(line, []byte("\n")) {
				t.Fatalf("event %q: %v", line, err)
			}
			continue
		}
		switch {
		case event.Type == "summary":
			e.whole = true
		case event.Type == "waiting":
			e.waiting++
		case event.Type == "finished" && !event.Hit && (k.again == "" || !strings.HasPrefix(event.Step, k.again)):
			e.ran = append(e.ran, event.Key)
		}
	}
	return e
}

// placedFiles returns the bytes of what was placed, by name.
func (k killed) placedFiles(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(k.dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".partial") {
			continue // a later build deletes what a killed one left
		}
		b, err := os.ReadFile(filepath.Join(k.dir, "out", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

// checkRestart kills a build at the given moments, one after the other, and lets it
// finish. No action that a process reported as finished may run again, and the files
// must be want.
func checkRestart(t *testing.T, k killed, want map[string]string, moments ...time.Duration) {
	t.Helper()
	k.dir = t.TempDir()
	ran := map[string]int{}
	for i, after := range append(moments, 0) {
		for _, key := range k.build(t, after).ran {
			if ran[key]++; ran[key] > 1 {
				t.Errorf("killed after %v: process %d ran action %.12s again", moments, i, key)
			}
		}
	}
	got := k.placedFiles(t)
	if len(got) != len(want) {
		t.Errorf("killed after %v: placed %d files, want %d", moments, len(got), len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("killed after %v: %s differs from that of a build without interruption", moments, name)
		}
	}
}

// A build that is killed at any moment goes on from there: ten builds, each killed once.
func TestKill(t *testing.T) {
	inputs := t.TempDir()
	model, text := filepath.Join(inputs, "model"), filepath.Join(inputs, "text.txt")
	if err := smallModel(t, model, "qwen3", ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, sampleText(t), 0o666); err != nil {
		t.Fatal(err)
	}
	k := killed{
		program: "bonsai", dir: t.TempDir(),
		recipe: tinyRecipe(t, "var.blocks=4", "var.model="+model, "var.text="+text),
	}
	whole := k.build(t, 0)
	want := k.placedFiles(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 10 {
		after := time.Duration(rng.Float64() * float64(whole.took))
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			checkRestart(t, k, want, after)
		})
	}
}

// tinyRecipe returns the words that build the shipped recipe tiny.
func tinyRecipe(t *testing.T, more ...string) []string {
	t.Helper()
	path, err := filepath.Abs("../../recipes/tiny.hcl")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"recipe=" + path, "target=gguf"}, more...)
}
