package rules

import (
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"bonsai/engine"
	"bonsai/ops/evaluate"
	"bonsai/ops/model"
)

// An Evaluation is the value of an evaluation step: a report for each text.
type Evaluation struct{ reports []*engine.Artifact }

// Kind says in a diagnostic what this is.
func (*Evaluation) Kind() string { return "an evaluation" }

// Artifacts returns what a target of the step builds.
func (e *Evaluation) Artifacts() []*engine.Artifact { return e.reports }

type evaluationBlock struct {
	Model   hcl.Expression `hcl:"model"`
	Against hcl.Expression `hcl:"against"`
	Window  int            `hcl:"window,optional"`
	BOS     string         `hcl:"bos,optional"`
	Texts   []textBlock    `hcl:"text,block"`
}

type textBlock struct {
	Name   string         `hcl:"name,label"`
	From   hcl.Expression `hcl:"from"`
	Tokens int            `hcl:"tokens,optional"`
	Join   *string        `hcl:"join,optional"`
	Body   hcl.Body       `hcl:",body"`
	Rest   hcl.Body       `hcl:",remain"`
}

// evaluationRule measures a model beside the one it was made of, on text.
type evaluationRule struct{ settings Settings }

// Schema implements Described.
func (evaluationRule) Schema() Schema {
	return SchemaOf(evaluationBlock{}, "Measures a model beside the one that it was made of: perplexity, divergence, agreement.", map[string]Attribute{
		"model":   {Refers: []string{"gguf", "codes", "endpoints", "checkpoint"}, Doc: "The model to measure."},
		"against": {Refers: []string{"checkpoint"}, Doc: "The original, a folder whose tokenizer reads the texts."},
		"window":  {Absent: "512, or the model's context if that is less", Range: "tokens, from 2 to the model's context", Doc: "How long the windows are that a text is cut into."},
		"bos": {
			Default: strconv.Quote(evaluate.NoBOS), Values: []string{evaluate.NoBOS, evaluate.TextBOS, evaluate.WindowBOS},
			Doc: "Where the token goes that begins a text: nowhere, before the text, or before each window.",
		},
		"text":        {Required: true, Doc: "Measures on one dataset."},
		"text.from":   {Refers: []string{"dataset"}, Doc: "The dataset to measure on."},
		"text.tokens": {Default: "0", Range: "tokens, from 0; 0 takes all", Doc: "How much of the text is used."},
		"text.join":   {Default: `"\n"`, Doc: "What is put between the documents."},
	})
}

