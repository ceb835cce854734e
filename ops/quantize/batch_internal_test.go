package quantize

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
	"bonsai/ops/opstest"
	"bonsai/ops/safetensors"
)

// TestBatchesDoNotChangeABit runs the ops that stream states with batches of one sequence,
// of a few that do not divide the whole, and of all, on one thread and more. The tokens are
// more than are summed in float32.
func TestBatchesDoNotChangeABit(t *testing.T) {
	const sequences, length = 70, 32
	c := modeltest.Tiny("qwen3")
	dir := t.TempDir()
	modeltest.Write(t, dir, c, modeltest.Random(c, 1))
	shard, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	rotation := runInternal(t, Rotation{Block: 128, Widths: c.Widths()})
	x := runInternal(t, Embed{Vocab: c.Vocab, Hidden: c.Hidden}, someTokens(t, sequences, length, c.Vocab), shard)
	var first [][]byte
	for i, on := range []machine{{batch: length}, {batch: 9 * length, threads: 1}, {batch: 1 << 20, threads: 3}} {
		on.engine = mlx.New("")
		files := [][]byte{
			runInternal(t, Hessian{Config: *c, Group: model.GroupQKV, on: on}, x, rotation, shard),
			runInternal(t, Hessian{Config: *c, Group: model.GroupO, on: on}, x, rotation, shard),
			runInternal(t, Hessian{Config: *c, Group: model.GroupDown, on: on}, x, rotation, shard),
			runInternal(t, FinalHessian{Config: *c, on: on}, x, rotation, shard),
			runInternal(t, Inputs{Config: *c, Half: Mid, on: on}, x, rotation, shard),
			runInternal(t, Inputs{Config: *c, Half: Out, on: on}, x, rotation, shard),
		}
		if i == 0 {
			first = files
		}
		for k := range files {
			if !bytes.Equal(files[k], first[k]) {
				t.Errorf("op %d: batches of %d tokens give other bytes than of %d", k, on.batch, length)
			}
		}
	}
}

func someTokens(t *testing.T, sequences, length, vocab int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(2, 0))
	var raw []byte
	for range sequences * length {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(rng.IntN(vocab)))
	}
	var out bytes.Buffer
	spec := safetensors.Spec{Name: "tokens", DType: safetensors.I32, Shape: []int64{int64(sequences), int64(length)}}
	w, err := safetensors.NewWriter(&out, []safetensors.Spec{spec}, nil)
	if err == nil {
		err = w.Write("tokens", raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func runInternal(t *testing.T, o interface {
	Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error
}, in ...[]byte,
) []byte {
	t.Helper()
	var files []*io.SectionReader
	for _, b := range in {
		files = append(files, opstest.Blob(b))
	}
	var out bytes.Buffer
	if err := o.Run(t.Context(), files, []io.Writer{&out}, func(float64, string) {}); err != nil {
		t.Fatalf("%T: %v", o, err)
	}
	return out.Bytes()
}

// TestFactorTimesItselfIsTheDampedHessian.
func TestFactorTimesItselfIsTheDampedHessian(t *testing.T) {
	const n = 130
	h := make([]float32, n*n)
	for i := range n {
		for j := range n {
			h[i*n+j] = float32(math.Pow(0.95, math.Abs(float64(i-j))))
		}
	}
	f, _, err := factorize(h, n, 0.01, 2)
	if err != nil || f.double || math.Abs(f.lambda-0.01) > 1e-12 {
		t.Fatalf("factor %+v, error %v", f, err)
	}
	for i := range n {
		for j := range n {
			var got float64
			for k := max(i, j); k < n; k++ {
				got += float64(f.r[i*n+k]) * float64(f.r[j*n+k])
			}
			want := float64(h[i*n+j])
			if i == j {
				want += 0.01
			}
			if math.Abs(got-want) > 1e-5 {
				t.Fatalf("element %d, %d of RRᵀ is %v, want %v", i, j, got, want)
			}
		}
	}
}
