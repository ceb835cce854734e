package cache

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"time"

	"bonsai/cache/disk"
)

// A Mark is what tells a file from what it was before, without reading it: that of two
// looks at a file is the same if nobody wrote to it or replaced it between them. The
// zero Mark is that of no file.
type Mark struct{ stamp disk.Stamp }

// MarkSize is the length of an encoded Mark, in bytes.
const MarkSize = 40

// AppendBinary appends the encoded Mark, MarkSize bytes.
func (m Mark) AppendBinary(b []byte) ([]byte, error) {
	s := m.stamp
	for _, v := range []uint64{s.Device, s.Inode, uint64(s.Size), uint64(s.Modified), uint64(s.Changed)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b, nil
}

// DecodeMark returns the Mark that b begins with. It panics if b is too short.
func DecodeMark(b []byte) Mark {
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return Mark{disk.Stamp{
		Device: at(0), Inode: at(1), Size: int64(at(2)), Modified: int64(at(3)), Changed: int64(at(4)),
	}}
}

// MarkOf returns the mark of the regular file at path, or at the end of its links.
func (d *Dir) MarkOf(path string) (Mark, error) {
	st, err := d.disk.StampAt(path)
	return Mark{st}, err
}

// MarkOfResult returns the mark of the file of a result.
func (d *Dir) MarkOfResult(k Key) (Mark, error) { return d.MarkOf(d.resultPath(k)) }

// MarkOfHistory returns the mark of what Last knows, or the zero Mark.
func (d *Dir) MarkOfHistory() Mark {
	m, _ := d.MarkOf(filepath.Join(d.path, historyFile))
	return m
}

// IsOld reports whether the file was last touched so long before t that whatever is
// written to it from t on gives it another mark.
func (m Mark) IsOld(t time.Time) bool { return m != Mark{} && m.stamp.Before(t.Add(-racy)) }

// Unmoved reports whether the file of a result has mark m still, and the blobs of its
// outputs that are there have their sizes. Then Lookup gives what it gave when the file
// had that mark before.
func (d *Dir) Unmoved(k Key, m Mark, outs []Output) bool {
	now, err := d.MarkOfResult(k)
	return err == nil && now == m && d.checkSizes(k, Result{Outputs: outs}) == nil
}

// UsedAt marks a result as used now, as Lookup does, if its mark m says that it was last
// marked too long ago.
func (d *Dir) UsedAt(k Key, m Mark) {
	if !d.frozen && d.now().Sub(time.Unix(0, m.stamp.Modified)).Abs() >= markEvery {
		_ = d.disk.Chtimes(d.resultPath(k), d.now()) // else it is an older one to gc
	}
}

// Gives reports whether Lookup of k gives a result with these outputs.
func (d *Dir) Gives(k Key, outs []Output) bool {
	r, err := d.Lookup(k)
	return err == nil && slices.Equal(r.Outputs, outs)
}

// Now returns the time on the clock of the store.
func (d *Dir) Now() time.Time { return d.now() }
