package dataset_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/ops/dataset"
	"bonsai/ops/opstest"
)

// run returns what an op makes of a file, and its note.
func run(op dataset.Documents, file []byte) (texts []string, note string, err error) {
	return runInput(op, opstest.Blob(file))
}

func runInput(op dataset.Documents, in *io.SectionReader) (texts []string, note string, err error) {
	var out bytes.Buffer
	report := func(done float64, s string) {
		if done == 1 {
			note = s
		}
	}
	if err := op.Run(context.Background(), []*io.SectionReader{in}, []io.Writer{&out}, report); err != nil {
		return nil, "", err
	}
	for s, err := range dataset.Read(&out) {
		if err != nil {
			return nil, "", err
		}
		texts = append(texts, s)
	}
	return texts, note, nil
}

func TestManifest(t *testing.T) {
	opstest.CheckManifest(t, dataset.Documents{})
}

func TestDocuments(t *testing.T) {
	wiki := " \n = Robert Boulter = \n \n Robert acts . \n \n = = Career = = \n \n In 2000 = a year = he\n \n = A = \n \n B \n"
	for _, c := range []struct {
		what string
		op   dataset.Documents
		file string
		want []string
		note string
	}{
		{
			"a text is one document, kept byte by byte",
			dataset.Documents{Kind: "text"},
			" a\n\n<|endoftext|> & b\r \n",
			[]string{" a\n\n<|endoftext|> & b\r \n"},
			"1 documents of 1 rows; 24 bytes, 24 to 24 a document",
		},
		{
			"line ends become LF and the byte order mark goes",
			dataset.Documents{Kind: "text"},
			"\ufeffa\r\nb\r\n",
			[]string{"a\nb\n"},
			"1 documents of 1 rows; 4 bytes, 4 to 4 a document",
		},
		{
			"a text is cut at separators",
			dataset.Documents{Kind: "text", Separator: "<|endoftext|>"},
			"a\n<|endoftext|>\nbc\n<|endoftext|>\n",
			[]string{"a\n", "\nbc\n"},
			"2 documents of 3 rows, dropped 1 empty; 6 bytes, 2 to 4 a document",
		},
		{
			"separators of lines and documents trimmed",
			dataset.Documents{Kind: "text", Separator: "\n\n", Trim: true},
			" a \r\n\r\n b",
			[]string{"a", "b"},
			"2 documents of 2 rows; 2 bytes, 1 to 1 a document",
		},
		{
			"WikiText is one document",
			dataset.Documents{Kind: "wikitext"},
			wiki,
			[]string{wiki},
			"1 documents of 1 rows; 101 bytes, 101 to 101 a document",
		},
		{
			"WikiText is cut at titles",
			dataset.Documents{Kind: "wikitext", Articles: true},
			wiki,
			[]string{wiki[:strings.Index(wiki, " \n = A =")], " \n = A = \n \n B \n"},
			"2 documents of 2 rows; 101 bytes, 16 to 85 a document",
		},
		{
			"an array of strings",
			dataset.Documents{Kind: "json"},
			`["a", "b\nc", "", 3, null, "\u00e9"]`,
			[]string{"a", "b\nc", "é"},
			"3 documents of 6 rows, dropped 1 empty, dropped 2 that are not text; 6 bytes, 1 to 3 a document",
		},
		{
			"an array of objects",
			dataset.Documents{Kind: "json", Field: "story"},
			`[{"story": "a"}, {"story": ["b"]}, {"x": 1, "story": "c"}]`,
			[]string{"a", "c"},
			"2 documents of 3 rows, dropped 1 that are not text; 2 bytes, 1 to 1 a document",
		},
		{
			"JSON lines with blank lines and no last line end",
			dataset.Documents{Kind: "jsonl"},
			"{\"text\": \"a\"}\r\n\n{\"text\": null}\n{\"text\": \" \"}\n{\"text\": \"x\\r\\ny\"}",
			[]string{"a", "x\ny"},
			"2 documents of 4 rows, dropped 1 empty, dropped 1 that are not text; 4 bytes, 1 to 3 a document",
		},
		{
			"some rows, counted before any is dropped",
			dataset.Documents{Kind: "json", From: 1, N: 3},
			`["a", "b", "", "c", "d", broken`,
			[]string{"b", "c"},
			"2 documents of 3 rows, dropped 1 empty; 2 bytes, 1 to 1 a document",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, note, err := run(c.op, []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) || note != c.note {
				t.Errorf("documents %q, note %q; want %q, %q", got, note, c.want, c.note)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		what string
		op   dataset.Documents
		file string
		want string
	}{
		{"an unknown kind", dataset.Documents{Kind: "csv"}, "a", `kind "csv" is none of text`},
		{"a field of a text", dataset.Documents{Kind: "text", Field: "x"}, "a", `kind text has no field "x"`},
		{"a separator of lines", dataset.Documents{Kind: "jsonl", Separator: "x"}, "a", `kind jsonl has no separator "x"`},
		{"articles of a text", dataset.Documents{Kind: "text", Articles: true}, "a", "kind text has no articles"},
		{"rows before the first", dataset.Documents{Kind: "text", From: -1}, "a", "from row -1 on"},
		{"an empty file", dataset.Documents{Kind: "text"}, "", "no documents: 0 documents of 1 rows, dropped 1 empty"},
		{"an empty array", dataset.Documents{Kind: "json"}, "[]", "no documents"},
		{"no text at all", dataset.Documents{Kind: "json"}, "[1, 2]", "no documents: 0 documents of 2 rows, dropped 2 that are not text"},
		{"more rows than there are", dataset.Documents{Kind: "json", From: 1, N: 2}, `["a", "b"]`, "the file has 2 rows; asked for 2 from row 1 on"},
		{"rows after the last", dataset.Documents{Kind: "json", From: 2}, `["a", "b"]`, "the file has 2 rows; asked for all from row 2 on"},
		{"bytes that are no text", dataset.Documents{Kind: "text"}, "a\nb\xffc", "line 2: byte 0xff is not UTF-8"},
		{"bytes that are no text in a string", dataset.Documents{Kind: "jsonl"}, "{\"text\": \"a\xff\"}", "line 1: "},
		{"a broken line", dataset.Documents{Kind: "jsonl"}, "{\"text\": \"a\"}\n\n{\"text\": \"b\n", "line 3: unexpected end of JSON input"},
		{"a line that is no object", dataset.Documents{Kind: "jsonl"}, "[1]\n", "line 1: a JSON array, not an object"},
		{"a broken element", dataset.Documents{Kind: "json"}, "[\"a\",\n\"b\",\n nil]", "row 2, line 3: "},
		{"an array without an end", dataset.Documents{Kind: "json"}, "[\"a\",\n\"b\"\n", "row 2, line 3: unexpected EOF"},
		{"two arrays", dataset.Documents{Kind: "json"}, `["a"] ["b"]`, "something follows the array"},
		{"an object", dataset.Documents{Kind: "json"}, `{"data": ["a"]}`, "not a JSON array"},
		{"no field of that name", dataset.Documents{Kind: "jsonl"}, "{\"text\": \"a\"}\n{\"content\": \"a\", \"id\": 1}", `line 2: no field "text" among ["content" "id"]`},
		{"a chat", dataset.Documents{Kind: "jsonl"}, `{"messages": []}`, `no field "text" among ["messages"]; these rows are chats`},
		{"another chat", dataset.Documents{Kind: "json"}, `[{"conversations": []}]`, "row 0, line 1: no field \"text\" among [\"conversations\"]; these rows are chats"},
		{"questions and answers", dataset.Documents{Kind: "jsonl"}, `{"question": "a", "answer": "b"}`, "these rows are questions and answers"},
		{"a Parquet file of another kind", dataset.Documents{Kind: "text"}, "PAR1xxxx", "a Parquet file, which is of kind parquet"},
		{"damaged gzip", dataset.Documents{Kind: "text"}, "\x1f\x8b\x08xxxxxxxxxxx", "input: "},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, _, err := run(c.op, []byte(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, _, err = runInput(dataset.Documents{Kind: "jsonl"}, io.NewSectionReader(f, 0, 3))
	if err == nil || !strings.Contains(err.Error(), path+": line 1: ") {
		t.Errorf("error %v, want the path and the line", err)
	}
}

func TestCompressedFilesAreAsPlainOnes(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte("\ufeffa\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	bz := "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x77\xa6\x54\x6b\x00\x00\x02\xc1\x09\x00\x12\x20\x00\x00\x08\x80\x00\xa0\x00\x22\x18\x68\x30\x04\xe8\x18\x5d\xc9\x14\xe1\x42\x41\xde\x99\x51\xac"
	for name, file := range map[string]string{"gzip": z.String(), "bzip2": bz} {
		got, _, err := run(dataset.Documents{Kind: "text"}, []byte(file))
		if err != nil || !slices.Equal(got, []string{"a\n"}) {
			t.Errorf("%s: documents %q, error %v; want [a\\n]", name, got, err)
		}
	}
}

// The forms that the texts of the test models have.
func TestTestData(t *testing.T) {
	for _, c := range []struct {
		file  string
		op    dataset.Documents
		want  int
		first string
	}{
		{"calibration.txt", dataset.Documents{Kind: "text", Separator: "<|endoftext|>"}, 1140, "<|im_start|>user\nWrite a python function"},
		{"v2-gpt4-sample.txt", dataset.Documents{Kind: "text", Separator: "<|endoftext|>", Trim: true}, 5, ""},
		{"heldout-stories.json", dataset.Documents{Kind: "json"}, 100, "Sam and Ben are brothers."},
		{"wiki.test.head.txt", dataset.Documents{Kind: "wikitext"}, 1, " \n = Robert Boulter = \n"},
		{"wiki.test.head.txt", dataset.Documents{Kind: "wikitext", Articles: true}, 9, " \n = Robert Boulter = \n"},
	} {
		b, err := os.ReadFile("../../testdata/texts/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		got, note, err := run(c.op, b)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != c.want || !strings.HasPrefix(got[0], c.first) {
			t.Errorf("%s: %s, the first %.40q; want %d documents, %q", c.file, note, got[0], c.want, c.first)
		}
		if c.op.Kind == "wikitext" && strings.Join(got, "") != string(b) {
			t.Errorf("%s: the articles together are not the file", c.file)
		}
	}
}

func TestRunStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := dataset.Documents{Kind: "json"}.Run(ctx, []*io.SectionReader{opstest.Blob([]byte(`["a"]`))}, []io.Writer{io.Discard}, func(float64, string) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestReadRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"{\"text\": \"a\"}\n{}\n": `documents, line 2: no "text"`,
		"x":                       "documents, line 1: ",
	} {
		var last error
		for _, err := range dataset.Read(strings.NewReader(in)) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), want) {
			t.Errorf("Read(%q): error %v, want %q", in, last, want)
		}
	}
}

// FuzzDocuments checks that no file panics, and that what is written can be read: as many
// documents as the note says, none of them blank.
func FuzzDocuments(f *testing.F) {
	parquet, err := os.ReadFile("testdata/amc23-test.parquet")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(4), "question", parquet)
	f.Add(uint8(0), "<|endoftext|>", []byte("a<|endoftext|>b"))
	f.Add(uint8(1), "", []byte(" \n = A = \n"))
	f.Add(uint8(2), "t", []byte(`["a", {"t": "b"}]`))
	f.Add(uint8(3), "t", []byte("{\"t\": \"b\"}\n"))
	f.Fuzz(func(t *testing.T, kind uint8, word string, file []byte) {
		op := dataset.Documents{Kind: []string{"text", "wikitext", "json", "jsonl", "parquet"}[kind%5]}
		switch op.Kind {
		case "text":
			op.Separator = word
		case "wikitext":
			op.Articles = true
		default:
			op.Field = word
		}
		texts, _, err := run(op, file)
		if err != nil {
			return
		}
		if len(texts) == 0 || slices.ContainsFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }) {
			t.Errorf("documents %q", texts)
		}
	})
}
