// Package kernels holds the loops that run over every weight: Hadamard transforms, ternary
// fits, GPTQ, matrix products, block codecs and half-precision conversions.
//
// It knows slices and lengths, no tensors, files or models. Each loop has a plain reference;
// where speed matters, faster twins stand beside it in a list and the last one that this
// build and CPU support is used. Twins of the transforms and codecs agree bit for bit; those
// of the products differ in rounding only. No result depends on the number of threads.
//
// Kernels panic on wrong lengths: callers check shapes. Start at GPTQ.
package kernels
