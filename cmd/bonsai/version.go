package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"bonsai/cmd/bonsai/view"
	"bonsai/kernels"
)

// version is that of bonsai; recipes state the least they need with requires.
const version = "0.1.0"

// runVersion prints the version and what this build computes with.
func runVersion(_ context.Context, p *program, w *words) (int, error) {
	json := w.flag("json")
	if w.err != nil {
		return 0, w.err
	}
	v := view.Version{
		Bonsai: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Kernels: kernels.Chosen(), SIMD: simd, Backend: "go",
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return exitBuilt, view.WriteVersion(p.stdout, v, json)
}
