package compiled

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"bonsai/cache"
)

// magic begins a file; it changes with the form, so that each bonsai reads its own.
const magic = "bonsai plan 2\n"

// errDamaged says that a file is no plan of this form, or not the one that was written.
var errDamaged = errors.New("damaged plan")

// Encode returns the plan as a file: magic, the digest of the rest, and the rest.
func (p *Plan) Encode() []byte {
	w := writer{b: make([]byte, 0, 1024+256*len(p.Reads)+192*len(p.Results))}
	w.b = append(w.b, magic...)
	w.b = append(w.b, make([]byte, len(cache.Digest{}))...)
	head := len(w.b)
	w.text(p.Recipe)
	w.number(len(p.Reads))
	for _, r := range p.Reads {
		w.b = append(w.b, byte(r.Kind))
		w.text(r.Name)
		w.text(r.Saw)
	}
	w.number(len(p.Results))
	for i := range p.Results {
		r := &p.Results[i]
		w.text(r.Step)
		w.text(r.Name)
		w.b = append(w.b, r.Key[:]...)
		w.mark(r.Mark)
		w.number(int(max(0, r.Duration)))
		w.time(r.Evicted)
		w.outputs(r.Outputs)
	}
	w.outputs(p.Wanted)
	w.number(len(p.Places))
	for _, at := range p.Places {
		w.text(at.Folder)
		w.text(at.Name)
		w.text(at.Step)
		w.output(at.Blob)
	}
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(p.Saved))
	w.mark(p.History)
	w.time(p.Touched)
	sum := cache.DigestOf(w.b[head:])
	copy(w.b[len(magic):], sum[:])
	return w.b
}

// Decode reads what Encode wrote, and nothing else.
func Decode(b []byte) (*Plan, error) {
	b, ok := bytes.CutPrefix(b, []byte(magic))
	if sum := (cache.Digest{}); !ok || len(b) < len(sum) || cache.DigestOf(b[len(sum):]) != cache.Digest(b[:len(sum)]) {
		return nil, errDamaged
	}
	r := reader{b: b[len(cache.Digest{}):]}
	r.s = string(r.b)
	p := &Plan{Recipe: r.text()}
	p.Reads = make([]Read, r.number())
	for i := range p.Reads {
		p.Reads[i] = Read{Kind: Kind(r.bytes(1)[0]), Name: r.text(), Saw: r.text()}
	}
	p.Results = make([]Result, r.number())
	for i := range p.Results {
		p.Results[i] = Result{
			Step: r.text(), Name: r.text(), Key: cache.Key(r.bytes(len(cache.Key{}))), Mark: r.mark(),
			Duration: time.Duration(r.size()), Evicted: r.time(), Outputs: r.outputs(),
		}
	}
	p.Wanted = r.outputs()
	p.Places = make([]Place, r.number())
	for i := range p.Places {
		p.Places[i] = Place{r.text(), r.text(), r.text(), r.output()}
	}
	p.Saved = math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
	p.History = r.mark()
	p.Touched = r.time()
	if r.short || len(r.b) > 0 {
		return nil, errDamaged
	}
	return p, nil
}

// A writer appends the parts of a plan.
type writer struct{ b []byte }

func (w *writer) number(n int) { w.b = binary.AppendUvarint(w.b, uint64(n)) }

func (w *writer) text(s string) {
	w.number(len(s))
	w.b = append(w.b, s...)
}

func (w *writer) mark(m cache.Mark) { w.b, _ = m.AppendBinary(w.b) } // it has no error

// time appends a time to the nanosecond, or the zero Time.
func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.number(0)
		return
	}
	w.number(int(t.UnixNano()))
}

func (w *writer) output(o cache.Output) {
	w.b = append(w.b, o.Digest[:]...)
	w.number(int(o.Size))
}

func (w *writer) outputs(list []cache.Output) {
	w.number(len(list))
	for _, o := range list {
		w.output(o)
	}
}

// A reader takes the parts of a plan. What is missing at the end reads as zero.
type reader struct {
	b     []byte
	s     string         // all of it, which texts are parts of
	outs  []cache.Output // what lists of outputs are cut from
	short bool
}

// bytes returns the next n bytes.
func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, min(max(n, 0), cache.MarkSize))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// number returns a number that is at most the number of bytes left, as any count is.
func (r *reader) number() int { return int(min(r.size(), int64(len(r.b)))) }

func (r *reader) size() int64 {
	n, used := binary.Uvarint(r.b)
	if used <= 0 || n > math.MaxInt64 {
		r.short, r.b = true, nil
		return 0
	}
	r.b = r.b[used:]
	return int64(n)
}

func (r *reader) text() string {
	n := r.number()
	at := len(r.s) - len(r.b)
	r.bytes(n)
	return r.s[at : at+n]
}

func (r *reader) mark() cache.Mark { return cache.DecodeMark(r.bytes(cache.MarkSize)) }

func (r *reader) time() time.Time {
	if n := r.size(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (r *reader) output() cache.Output {
	return cache.Output{Digest: cache.Digest(r.bytes(len(cache.Digest{}))), Size: r.size()}
}

// outputs reads a list. The lists share arrays: there is one for nearly every action.
func (r *reader) outputs() []cache.Output {
	const atOnce = 1024
	n := r.number()
	if n > cap(r.outs)-len(r.outs) {
		r.outs = make([]cache.Output, 0, max(n, atOnce))
	}
	first := len(r.outs)
	for range n {
		r.outs = append(r.outs, r.output())
	}
	return r.outs[first:len(r.outs):len(r.outs)]
}
