package recipes_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/recipes"
	"bonsai/rules"
)

// TestReadsAreReported holds that the language tells of all that it looks at, before it does.
func TestReadsAreReported(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("lib/lib.hcl", `variable "v" { default = "default" }
word "lib" { text = file("../late.txt") }`)
	late := filepath.Join(dir, "late.txt")
	want := map[rules.Read]bool{
		{Kind: rules.FileStat, Name: filepath.Join(dir, "lib")}:            true,
		{Kind: rules.FolderList, Name: filepath.Join(dir, "lib")}:          true,
		{Kind: rules.FileRead, Name: filepath.Join(dir, "lib", "lib.hcl")}: true,
		{Kind: rules.FileRead, Name: late}:                                 true,
		{Kind: rules.FileStat, Name: filepath.Join(dir, "gone.txt")}:       true,
		{Kind: rules.FileStat, Name: filepath.Join(dir, "tiny")}:           true,
		{Kind: rules.EnvRead, Name: "HOME", Value: "here", Set: true}:      true,
		{Kind: rules.EnvRead, Name: "BONSAI_VAR_v"}:                        true,
	}
	text := `include "lib" {}
include "tiny" {}
word "a" { text = "${fileexists("gone.txt")} ${env("HOME")}" }`
	got := map[rules.Read]bool{}
	_, diags := recipes.Load([]recipes.File{{Name: "a.hcl", Bytes: []byte(text)}}, recipes.Options{
		Catalogue: toys(), Dir: dir,
		LookupEnv: func(name string) (string, bool) { return map[string]string{"HOME": "here"}[name], name == "HOME" },
		Saw: func(r rules.Read) {
			if r.Name == late {
				write("late.txt", "there in time") // only if it is told of before it is read
			}
			got[r] = true
		},
	})
	if strings.Contains(diags.Error(), "late.txt") {
		t.Errorf("late.txt was read before it was reported: %v", diags)
	}
	for r := range want {
		if !got[r] {
			t.Errorf("%v %s was looked at and not reported; reported were %v", r.Kind, r.Name, got)
		}
	}
}

// A text without an end, such as a device, is not read into memory.
func TestReadTextIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.hcl")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(f.Truncate(64<<20+1), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recipes.ReadText(path); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("ReadText of a huge file: %v", err)
	}
	if _, _, err := recipes.Read(path); err == nil {
		t.Error("Read of a huge file succeeds")
	}
	if err := os.WriteFile(path, []byte("locals {}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := recipes.ReadText(path); err != nil || string(b) != "locals {}" {
		t.Errorf("ReadText = %q, %v", b, err)
	}
}

func TestByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{"a.hcl": `word "a" { text = "x" }`, "a.hcl.json": `{"word": {"a": {"text": "x"}}}`} {
		r, diags := recipes.Load([]recipes.File{{Name: name, Bytes: []byte("\ufeff" + text)}}, recipes.Options{Catalogue: toys()})
		if diags.HasErrors() || len(r.Steps) != 1 {
			t.Errorf("%s with a mark: %v", name, diags)
		}
	}
}
