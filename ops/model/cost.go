package model

// The parts of a forward pass that FLOPs and Peak know besides the groups, whose names stand for Layer.Input.
const (
	PartEmbed  = "embedding" // Runner.Embed
	PartMid    = "mid"       // Layer.Mid
	PartOut    = "out"       // Layer.Out
	PartFinal  = "final"     // Runner.Final
	PartLogits = "logits"    // Head.Logits
)

// ForwardFLOPs returns the floating-point operations of a whole forward pass for one token of a sequence of the given
// length: two for each weight that it meets and for each product of attention. Norms and the like are not counted.
func (c *Config) ForwardFLOPs(length int) float64 {
	sum := c.FLOPs(PartLogits, 0, length)
	for l := range c.Layers {
		sum += c.FLOPs(PartMid, l, length) + c.FLOPs(PartOut, l, length)
	}
	return sum
}

// FLOPs is ForwardFLOPs for one part of one layer, named by a group or Part constant. Parts compute what they need
// from the state they start at, so that their costs overlap.
func (c *Config) FLOPs(part string, layer, length int) float64 {
	q, kv := float64(c.Heads*c.HeadDim), float64(c.KVHeads*c.HeadDim)
	hidden, inner := float64(c.Hidden), float64(c.Intermediate)
	seen := float64(length+1) / 2 // keys that the average query sees
	if w := float64(c.Window(layer)); w > 0 {
		seen = min(seen, w)
	}
	attention := 2*hidden*(q+2*kv) + 4*q*seen
	switch part {
	case GroupO:
		return attention
	case PartMid:
		return attention + 2*q*hidden
	case GroupDown:
		return 4 * hidden * inner
	case PartOut:
		return 6 * hidden * inner
	case PartLogits:
		return 2 * hidden * float64(c.Vocab)
	default:
		return 0
	}
}

// Peak returns about how many bytes a part takes while it runs: the state that goes in and the result, for that many
// tokens in sequences of the given length; its weights, while the last of them is being transposed; and what the
// given number of graph calls hold at once (Engine.Parallel). The same for every layer. Live memory was measured at
// 0.5 to 1.0 times this; Go's collector may let garbage grow to as much again.
func (c *Config) Peak(part string, tokens, length, calls int) int64 {
	const float = 4
	hidden, inner, vocab := int64(c.Hidden), int64(c.Intermediate), int64(c.Vocab)
	q, kv := int64(c.Heads*c.HeadDim), int64(c.KVHeads*c.HeadDim)
	var out, weights, perToken int64 // floats; perToken is what a call holds besides its scores
	switch part {
	case PartEmbed:
		return float * (int64(tokens)*hidden + vocab*hidden)
	case GroupQKV, GroupGateUp, PartFinal:
		out, perToken = hidden, 5*hidden
	case GroupO:
		out, weights, perToken = q, 2*hidden*(q+2*kv), 4*hidden+5*(q+2*kv)
	case PartMid:
		out, weights, perToken = hidden, hidden*(2*(q+2*kv)+q), 5*hidden+5*(q+2*kv)
	case GroupDown:
		out, weights, perToken = inner, 3*hidden*inner, 5*hidden+3*inner
	case PartOut:
		out, weights, perToken = hidden, 4*hidden*inner, 5*hidden+3*inner
	case PartLogits:
		out, weights, perToken = vocab, 2*hidden*vocab, hidden+vocab
	}
	chunk := min(tokens, chunkTokens)
	if part == GroupO || part == PartMid {
		seqs := max(1, chunkTokens/length)
		chunk = min(tokens, seqs*length)
		perToken += 3 * int64(c.Heads*queryBlock(length)) // scores, mask, probabilities of chunk/length blocks of queries
	}
	return float * (int64(tokens)*(hidden+out) + weights + int64(min(calls, (tokens+chunk-1)/chunk)*chunk)*perToken)
}
