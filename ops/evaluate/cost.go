package evaluate

import (
	"bonsai/ops/model"
)

// Peak returns about the most bytes that Run holds beside mapped files, for that many
// tokens in windows of a length, while the engine runs so many calls at once: the states of
// all tokens that go through the layers together, and a batch in the largest part. The
// config is that of the model, which a Model of one file does not know.
func (h Hidden) Peak(c *model.Config, tokens, length, calls int) int64 {
	batch := max(1, batchTokens/length) * length
	part := max(c.Peak(model.PartMid, batch, length, calls), c.Peak(model.PartOut, batch, length, calls))
	return part + 8*int64(min(tokens, slabTokens))*int64(c.Hidden)
}

// Cost returns the floating-point operations of Run.
func (h Hidden) Cost(c *model.Config, tokens, length int) float64 {
	return float64(tokens) * (c.ForwardFLOPs(length) - c.FLOPs(model.PartLogits, 0, length))
}

// Peak returns about the most bytes that Run holds beside mapped files, for that many
// tokens: rows of both heads, logits of some tokens, and sums for every token.
func (Compare) Peak(original, m *model.Config, tokens int) int64 {
	return measurePeak(original) + measurePeak(m) + 128*int64(tokens)
}

// Cost returns the floating-point operations of Run.
func (Compare) Cost(original, m *model.Config, tokens int) float64 {
	return float64(tokens) * (original.FLOPs(model.PartLogits, 0, 1) + m.FLOPs(model.PartLogits, 0, 1))
}

// measurePeak returns what one side of a comparison holds.
func measurePeak(c *model.Config) int64 {
	rows := int64(min(measureRows, c.Vocab))
	return 4*(rows*int64(c.Hidden)+measureTokens*(rows+int64(c.Hidden))) + 8*rows
}
