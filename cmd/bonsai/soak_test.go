package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// synthetic is a recipe of 122 actions in layers over real files. The bytes of temp are
// transient; those of coarse stay the same when a source changes, which ends the rebuild.
const synthetic = `
locals { lanes = toset([for i in range(20) : format("%02d", i)]) }

file "in" {
  for_each = local.lanes
  path     = "in-${each.key}.txt"
}
mix "first" {
  for_each = local.lanes
  of       = [file.in[each.key], file.in[format("%02d", (tonumber(each.key) + 7) % 20)]]
  bytes    = 3000
  takes    = "2ms"
}
mix "temp" {
  for_each  = local.lanes
  of        = [mix.first[each.key]]
  transient = true
  bytes     = 200000
}
mix "coarse" {
  for_each = local.lanes
  of       = [mix.first[each.key]]
  text     = each.key
  constant = true
}
mix "second" {
  for_each = local.lanes
  of       = [mix.temp[each.key], mix.first[format("%02d", (tonumber(each.key) + 3) % 20)]]
  bytes    = 50000
  takes    = "1ms"
}
mix "third" {
  for_each = local.lanes
  of       = [mix.second[each.key], mix.coarse[each.key]]
}
mix "fourth" {
  for_each = local.lanes
  of       = [mix.third[each.key], mix.coarse[each.key]]
}
mix "left" {
  of    = mix.fourth
  file  = "left.bin"
  bytes = 100000
}
mix "right" {
  of   = mix.coarse
  file = "right.bin"
}
target "all" {
  steps = [mix.left, mix.right]
}
`

// lanes is how many files the synthetic recipe reads.
const lanes = 20

// newSynthetic writes the synthetic recipe and its files into a folder of its own.
func newSynthetic(t *testing.T) killed {
	t.Helper()
	k := killed{
		program: "toybonsai", dir: t.TempDir(), again: "mix.temp",
		recipe: []string{"recipe=recipe.hcl", "target=all", "workers=4"},
	}
	k.write(t, "recipe.hcl", synthetic)
	for i := range lanes {
		k.write(t, fmt.Sprintf("in-%02d.txt", i), fmt.Sprint("file ", i))
	}
	return k
}

func (k killed) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// cold returns what a build of the same files on an empty cache places.
func (k killed) cold(t *testing.T) map[string]string {
	t.Helper()
	other := newSynthetic(t)
	for i := range lanes {
		name := fmt.Sprintf("in-%02d.txt", i)
		text, err := os.ReadFile(filepath.Join(k.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		other.write(t, name, string(text))
	}
	if !other.build(t, 0).whole {
		t.Fatal("a build on an empty cache does not come to its end")
	}
	return other.placedFiles(t)
}

// soakKills kills so many builds at random moments. After each that comes to its end,
// files change, so that there is always work. No action that a process reported as
// finished may run again, no lock may be left, and every tenth of the finished builds, and
// the last, must give the bytes of a build on an empty cache.
func soakKills(t *testing.T, kills int) {
	t.Helper()
	k, rng := newSynthetic(t), rand.New(rand.NewPCG(5, 6))
	limit := k.build(t, 0).took
	ran := map[string]int{}
	edits, ended, compared, finished := 0, 0, 0, 0
	for killed := 0; killed < kills; {
		for range 1 + rng.IntN(5) {
			edits++
			k.write(t, fmt.Sprintf("in-%02d.txt", rng.IntN(lanes)), fmt.Sprint("edit ", edits))
		}
		for whole := false; !whole && killed < kills; {
			e := k.build(t, 1+time.Duration(rng.Float64()*float64(limit)))
			if whole = e.whole; whole {
				limit = max(limit*3/4, 10*time.Millisecond) // the machine was busy before: kill earlier
			} else {
				limit = limit * 5 / 4
				killed++
			}
			finished += len(e.ran)
			k.checkEnd(t, e, ran)
		}
		k.checkEnd(t, k.build(t, 0), ran)
		if ended++; ended%10 != 0 && killed < kills {
			continue
		}
		compared++
		if !maps.Equal(k.placedFiles(t), k.cold(t)) {
			t.Fatalf("after %d edits and %d kills, the bytes are not those of a build on an empty cache", edits, killed)
		}
	}
	t.Logf("%d kills, %d edits, %d builds ended, %d of them compared, %d actions finished before a kill",
		kills, edits, ended, compared, finished)
}

// checkEnd looks at what one process said. ran counts the runs of each key.
func (k killed) checkEnd(t *testing.T, e ended, ran map[string]int) {
	t.Helper()
	if e.waiting > 0 {
		t.Errorf("a build that is alone waits for a lock")
	}
	for _, key := range e.ran {
		if ran[key]++; ran[key] > 1 {
			t.Errorf("action %.12s ran again, although it had finished", key)
		}
	}
}

func TestKills(t *testing.T) { soakKills(t, 8) }

// soakCrowd starts so many builds at once. Together they run each action once, and all
// come to their end.
func soakCrowd(t *testing.T, builds int) {
	t.Helper()
	alone := newSynthetic(t)
	actions := len(alone.build(t, 0).ran)
	k := newSynthetic(t)
	var wg sync.WaitGroup
	ends := make([]ended, builds)
	for i := range ends {
		wg.Go(func() { ends[i] = k.build(t, 0) })
	}
	wg.Wait()
	ran, waited := map[string]int{}, 0
	for i, e := range ends {
		if !e.whole {
			t.Errorf("build %d did not come to its end", i)
		}
		waited += e.waiting
		for _, key := range e.ran {
			ran[key]++
		}
	}
	for key, n := range ran {
		if n > 1 {
			t.Errorf("action %.12s ran %d times", key, n)
		}
	}
	if len(ran) != actions {
		t.Errorf("%d actions ran, want %d", len(ran), actions)
	}
	if got := k.placedFiles(t); !maps.Equal(got, alone.placedFiles(t)) {
		t.Error("the bytes are not those of a build that is alone")
	}
	t.Logf("%d builds, %d actions, waited %d times", builds, actions, waited)
}

func TestCrowd(t *testing.T) { soakCrowd(t, 12) }
