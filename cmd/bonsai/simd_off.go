//go:build !goexperiment.simd

package main

// simd tells whether this build has the fast kernels.
const simd = false