// Expand implements Rule.
func (r evaluationRule) Expand(x *Expansion, body hcl.Body, ctx *hcl.EvalContext) (any, hcl.Diagnostics) {
	block, diags := decode[evaluationBlock](body, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	against, more := referenceTo[*Checkpoint](block.Against, ctx, "a checkpoint in a folder, whose tokenizer reads the texts")
	diags = append(diags, more...)
	m, more := referenceTo[scored](block.Model, ctx, "a model: a checkpoint, codes, endpoints or a GGUF file")
	if diags = append(diags, more...); diags.HasErrors() {
		return nil, diags
	}
	diags = append(diags, against.needTokenizer(block.Against.Range())...)
	diags = append(diags, block.check(x, body, m.settings(), against.Config)...)
	texts, more := block.datasets(ctx)
	if diags = append(diags, more...); diags.HasErrors() {
		return nil, diags
	}
	e := &Evaluation{}
	for i, t := range block.Texts {
		s := scoring{x: x, settings: r.settings, original: against, model: m, name: t.Name, window: block.Window}
		e.reports = append(e.reports, s.add(block.protocol(t), texts[i]))
	}
	return e, diags
}

// check returns what is wrong with the block's own settings, and fills in defaults.
func (b *evaluationBlock) check(x *Expansion, body hcl.Body, m, original *model.Config) (diags hcl.Diagnostics) {
	if b.Window == 0 {
		b.Window = min(512, original.Context)
	}
	if b.BOS == "" {
		b.BOS = evaluate.NoBOS
	}
	if b.Window < 2 || b.Window > original.Context {
		diags = append(diags, Mistake(attributeRange(body, "window", x.Range), "Window out of range",
			"A window has from 2 tokens up to the model's context, %d; this is %d.", original.Context, b.Window))
	}
	if b.BOS != evaluate.NoBOS && b.BOS != evaluate.TextBOS && b.BOS != evaluate.WindowBOS {
		diags = append(diags, Mistake(attributeRange(body, "bos", x.Range), "Unknown place for BOS",
			"The token that begins a text is put %q, before the %q or before each %q; this is %q.",
			evaluate.NoBOS, evaluate.TextBOS, evaluate.WindowBOS, b.BOS))
	}
	if m.Vocab != original.Vocab {
		diags = append(diags, Mistake(b.Model.Range(), "Models of different vocabularies",
			"The model has a vocabulary of %d tokens and the original one of %d: they cannot be compared token by token.",
			m.Vocab, original.Vocab))
	}
	if len(b.Texts) == 0 {
		diags = append(diags, Mistake(x.Range, "Evaluation on nothing",
			"An evaluation needs at least one block text %q { from = dataset… }.", "name"))
	}
	return diags
}

// datasets reads the references of the text blocks.
func (b evaluationBlock) datasets(ctx *hcl.EvalContext) (texts []*engine.Artifact, diags hcl.Diagnostics) {
	names := map[string]bool{}
	for _, t := range b.Texts {
		d, more := referenceTo[*Dataset](t.From, ctx, "a dataset")
		diags = append(append(diags, unexpected(t.Rest)...), more...)
		if names[t.Name] {
			diags = append(diags, Mistake(t.From.Range(), "Duplicate text",
				"There are two blocks text %q. Give each a name of its own.", t.Name))
		}
		names[t.Name] = true
		if t.Tokens < 0 || t.Tokens > maxTokens {
			diags = append(diags, Mistake(attributeRange(t.Body, "tokens", t.From.Range()), "Tokens out of range",
				"A text has from 0 to %d tokens, and not %d. Leave tokens out for all of them.", maxTokens, t.Tokens))
		}
		if !diags.HasErrors() {
			texts = append(texts, d.documents)
		}
	}
	return texts, diags
}

func (b evaluationBlock) protocol(t textBlock) evaluate.Tokens {
	join := "\n"
	if t.Join != nil {
		join = *t.Join
	}
	return evaluate.Tokens{Limit: t.Tokens, Window: b.Window, BOS: b.BOS, Join: join}
}

// scoring adds the actions that score one text.
type scoring struct {
	x        *Expansion
	settings Settings
	original *Checkpoint
	model    scored
	name     string
	window   int
}

// add adds the windows of the text, the hidden states of both models, and the report,
// which it returns. The original's side has the same key in every recipe.
func (s scoring) add(protocol evaluate.Tokens, documents *engine.Artifact) *engine.Artifact {
	files := append(s.original.tokenizerFiles(), documents)
	windows := s.x.add(s.name+" tokens", protocol, work{}, files, engine.Output{Size: 4 * int64(protocol.Limit)})[0]
	before := s.hidden("original", windows, s.original, protocol.Limit)
	after := s.hidden("model", windows, s.model, protocol.Limit)

	original, originalFiles := s.original.head()
	m, files := s.model.head()
	in := append([]*engine.Artifact{windows, before, after}, originalFiles...)
	op := evaluate.Compare{Original: original, Model: m}.On(s.settings.Threads)
	first, second := s.original.Config, s.model.settings()
	w := s.settings.work(op.Cost(first, second, protocol.Limit), op.Peak(first, second, protocol.Limit))
	return s.x.add(s.name, op, w, append(in, files...), engine.Output{Size: 1024})[0]
}

// hidden adds the hidden states of a model on windows of tokens.
func (s scoring) hidden(who string, windows *engine.Artifact, m scored, tokens int) *engine.Artifact {
	how, files := m.scored()
	op := evaluate.Hidden{Model: how}.On(s.settings.Engine, s.settings.Threads)
	c := m.settings()
	w := s.settings.work(op.Cost(c, tokens, s.window), op.Peak(c, tokens, s.window, s.settings.threads()))
	out := engine.Output{Size: 4 * int64(tokens) * int64(c.Hidden)}
	return s.x.add(s.name+" "+who, op, w, append([]*engine.Artifact{windows}, files...), out)[0]
}
