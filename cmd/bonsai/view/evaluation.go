package view

import (
	"fmt"
	"io"
	"strings"

	"bonsai/ops/evaluate"
)

// WriteEvaluation writes the scores of a model beside those of the original, and what
// they are means over.
func WriteEvaluation(w io.Writer, model, original string, r *evaluate.Report, opt BuildOptions) error {
	if opt.JSON {
		return writeJSON(w, headed{"evaluation", struct {
			Model    string           `json:"model_path"`
			Original string           `json:"original_path"`
			Report   *evaluate.Report `json:"report"`
		}{model, original, r}})
	}
	var b strings.Builder
	p := opt.palette()
	fmt.Fprintf(&b, "\n%-22s %12s %12s\n", "", "original", "model")
	fmt.Fprintf(&b, "%-22s %12.3f %s\n", "perplexity", r.Original.Perplexity, p.strong.Render(fmt.Sprintf("%12.3f", r.Model.Perplexity)))
	fmt.Fprintf(&b, "%-22s %12.4f %12.4f\n", "nll, nats a token", r.Original.NLL, r.Model.NLL)
	fmt.Fprintf(&b, "%-22s %12s %12.4f\n", "KL to the original", "0", r.KL)
	fmt.Fprintf(&b, "%-22s %12s %11.1f%%\n", "same first choice", "100%", r.Top1*100)
	pr := r.Protocol
	fmt.Fprintf(&b, "over %d positions: %s of %d tokens, BOS %s, text %.12s\n",
		pr.Positions, count(pr.Windows, "window"), pr.Window, pr.BOS, pr.Text)
	fmt.Fprintf(&b, "original %s, model %s\n", original, model)
	_, err := io.WriteString(w, b.String())
	return err
}
