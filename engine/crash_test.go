package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/engine"
)

// childVar holds the folder that a child process builds in. A test that needs processes
// to kill starts its own binary with it.
const childVar = "BONSAI_ENGINE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVar); dir != "" {
		if err := child(dir); err != nil {
			panic(err)
		}
		return
	}
	m.Run()
}

// A slow op takes a while, and notes in a file that it ran.
type slow struct {
	Seed int
	Size int

	log io.Writer
}

func (o slow) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op slow v1\nset Seed %d\nset Size %d\n", o.Seed, o.Size), nil
}

func (o slow) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, _ func(float64, string)) error {
	fmt.Fprintf(o.log, "run %d\n", o.Seed)
	sum := uint64(o.Seed)
	for _, r := range in {
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		for _, c := range b {
			sum = sum*31 + uint64(c)
		}
	}
	rng := rand.New(rand.NewPCG(sum, 0))
	for range o.Size {
		if _, err := fmt.Fprintf(out[0], "%x\n", rng.Uint64()); err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
	return ctx.Err()
}

// slowGraph is layers, as codes makes them: 3·6+1 actions, of which odd seeds are
// ordinary.
func slowGraph(dir string, log io.Writer) (*engine.Graph, *engine.Artifact) {
	g := &engine.Graph{}
	add := func(seed int, in ...*engine.Artifact) *engine.Artifact {
		return g.Add(engine.Action{
			Step: fmt.Sprint("step ", seed), Op: slow{seed, 10 + seed, log}, In: in,
			Outputs: []engine.Output{{Transient: seed%2 == 0}},
		})[0]
	}
	x := g.Source(filepath.Join(dir, "text"))
	var codes []*engine.Artifact
	for i := range 6 {
		hessian := add(6*i, x)
		codes = append(codes, add(6*i+1, hessian))
		x = add(6*i+2, x, codes[i])
	}
	return g, add(99, codes...)
}

// child builds slowGraph in dir/cache, and prints events to a file, each with one write,
// so that what is written stays written when the process is killed.
func child(dir string) error {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	store, err := cache.OpenDir(filepath.Join(dir, "cache"), time.Now) //nolint:forbidigo // a process of its own, as cmd is
	if err != nil {
		return err
	}
	g, want := slowGraph(dir, log)
	if _, err := os.Stat(filepath.Join(dir, "climb")); err == nil {
		g, want = climbGraph(dir, func(piece int) error {
			time.Sleep(5 * time.Millisecond)
			_, err := fmt.Fprintf(log, "piece %d\n", piece)
			return err
		})
	}
	outs, err := engine.Build(context.Background(), g, []*engine.Artifact{want}, engine.Options{
		Store: store, Sources: store, History: store, Locker: store, Scratch: store, Logs: store, Workers: 2,
		Emit: func(e engine.Event) {
			if e, ok := e.(engine.Finished); ok && !e.Hit {
				fmt.Fprintf(log, "finished %s\n", strings.TrimPrefix(e.Step, "step "))
			}
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "built %s\n", outs[0].Digest)
	return nil
}

// start starts a child process.
func start(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVar+"="+dir)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// crashDir returns a folder with the source that children read.
func crashDir(t *testing.T) string {
	dir := t.TempDir()
	file(t, dir, "text", "the text that it all begins with")
	return dir
}

// readLog returns, for each seed, how often it ran after it had finished, and how often
// it ran at all, and the digest that was built.
func readLog(t *testing.T, dir string) (again, runs map[string]int, built string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	again, runs = make(map[string]int), make(map[string]int)
	finished := make(map[string]bool)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		what, seed, _ := strings.Cut(lines.Text(), " ")
		switch {
		case what == "built" && built != "" && built != seed:
			t.Errorf("built %s, and before %s", seed, built)
		case what == "built":
			built = seed
		case what == "finished":
			finished[seed] = true
		case finished[seed]:
			again[seed]++
			fallthrough
		default:
			runs[seed]++
		}
	}
	return again, runs, built
}

func isOrdinary(seed string) bool { return strings.ContainsAny(seed[len(seed)-1:], "13579") }

// cold builds slowGraph from nothing and returns the digest.
func cold(t *testing.T, dir string) string {
	t.Helper()
	g, want := slowGraph(dir, io.Discard)
	return build(t, g, engine.Options{Store: cache.NewMem(clock)}, want)[0].Digest.String()
}

// Killed at any moments, a build loses no action that was finished, and in the end it
// gives the bytes of one that nobody killed.
func TestKilledAtAnyMoment(t *testing.T) {
	dir := crashDir(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		c := start(t, dir)
		time.Sleep(time.Duration(5+rng.IntN(60)) * time.Millisecond)
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	if err := start(t, dir).Wait(); err != nil {
		t.Fatal(err)
	}
	again, runs, built := readLog(t, dir)
	for seed, n := range again {
		if isOrdinary(seed) {
			t.Errorf("op %s was finished and ran %d times more (%d in all)", seed, n, runs[seed])
		}
	}
	if want := cold(t, dir); built != want {
		t.Errorf("built %q, want %s", built, want)
	}
}

// Builds that run at once, and one that is killed, share what they finish.
func TestProcessesShareOneCache(t *testing.T) {
	dir := crashDir(t)
	victim := start(t, dir)
	others := []*exec.Cmd{start(t, dir), start(t, dir)}
	time.Sleep(30 * time.Millisecond)
	_ = victim.Process.Kill()
	_ = victim.Wait()
	for _, c := range others {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	again, _, built := readLog(t, dir)
	for seed, n := range again {
		if isOrdinary(seed) {
			t.Errorf("op %s was finished and ran %d times more", seed, n)
		}
	}
	if want := cold(t, dir); built != want {
		t.Errorf("built %q, want %s", built, want)
	}
}

// A Dir whose blobs were cut short or deleted by hand is as good as a new one.
func TestDamagedDir(t *testing.T) {
	dir := crashDir(t)
	store, err := cache.OpenDir(filepath.Join(dir, "cache"), clock)
	if err != nil {
		t.Fatal(err)
	}
	g, want := slowGraph(dir, io.Discard)
	opt := engine.Options{Store: store, Sources: store, History: store, Locker: store, Now: clock}
	first := build(t, g, opt, want)
	rng := rand.New(rand.NewPCG(3, 4))
	blobs, err := filepath.Glob(filepath.Join(store.Path(), "blobs", "*", "*"))
	if err != nil || len(blobs) < 7 {
		t.Fatalf("the cache has %d blobs, %v", len(blobs), err)
	}
	for range 10 {
		path := blobs[rng.IntN(len(blobs))]
		_ = os.Chmod(path, 0o666)
		if rng.IntN(2) == 0 {
			_ = os.Truncate(path, 3)
		} else {
			_ = os.Remove(path)
		}
		if again := build(t, g, opt, want); again[0] != first[0] {
			t.Fatalf("built %v, want %v", again[0], first[0])
		}
		if _, err := store.Stat(first[0].Digest); err != nil {
			t.Fatal(err)
		}
	}
}

// climbGraph has one action that goes on where it was: 40 pieces over a source.
func climbGraph(dir string, did func(piece int) error) (*engine.Graph, *engine.Artifact) {
	g := &engine.Graph{}
	return g, g.Add(engine.Action{
		Step: "climb", Op: climber{Pieces: 40, did: did}, In: of(g.Source(filepath.Join(dir, "text"))),
		Outputs: []engine.Output{{}},
	})[0]
}

// Killed at several moments, an action goes on where it was: no piece is done more often
// than it was killed at, and the bytes are those of a run that nobody killed.
func TestKilledActionGoesOn(t *testing.T) {
	dir := crashDir(t)
	file(t, dir, "climb", "")
	kills := 0
	for ; kills < 4; kills++ {
		c := start(t, dir)
		time.Sleep(time.Duration(60+20*kills) * time.Millisecond)
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	if err := start(t, dir).Wait(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	g, want := climbGraph(dir, func(int) error { return nil })
	cold := build(t, g, engine.Options{Store: cache.NewMem(clock)}, want)[0].Digest
	if !strings.Contains(string(log), "built "+cold.String()) {
		t.Errorf("built other bytes than a run that nobody killed: %s", log)
	}
	if n := strings.Count(string(log), "piece "); n < 40 || n > 40+kills {
		t.Errorf("%d pieces were done in %d runs, want 40 and at most one more for each kill", n, kills+1)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "cache", "scratch")); len(left) > 0 {
		t.Errorf("%d scratch folders are left", len(left))
	}
}
