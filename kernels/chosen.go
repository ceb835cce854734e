package kernels

// Chosen says which twins this build and CPU use, as in "gemm=avx512 fwht=avx2".
func Chosen() string { return "gemm=go fwht=go" }
