package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"bonsai/cmd/bonsai/view"
	"bonsai/recipes"
)

// consoleKeys are the keys of console alone.
var consoleKeys = []string{"expr"}

// runConsole evaluates expressions as if they stood in the recipe: that of expr=, else one a
// line of standard input.
func runConsole(ctx context.Context, p *program, w *words) (int, error) {
	a, expr, json := readRecipeArgs(w), w.text("expr", ""), w.flag("json")
	style := p.style(w.choice("color", "auto", "never", "always"), p.stderr)
	if w.err != nil {
		return 0, w.err
	}
	files, opt, err := p.recipeToLookAt(a)
	if err != nil {
		return 0, err
	}
	c, r, diags := recipes.Converse(files, opt)
	if diags.HasErrors() {
		return 0, &view.MistakesError{Diagnostics: diags, Files: r.Files}
	}
	talk := &conversation{p, c, r, json, style, exitBuilt}
	if expr != "" {
		return talk.answer("expr", expr)
	}
	return talk.lines(ctx)
}

// A conversation is expressions and what they come to.
type conversation struct {
	p       *program
	console *recipes.Console
	recipe  *recipes.Recipe
	json    bool
	style   view.Style
	status  int
}

// lines answers every line of standard input. On a terminal it asks for each.
func (c *conversation) lines(ctx context.Context) (int, error) {
	prompt := ""
	if f, ok := c.p.stdin.(*os.File); ok {
		if _, isTerminal := terminal(f); isTerminal {
			prompt = "> "
		}
	}
	in := bufio.NewReader(c.p.stdin)
	for n := 1; ctx.Err() == nil; n++ {
		fmt.Fprint(c.p.stderr, prompt)
		line, err := in.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			if _, failed := c.answer(fmt.Sprintf("line %d", n), text); failed != nil {
				return 0, failed
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("read standard input: %w", err)
		}
	}
	return c.status, ctx.Err()
}

// answer writes what one expression comes to, or what is wrong with it.
func (c *conversation) answer(place, text string) (int, error) {
	v, diags := c.console.Evaluate(place, text)
	if !diags.HasErrors() {
		return c.status, view.WriteValue(c.p.stdout, v, c.json)
	}
	c.status = exitFailed
	m := &view.MistakesError{Diagnostics: diags, Files: c.recipe.Files}
	m.Write(c.p.stderr, c.style)
	return c.status, nil
}
