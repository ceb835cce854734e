package prism

import (
	"fmt"
	"strings"

	"bonsai/ops/model"
)

// Names of tensors outside the layers.
const (
	embedName = "token_embd.weight"
	headName  = "output.weight"
	freqsName = "rope_freqs.weight"
)

// fileName returns the name in a GGUF of a tensor that model.Config.Tensors lists.
func fileName(t model.Tensor) string {
	switch {
	case t.Name == model.EmbedName:
		return embedName
	case t.Name == model.NormName:
		return "output_norm.weight"
	case t.Layer < 0:
		return headName
	}
	kind, last := splitName(t.Name)
	return fmt.Sprintf("blk.%d.%s.%s", t.Layer, layerNames(kind), last)
}

// splitName takes the name of a layer's tensor apart: what stands after the layer's
// number, and "weight" or "bias".
func splitName(name string) (kind, last string) {
	name = strings.TrimPrefix(name, "model.layers.")
	_, name, _ = strings.Cut(name, ".")
	i := strings.LastIndexByte(name, '.')
	return name[:i], name[i+1:]
}

// layerNames returns the kind in a GGUF of a kind in a checkpoint.
func layerNames(kind string) string {
	switch kind {
	case "input_layernorm":
		return "attn_norm"
	case "self_attn.q_proj":
		return "attn_q"
	case "self_attn.k_proj":
		return "attn_k"
	case "self_attn.v_proj":
		return "attn_v"
	case "self_attn.o_proj":
		return "attn_output"
	case "self_attn.q_norm":
		return "attn_q_norm"
	case "self_attn.k_norm":
		return "attn_k_norm"
	case "post_attention_layernorm":
		return "ffn_norm"
	case "mlp.gate_proj":
		return "ffn_gate"
	case "mlp.up_proj":
		return "ffn_up"
	case "mlp.down_proj":
		return "ffn_down"
	default:
		panic("prism: no name for " + kind) // model.Config lists no other
	}
}

// isInterleaved reports whether the rows of a tensor stand in a GGUF in another order
// than in the checkpoint: in architecture llama, rotary embedding turns neighbouring
// rows of a head, not rows half a head apart, so that q and k are reordered.
func isInterleaved(arch string, t model.Tensor) bool {
	if arch != "llama" || t.Layer < 0 {
		return false
	}
	kind, _ := splitName(t.Name)
	return kind == "self_attn.q_proj" || kind == "self_attn.k_proj"
}

// interleave writes whole heads of src to dst in the order of architecture llama: within
// a head of dim rows, row 2i+t is row t·dim/2+i of the checkpoint.
func interleave[T any](dst, src []T, dim, width int) {
	for head := 0; head < len(src); head += dim * width {
		for row := range dim {
			copy(dst[head+row*width:][:width], src[head+halfSplit(row, dim)*width:])
		}
	}
}

// deinterleave undoes interleave.
func deinterleave[T any](dst, src []T, dim, width int) {
	for head := 0; head < len(src); head += dim * width {
		for row := range dim {
			copy(dst[head+halfSplit(row, dim)*width:][:width], src[head+row*width:])
		}
	}
}

// halfSplit returns the row in the checkpoint of a row of a head in a GGUF.
func halfSplit(row, dim int) int { return row%2*(dim/2) + row/2 }

// interleaved returns the row in a GGUF of a row of a head in the checkpoint.
func interleaved(row, dim int) int { return row%(dim/2)*2 + row/(dim/2) }
