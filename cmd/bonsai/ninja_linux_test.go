package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These benchmarks run ninja and make beside bonsai on the same graph of real files, in
// turns, and print how many times longer bonsai takes. They skip without ninja (Debian:
// ninja-build). A machine that is busy with other things slows all of them alike.
//
//	go test ./cmd/bonsai -run '^$' -bench 'Ninja/n=10000$' -benchtime 20x
//	go test ./cmd/bonsai -run '^$' -bench 'Ninja/n=100000$' -benchtime 5x -timeout 30m

// layers is the depth of the graph: each action reads three of the layer before.
const layers = 100

// steps are the places of the inputs of an action in the layer before, past its own.
var steps = []int{0, 31, 67}

// synthesize writes the graph of n actions into a folder, for each of the tools.
func synthesize(b *testing.B, dir string, n int) {
	b.Helper()
	width := n / layers
	for i := range width {
		writeText(b, filepath.Join(dir, "src", fmt.Sprintf("%d.txt", i)), fmt.Sprintln("source", i))
	}
	writeText(b, filepath.Join(dir, "recipe.hcl"), syntheticRecipe(width))
	var ninja, makefile strings.Builder
	ninja.WriteString("rule run\n  command = $c\n")
	makefile.WriteString("all: " + strings.Join(outputsOf(layers-1, width), " ") + "\n")
	for layer := range layers {
		for i, out := range outputsOf(layer, width) {
			in := []string{fmt.Sprintf("src/%d.txt", i)}
			if layer > 0 {
				in = nil
				for _, s := range steps {
					in = append(in, fmt.Sprintf("out/%d_%d", layer-1, (i*7+s)%width))
				}
			}
			// Files of a few bytes, as the toys write: cat of all would grow threefold each layer.
			command := "head -qc 16 " + strings.Join(in, " ") + " | head -c 48 > " + out
			fmt.Fprintf(&ninja, "build %s: run %s\n  c = %s\n", out, strings.Join(in, " "), command)
			fmt.Fprintf(&makefile, "%s: %s\n\t%s\n", out, strings.Join(in, " "), command)
		}
	}
	writeText(b, filepath.Join(dir, "build.ninja"), ninja.String())
	writeText(b, filepath.Join(dir, "Makefile"), makefile.String())
}

func outputsOf(layer, width int) (names []string) {
	for i := range width {
		names = append(names, fmt.Sprintf("out/%d_%d", layer, i))
	}
	return names
}

// syntheticRecipe returns the graph as a recipe, a block with for_each a layer.
func syntheticRecipe(width int) string {
	var r strings.Builder
	fmt.Fprintf(&r, `locals {
  keys  = toset([for i in range(%[1]d) : tostring(i)])
  below = { for i in range(%[1]d) : tostring(i) => [for s in [%[2]s] : tostring((i * 7 + s) %% %[1]d)] }
}
file "in" {
  for_each = local.keys
  path     = "src/${each.key}.txt"
}
`, width, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(steps)), ", "), "[]"))
	for layer := range layers {
		of := "[file.in[each.key]]"
		if layer > 0 {
			of = fmt.Sprintf("[for k in local.below[each.key] : mix.l%d[k]]", layer-1)
		}
		fmt.Fprintf(&r, "mix \"l%[1]d\" {\n  for_each = local.keys\n  of       = %[2]s\n  text     = \"layer %[1]d\"\n}\n", layer, of)
	}
	fmt.Fprintf(&r, "target \"all\" { steps = [mix.l%d] }\n", layers-1)
	return r.String()
}

func writeText(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		tb.Fatal(err)
	}
}

// A cost is what one run of a program took.
type cost struct {
	wall, cpu time.Duration
	memory    int64 // bytes at most
}

// spent runs a program in a folder.
func spent(b *testing.B, dir string, words ...string) cost {
	b.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "BONSAI_CACHE="+filepath.Join(dir, "cache"))
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %v\n%s", words, err, out.Bytes())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss << 10}
}

// costs are those of several runs.
type costs []cost

// median returns the median of what f says of each run.
func (c costs) median(f func(cost) float64) float64 {
	var all []float64
	for _, one := range c {
		all = append(all, f(one))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func wallOf(c cost) float64 { return c.wall.Seconds() }
func cpuOf(c cost) float64  { return c.cpu.Seconds() }

// String returns the best and the median time, the processor's time, and the memory.
func (c costs) String() string {
	best := slices.MinFunc(c, func(a, b cost) int { return int(a.wall - b.wall) })
	return fmt.Sprintf("best %6.0f ms, median %6.0f ms, processor %6.0f ms, memory %4.0f MB",
		1e3*best.wall.Seconds(), 1e3*c.median(wallOf), 1e3*c.median(cpuOf),
		c.median(func(c cost) float64 { return float64(c.memory) / 1e6 }))
}

// BenchmarkNinja runs builds and plans that have nothing to do beside those of ninja and
// make, and then builds whose recipe has another comment.
func BenchmarkNinja(b *testing.B) {
	if _, err := exec.LookPath("ninja"); err != nil {
		b.Skip("ninja is not installed (Debian: ninja-build): nothing to compare with")
	}
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) { besideNinja(b, n) })
	}
}

