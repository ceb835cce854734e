package view

import (
	"fmt"
	"io"
)

// A Version says what a build of bonsai is.
type Version struct {
	Bonsai   string `json:"bonsai"`
	Revision string `json:"revision,omitempty"` // of the source
	Modified bool   `json:"modified,omitempty"` // the source had changes beside it
	Go       string `json:"go"`
	System   string `json:"system"`
	Backend  string `json:"backend"` // of the tensor engine, if none is asked for
	Kernels  string `json:"kernels"`
	SIMD     bool   `json:"simd"` // built with GOEXPERIMENT=simd
}

// WriteVersion writes v.
func WriteVersion(w io.Writer, v Version, asJSON bool) error {
	if asJSON {
		return writeJSON(w, headed{"version", v})
	}
	revision := ""
	if v.Revision != "" {
		revision = " (" + v.Revision[:min(12, len(v.Revision))]
		if v.Modified {
			revision += ", modified"
		}
		revision += ")"
	}
	experiment := "off; GOEXPERIMENT=simd turns the fast kernels on"
	if v.SIMD {
		experiment = "on"
	}
	_, err := fmt.Fprintf(w, "bonsai %s%s\ngo       %s %s\nbackend  %s\nkernels  %s\nsimd     %s\n",
		v.Bonsai, revision, v.Go, v.System, v.Backend, v.Kernels, experiment)
	return err
}
