//go:build !(goexperiment.simd && amd64)

package kernels

// This build has no vector instructions: the twins in plain Go are the fastest.

func simdTiles32() []impl[tile[float32]] { return nil }

func simdTiles64() []impl[tile[float64]] { return nil }

func simdFWHTs() []impl[fwhtFunc] { return nil }
