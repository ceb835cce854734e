package cache_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bonsai/cache"
)

// roleVar makes the test binary play a role instead of testing.
const roleVar = "BONSAI_CACHE_TEST_ROLE"

// roles are what child processes do. A role prints lines that the test reads, and
// panics when something is wrong.
var roles = map[string]func(args []string){
	"write": roleWrite,
	"lock":  roleLock,
	"count": roleCount,
	"full":  roleFull,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		roles[role](os.Args[1:])
		return
	}
	m.Run()
}

// child returns the command of a process in a role.
func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// start starts a process and returns the lines it prints.
func start(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return bufio.NewScanner(out)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// want is what roleWrite stores in round i: some blobs small, some of many writes.
func want(i int) []byte { return sample(1+i*7919%200_000, strconv.Itoa(i)) }

// roleWrite does all that a build does, round after round, and prints the number of
// each round that is recorded. args: the store, a folder for sources, rounds.
func roleWrite(args []string) {
	d, err := cache.OpenDir(args[0], later(time.Minute))
	must(err)
	rounds, err := strconv.Atoi(args[2])
	must(err)
	for i := range rounds {
		b := want(i)
		src := filepath.Join(args[1], strconv.Itoa(i%20))
		_, err := d.SourceDigest(context.Background(), src)
		must(err)
		w, err := d.Create()
		must(err)
		for p := b; len(p) > 0; p = p[min(len(p), 9000):] {
			_, err := w.Write(p[:min(len(p), 9000)])
			must(err)
		}
		out, err := w.Commit()
		must(err)
		k := cache.KeyOf(fmt.Append(nil, i))
		must(d.Record(k, cache.Result{Outputs: []cache.Output{out}, Manifest: string(want(1)[:1]), Version: "test"}))
		must(d.SetLast(strconv.Itoa(i), k))
		fmt.Fprintln(os.Stdout, i)
	}
}

// sourcesDir makes the sources that roleWrite reads.
func sourcesDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 20 {
		writeFile(t, filepath.Join(dir, strconv.Itoa(i)), fmt.Sprint("source ", i))
	}
	return dir
}

// wantRound fails unless round i is in the store, whole.
func wantRound(t *testing.T, d *cache.Dir, i int) {
	t.Helper()
	k := cache.KeyOf(fmt.Append(nil, i))
	r, err := d.Lookup(k)
	if err != nil || len(r.Outputs) != 1 || r.Outputs[0].Digest != cache.DigestOf(want(i)) {
		t.Errorf("Lookup of round %d = %v, %v", i, r, err)
		return
	}
	if err := d.Verify(r.Outputs[0].Digest); err != nil {
		t.Errorf("round %d: %v", i, err)
	}
	if last, ok := d.Last(strconv.Itoa(i)); last != k || !ok {
		t.Errorf("Last of round %d = %v, %v", i, last, ok)
	}
}

// wantWhole fails unless everything in the store is whole.
func wantWhole(t *testing.T, d *cache.Dir) {
	t.Helper()
	for _, name := range tree(t, d.Path()) {
		dir, base := filepath.Split(name)
		switch {
		case strings.HasPrefix(dir, "blobs/"):
			digest, err := cache.ParseDigest(base)
			if err := errors.Join(err, d.Verify(digest)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case strings.HasPrefix(dir, "results/"):
			k, err := cache.ParseKey(base)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if _, err := d.Lookup(k); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case dir == "quarantine/":
			t.Errorf("%s was found damaged", name)
		}
	}
}

// Whatever a process recorded before kill -9 is there, and nothing half-written is.
func TestKilledWriterLosesNothingRecorded(t *testing.T) {
	path, sources := filepath.Join(t.TempDir(), "cache"), sourcesDir(t)
	total, killed := 0, 0
	for round := range 10 {
		cmd := child(t, "write", path, sources, "100000")
		lines := start(t, cmd)
		var recorded []int
		kill := func() {
			time.AfterFunc(time.Duration(5+13*round)*time.Millisecond, func() { cmd.Process.Kill() })
		}
		if round%2 == 0 {
			kill()
		}
		for lines.Scan() {
			if round%2 == 1 && len(recorded) == 0 {
				kill()
			}
			i, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("the writer says %q", lines.Text())
			}
			recorded = append(recorded, i)
		}
		if cmd.Wait() != nil {
			killed++
		}
		d := reopen(t, path, clock)
		for _, i := range recorded {
			wantRound(t, d, i)
		}
		total += len(recorded)
	}
	if killed != 10 || total == 0 {
		t.Fatalf("%d of 10 writers were killed, after %d rounds: nothing is tested", killed, total)
	}
	d := reopen(t, path, later(25*time.Hour))
	wantWhole(t, d)
	for _, name := range tree(t, path) {
		if strings.HasPrefix(name, "tmp/") || strings.HasPrefix(name, "locks/") {
			t.Errorf("%s is left after a day", name)
		}
	}
	for i := range 20 {
		wantSource(t, d, filepath.Join(sources, strconv.Itoa(i)), fmt.Sprint("source ", i))
	}
}

