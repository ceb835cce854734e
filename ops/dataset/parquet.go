package dataset

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// A parquetColumn is the rows of a column of strings, read page by page.
type parquetColumn struct {
	groups []parquet.RowGroup // not yet begun
	column int
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	batch  []parquet.Value
	left   []parquet.Value // of batch

	rows, total int64
}

// openParquet opens the column of that name.
func openParquet(in *io.SectionReader, name string) (p *parquetColumn, err error) {
	defer recoverParquet(&err)
	f, err := parquet.OpenFile(in, in.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	leaf, err := findColumn(f, name)
	if err != nil {
		return nil, err
	}
	return &parquetColumn{
		groups: f.RowGroups(), column: leaf.ColumnIndex,
		batch: make([]parquet.Value, 256), total: f.NumRows(),
	}, nil
}

// findColumn returns the column that holds one string a row under that name.
func findColumn(f *parquet.File, name string) (parquet.LeafColumn, error) {
	leaf, ok := f.Schema().Lookup(name)
	if !ok {
		var names []string
		for _, field := range f.Schema().Fields() {
			if field.Name() == name {
				return leaf, fmt.Errorf("column %q holds lists or records, not text", name)
			}
			names = append(names, field.Name())
		}
		return leaf, missing("column", name, names)
	}
	if leaf.MaxRepetitionLevel > 0 {
		return leaf, fmt.Errorf("column %q holds lists, not text", name)
	}
	if leaf.Node.Type().Kind() != parquet.ByteArray {
		return leaf, fmt.Errorf("column %q holds %s, not text", name, strings.ToLower(leaf.Node.Type().String()))
	}
	return leaf, nil
}

// recoverParquet makes an error of a panic: the package panics on some damaged files.
func recoverParquet(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged Parquet file: %v", r)
	}
}

func (p *parquetColumn) done() float64 { return float64(p.rows) / float64(max(p.total, 1)) }

func (p *parquetColumn) next() (r row, err error) {
	defer recoverParquet(&err)
	for len(p.left) == 0 {
		if err := p.fill(); errors.Is(err, io.EOF) {
			return row{}, p.end()
		} else if err != nil {
			return row{}, fmt.Errorf("row %d: %w", p.rows, err)
		}
	}
	v := p.left[0]
	p.left = p.left[1:]
	p.rows++
	if v.IsNull() {
		return row{}, nil
	}
	b := v.ByteArray()
	if !utf8.Valid(b) {
		return row{}, fmt.Errorf("row %d: %.40q is not UTF-8", p.rows-1, b)
	}
	return row{string(b), true}, nil
}

// end returns io.EOF if all rows have been read.
func (p *parquetColumn) end() error {
	if p.rows != p.total {
		return fmt.Errorf("damaged Parquet file: %d rows, the footer says %d", p.rows, p.total)
	}
	return io.EOF
}

// fill takes one step towards more values: from the page at hand, the next page or the next
// row group.
func (p *parquetColumn) fill() error {
	switch {
	case p.values != nil:
		n, err := p.values.ReadValues(p.batch)
		p.left = p.batch[:n]
		if n == 0 && err == nil {
			return io.ErrNoProgress
		}
		if n == 0 && errors.Is(err, io.EOF) {
			parquet.Release(p.page)
			p.values, p.page = nil, nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case p.pages != nil:
		page, err := p.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			pages := p.pages
			p.pages = nil
			return pages.Close()
		}
		if err != nil {
			return err
		}
		p.page, p.values = page, page.Values()
		return nil
	case len(p.groups) > 0:
		p.pages = p.groups[0].ColumnChunks()[p.column].Pages()
		p.groups = p.groups[1:]
		return nil
	default:
		return io.EOF
	}
}
