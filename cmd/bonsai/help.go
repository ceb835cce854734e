package main

import (
	"context"
	"embed"
	"fmt"
	"strings"
)

//go:embed help/*.txt
var pages embed.FS

// topics returns the names of the pages that are not about a command, and what they
// explain, in the order of help.
func topics() [][2]string {
	return [][2]string{
		{"recipe", "the language, and what each block means"},
		{"method", "how weights become ternary, and which models can"},
		{"formats", "the files that are read and written"},
		{"exit-codes", "what the exit status says"},
	}
}

// runHelp prints a page, or the list of them.
func runHelp(_ context.Context, p *program, w *words) (int, error) {
	if topic := w.word(0); topic != "" && topic != "help" {
		return exitBuilt, p.page(topic)
	}
	return exitBuilt, p.list()
}

// list prints the commands and the topics.
func (p *program) list() error {
	var b strings.Builder
	b.WriteString("bonsai makes language models ternary, by recipe.\n\nusage: bonsai COMMAND key=value…\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.name, c.summary)
	}
	b.WriteString("\nbonsai help COMMAND lists its keys. More pages, by bonsai help TOPIC:\n\n")
	for _, t := range topics() {
		fmt.Fprintf(&b, "  %-10s  %s\n", t[0], t[1])
	}
	b.WriteString("\nTo begin: bonsai build target=gguf recipe=recipes/tiny.hcl\n")
	_, err := p.stdout.Write([]byte(b.String()))
	return err
}

// page prints the page of a command or a topic.
func (p *program) page(name string) error {
	text, err := pages.ReadFile("help/" + name + ".txt")
	if err != nil {
		return misused("no help on %q%s", name, didYouMean(name, pageNames()))
	}
	_, err = p.stdout.Write(text)
	return err
}

func pageNames() (names []string) {
	for _, c := range commands() {
		names = append(names, c.name)
	}
	for _, t := range topics() {
		names = append(names, t[0])
	}
	return names
}
