package main

import (
	"context"

	"bonsai/cmd/bonsai/view"
	"bonsai/recipes"
	"bonsai/rules"
)

// schemaKeys are the keys of schema alone.
var schemaKeys = []string{"form", "of"}

// runSchema prints what a recipe may hold: all of it, or one block type or function.
func runSchema(_ context.Context, p *program, w *words) (int, error) {
	form := w.choice("form", "bonsai", "json-schema")
	opt := view.SchemaOptions{Style: p.style(w.choice("color", "auto", "never", "always"), p.stdout.w), JSON: w.flag("json")}
	if w.err != nil {
		return 0, w.err
	}
	of := w.choice("of", append([]string{"recipe"}, view.Schemas()...)...)
	if w.err != nil {
		return 0, w.err
	}
	if of != "recipe" {
		return exitBuilt, view.WriteFormSchema(p.stdout, of)
	}
	name, l := w.word(0), recipes.Describe(p.catalogue(rules.Settings{}))
	switch {
	case form == "json-schema" && name != "":
		return 0, misused("form=json-schema is of whole recipes, not of %s", name)
	case form == "json-schema":
		return exitBuilt, view.WriteJSONSchema(p.stdout, l)
	case name == "":
		return exitBuilt, view.WriteLanguage(p.stdout, l, opt)
	}
	if b := l.Block(name); b != nil {
		return exitBuilt, view.WriteBlockType(p.stdout, *b, l.Steps, opt)
	}
	if f := l.Function(name); f != nil {
		return exitBuilt, view.WriteFunction(p.stdout, *f, opt)
	}
	return 0, misused("no block type and no function is called %q%s", name, didYouMean(name, l.Names()))
}