func besideNinja(b *testing.B, n int) {
	dir := b.TempDir()
	synthesize(b, dir, n)
	time.Sleep(3 * time.Second) // files younger than two seconds are not trusted
	tools := map[string][]string{
		"ninja": {"ninja"}, "build": {"toybonsai", "build", "target=all"}, "plan": {"toybonsai", "plan", "target=all"},
	}
	first := map[string]cost{"ninja": spent(b, dir, "ninja"), "build": spent(b, dir, tools["build"]...)}
	for name, c := range first {
		b.Logf("first %-6s %s, %.0f actions/s", name, costs{c}, float64(n)/c.wall.Seconds())
	}
	if _, err := exec.LookPath("make"); err == nil {
		tools["make"] = []string{"make", "-rR", "all"}
	}
	time.Sleep(3 * time.Second)
	spent(b, dir, tools["build"]...) // learns the marks of what the first one wrote last
	all := inTurns(b, dir, tools)
	tools["changed"] = tools["build"]
	recipe := filepath.Join(dir, "recipe.hcl")
	text, err := os.ReadFile(recipe)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 5 {
		writeText(b, recipe, fmt.Sprintf("%s# %d\n", text, i))
		all["changed"] = append(all["changed"], spent(b, dir, tools["changed"]...))
	}
	report(b, all, first)
}

// inTurns runs each tool once in each round, five rounds at least.
func inTurns(b *testing.B, dir string, tools map[string][]string) map[string]costs {
	all := map[string]costs{}
	round := func() {
		for name, words := range tools {
			all[name] = append(all[name], spent(b, dir, words...))
		}
	}
	for b.Loop() {
		round()
	}
	for len(all["ninja"]) < 5 {
		round()
	}
	return all
}

// report prints what all took, and the ratios.
func report(b *testing.B, all map[string]costs, first map[string]cost) {
	for name, c := range all {
		b.Logf("%-8s %s", name, c)
	}
	b.ReportMetric(0, "ns/op")
	for _, name := range []string{"build", "plan", "changed"} {
		b.ReportMetric(all[name].median(wallOf)/all["ninja"].median(wallOf), name+"-x-ninja")
		b.ReportMetric(all[name].median(cpuOf)/all["ninja"].median(cpuOf), name+"-cpu-x-ninja")
		b.ReportMetric(float64(slices.MaxFunc(all[name], func(a, b cost) int { return int(a.memory - b.memory) }).memory)/1e6, name+"-MB")
	}
	if c, ok := all["make"]; ok {
		b.ReportMetric(all["build"].median(wallOf)/c.median(wallOf), "build-x-make")
	}
	b.ReportMetric(first["build"].wall.Seconds()/first["ninja"].wall.Seconds(), "first-x-ninja")
	b.ReportMetric(float64(first["build"].memory)/1e6, "first-MB")
}

// BenchmarkLiteral reads a recipe of 10,000 blocks that are written out.
func BenchmarkLiteral(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	var r strings.Builder
	for i := range n {
		fmt.Fprintf(&r, "mix \"m%d\" {\n  of   = [%s]\n  text = \"${lower(\"BLOCK\")} %d\"\n}\n", i, map[bool]string{true: fmt.Sprintf("mix.m%d", i-1)}[i%layers > 0], i)
	}
	writeText(b, filepath.Join(dir, "recipe.hcl"), r.String())
	var all costs
	for b.Loop() {
		all = append(all, spent(b, dir, "toybonsai", "validate"))
	}
	b.Log(all)
}

// BenchmarkVersion starts bonsai beside the smallest programs there are.
func BenchmarkVersion(b *testing.B) {
	dir := b.TempDir()
	all := map[string]costs{}
	for b.Loop() {
		for name, words := range map[string][]string{
			"version": {"toybonsai", "version"}, "help": {"toybonsai", "help"}, "true": {"true"},
		} {
			all[name] = append(all[name], spent(b, dir, words...))
		}
	}
	for name, c := range all {
		b.Logf("%-8s %s", name, c)
		b.ReportMetric(1e3*c.median(wallOf), name+"-ms")
	}
}
