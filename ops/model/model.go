// Package model runs dense decoder models of the llama family (llama, mistral, qwen2, qwen3) one part of one layer at a time.
//
// It holds what a config.json means (Config), which tensors a checkpoint has and which of them share an input vector
// (Tensors, Groups), and the forward pass in float32 as graphs with the weights as arguments (Runner, Layer).
// It does not know files, tokens' text, quantization or caching: weights come from a Source.
// Start at ParseConfig, then NewRunner.
//
// Shapes: a weight is [out, in], row-major; states are [tokens, hidden], the tokens of one sequence side by side.
package model

// A Source gives the weights of a model.
//
// Floats returns the values of the named tensor, row-major, in the shape that Config.Tensors states. The caller
// may change what it gets.
type Source interface {
	Floats(name string) ([]float32, error)
}

// A State says which hidden state of a layer the inputs of a group are computed from.
type State string

// The two states of a layer.
const (
	LayerInput  State = "input"  // x, what enters the layer
	MidResidual State = "middle" // y = x + attention(x), what enters the MLP's norm
)

// A Group is a set of projections that read the same vector, and so share one Hessian.
type Group struct {
	Name    string   // "qkv", "o", "gateup" or "down"
	Tensors []string // the weights' names, in the order they are quantized
	Width   int      // length of the input vector
	From    State    // what Layer.Input computes the vector from
}

// The groups of a layer, in data-flow order, and the two tables outside the layers.
const (
	GroupQKV    = "qkv"
	GroupO      = "o"
	GroupGateUp = "gateup"
	GroupDown   = "down"
	GroupEmbed  = "embed"
	GroupHead   = "head"
)
