//go:build unix

package model_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/model/modeltest"
)

// BenchmarkForward runs the layers and the head of the trained test model. On a machine that others use, cpu-µs/tok
// says more than tok/s.
func BenchmarkForward(b *testing.B) {
	c, src := modeltest.Open(b, "../../testdata/models/tiny-qwen3")
	for _, length := range []int{128, 1024} {
		b.Run(fmt.Sprintf("length=%d/procs=%d", length, runtime.GOMAXPROCS(0)), func(b *testing.B) {
			const tokens = 8192
			ids := make([]int32, tokens)
			for i := range ids {
				ids[i] = int32(i * 7919 % c.Vocab)
			}
			r := model.NewRunner(mlx.New("go"), c)
			b.SetBytes(tokens)
			start := cpuMicros(b)
			for b.Loop() {
				if _, err := r.Forward(src, ids, length); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tok/s")
			b.ReportMetric((cpuMicros(b)-start)/float64(tokens*b.N), "cpu-µs/tok")
		})
	}
}

func cpuMicros(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
