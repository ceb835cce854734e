package dataset_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"bonsai/ops/dataset"
)

func TestParquetWrittenByArrow(t *testing.T) {
	b, err := os.ReadFile("testdata/amc23-test.parquet")
	if err != nil {
		t.Fatal(err)
	}
	got, note, err := run(dataset.Documents{Kind: "parquet", Field: "question"}, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 40 || !strings.HasPrefix(note, "40 documents of 40 rows; ") {
		t.Errorf("%d documents, note %q; want 40", len(got), note)
	}
	const first = "Cities $A$ and $B$ are $45$ miles apart."
	if !strings.HasPrefix(got[0], first) {
		t.Errorf("the first is %.60q, want %q", got[0], first)
	}
	some, _, err := run(dataset.Documents{Kind: "parquet", Field: "question", From: 38, N: 2}, b)
	if err != nil || !slices.Equal(some, got[38:]) {
		t.Errorf("rows 38 and 39 = %q, error %v; want %q", some, err, got[38:])
	}
	_, _, err = run(dataset.Documents{Kind: "parquet"}, b)
	if err == nil || !strings.Contains(err.Error(), `no column "text" among [`) {
		t.Errorf("error %v, want one that tells the columns", err)
	}
}

// A parquetRow has what files in the wild have beside their text.
type parquetRow struct {
	Text     *string       `parquet:"text,optional"`
	Plain    string        `parquet:"plain,dict"`
	Number   int64         `parquet:"number"`
	List     []string      `parquet:"list"`
	Messages []parquetTurn `parquet:"messages"`
}

type parquetTurn struct {
	Role string `parquet:"role"`
}

// writeParquet writes n rows in pages of a few and row groups of some.
func writeParquet(t *testing.T, n int, options ...parquet.WriterOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&out, append(options, parquet.PageBufferSize(256), parquet.MaxRowsPerRowGroup(100))...)
	for i := range n {
		r := parquetRow{Plain: fmt.Sprint("plain ", i%7), Number: int64(i), List: []string{"x", "y"}, Messages: []parquetTurn{{"user"}}}
		switch i % 5 {
		case 3: // no text
		case 4:
			r.Text = new(string)
		default:
			s := fmt.Sprint("text ", i)
			r.Text = &s
		}
		if _, err := w.Write([]parquetRow{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestParquetPagesGroupsAndCodecs(t *testing.T) {
	for name, option := range map[string]parquet.WriterOption{
		"plain":     parquet.DataPageVersion(2),
		"version 1": parquet.DataPageVersion(1),
		"snappy":    parquet.Compression(&parquet.Snappy),
		"zstd":      parquet.Compression(&parquet.Zstd),
		"gzip":      parquet.Compression(&parquet.Gzip),
		"lz4":       parquet.Compression(&parquet.Lz4Raw),
		"brotli":    parquet.Compression(&parquet.Brotli),
	} {
		b := writeParquet(t, 1003, option)
		got, note, err := run(dataset.Documents{Kind: "parquet"}, b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var want []string
		for i := range 1003 {
			if i%5 < 3 {
				want = append(want, fmt.Sprint("text ", i))
			}
		}
		if !slices.Equal(got, want) || !strings.Contains(note, "dropped 200 empty, dropped 200 that are not text") {
			t.Errorf("%s: %s; want %d documents", name, note, len(want))
		}
		got, _, err = run(dataset.Documents{Kind: "parquet", Field: "plain", From: 998, N: 5}, b)
		if want := []string{"plain 4", "plain 5", "plain 6", "plain 0", "plain 1"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: column plain %q, error %v; want %q", name, got, err, want)
		}
	}
}

func TestParquetRefuses(t *testing.T) {
	b := writeParquet(t, 20)
	for _, c := range []struct {
		field string
		file  []byte
		want  string
	}{
		{"number", b, `column "number" holds int`},
		{"list", b, `column "list" holds lists, not text`},
		{"messages", b, `column "messages" holds lists or records, not text`},
		{"story", b, `no column "story" among ["text" "plain" "number" "list" "messages"]; these rows are chats`},
		{"text", b[:len(b)-20], "input: "},
		{"text", []byte("PAR1"), "input: "},
		{"text", nil, "input: "},
	} {
		_, _, err := run(dataset.Documents{Kind: "parquet", Field: c.field}, c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("field %q of %d bytes: error %v, want %q", c.field, len(c.file), err, c.want)
		}
	}
}

// Every byte of a file may be damaged: the op gives an error or documents, and never panics.
func TestParquetSurvivesDamage(t *testing.T) {
	b := writeParquet(t, 30)
	step := 1
	if testing.Short() {
		step = 17
	}
	for i := 0; i < len(b); i += step {
		damaged := slices.Clone(b)
		damaged[i] ^= 0x55
		_, _, _ = run(dataset.Documents{Kind: "parquet"}, damaged)
	}
}