func TestTwoProcessesWriteTheSame(t *testing.T) {
	path, sources := filepath.Join(t.TempDir(), "cache"), sourcesDir(t)
	const rounds = 40
	var all [3]*bufio.Scanner
	var cmds [3]*exec.Cmd
	for i := range all {
		cmds[i] = child(t, "write", path, sources, strconv.Itoa(rounds))
		all[i] = start(t, cmds[i])
	}
	for i, lines := range all {
		n := 0
		for lines.Scan() {
			n++
		}
		if err := cmds[i].Wait(); err != nil || n != rounds {
			t.Errorf("process %d ended after %d rounds: %v", i, n, err)
		}
	}
	d := reopen(t, path, later(time.Minute))
	for i := range rounds {
		wantRound(t, d, i)
	}
	wantWhole(t, d)
	for i := range 20 {
		if !isKnown(t, d, filepath.Join(sources, strconv.Itoa(i))) {
			t.Errorf("source %d is not known, though each process hashed it", i)
		}
	}
	if left := tree(t, filepath.Join(path, "tmp")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// roleLock holds a key until its input ends. args: the store.
func roleLock(args []string) {
	d, err := cache.OpenDir(args[0], clock)
	must(err)
	ctx := cache.WithPurpose(context.Background(), "codes.body layer 3")
	unlock, err := d.Lock(ctx, cache.KeyOf(nil), nil)
	must(err)
	fmt.Fprintln(os.Stdout, "locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	must(err)
	unlock()
}

// startHolder starts a process that holds the key until release, or kill.
func startHolder(t *testing.T, d *cache.Dir) (cmd *exec.Cmd, release func() error) {
	t.Helper()
	cmd = child(t, "lock", d.Path())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if lines := start(t, cmd); !lines.Scan() {
		t.Fatal("the holder did not lock")
	}
	return cmd, in.Close
}

func TestLockWaitsForAnotherProcess(t *testing.T) {
	for name, end := range map[string]func(cmd *exec.Cmd, release func() error) error{
		"that unlocks":   func(_ *exec.Cmd, release func() error) error { return release() },
		"that is killed": func(cmd *exec.Cmd, _ func() error) error { return cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			d := openDir(t)
			cmd, release := startHolder(t, d)
			var holders []string
			unlock, err := d.Lock(t.Context(), cache.KeyOf(nil), func(holder string) {
				holders = append(holders, holder)
				if err := end(cmd, release); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatalf("Lock: %v", err)
			}
			cmd.Wait()
			pid := fmt.Sprintf("process %d on ", cmd.Process.Pid)
			if len(holders) != 1 || !strings.HasPrefix(holders[0], pid) || !strings.Contains(holders[0], "codes.body layer 3") {
				t.Errorf("waited for %q, want once for %q with its purpose", holders, pid)
			}
			unlock()
			unlock()
			if left := tree(t, filepath.Join(d.Path(), "locks")); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

func TestLockCanBeGivenUp(t *testing.T) {
	d := openDir(t)
	startHolder(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := d.Lock(ctx, cache.KeyOf(nil), func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Lock: error %v, want %v", err, context.Canceled)
	}
	unlock, err := d.Lock(t.Context(), cache.KeyOf([]byte("another key")), func(holder string) {
		t.Errorf("another key waits for %q", holder)
	})
	if err != nil {
		t.Fatalf("Lock of another key: %v", err)
	}
	unlock()
}

// A locker is a Dir or a Mem.
type locker interface {
	Lock(ctx context.Context, k cache.Key, waiting func(string)) (func(), error)
}

// increment adds one to the number in a file, which two at once would spoil.
func increment(ctx context.Context, l locker, path string) error {
	unlock, err := l.Lock(ctx, cache.KeyOf(nil), nil)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o666)
}

// roleCount increments. args: the store, the file, how often.
func roleCount(args []string) {
	d, err := cache.OpenDir(args[0], clock)
	must(err)
	n, err := strconv.Atoi(args[2])
	must(err)
	for range n {
		must(increment(context.Background(), d, args[1]))
	}
}

func TestLockHoldsOneAtATime(t *testing.T) {
	d := openDir(t)
	count := filepath.Join(t.TempDir(), "count")
	const n, others = 25, 2
	for name, l := range map[string]locker{"dir": d, "mem": cache.NewMem(clock)} {
		writeFile(t, count, "0")
		want := 4 * n
		var cmds []*exec.Cmd
		if name == "dir" {
			want += others * n
			for range others {
				cmds = append(cmds, child(t, "count", d.Path(), count, strconv.Itoa(n)))
				start(t, cmds[len(cmds)-1])
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range n {
					if err := increment(t.Context(), l, count); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
		if b, err := os.ReadFile(count); err != nil || string(b) != strconv.Itoa(want) {
			t.Errorf("%s: counted %s, %v; want %d", name, b, err, want)
		}
	}
	if left := tree(t, filepath.Join(d.Path(), "locks")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestMemLockTellsAndGivesUp(t *testing.T) {
	m := cache.NewMem(clock)
	unlock, err := m.Lock(cache.WithPurpose(t.Context(), "codes.body"), cache.KeyOf(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	var holder string
	_, err = m.Lock(ctx, cache.KeyOf(nil), func(h string) { holder = h; cancel() })
	if !errors.Is(err, context.Canceled) || !strings.Contains(holder, "codes.body") {
		t.Errorf("Lock: error %v, waited for %q", err, holder)
	}
}
