package evaluate

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"bonsai/kernels"
)

const (
	measureRows   = 4096 // rows of the heads that are held at a time
	measureTokens = 512  // tokens whose logits for these rows are held at a time
)

// measure goes through the vocabulary some rows at a time, so that neither the logits of
// all tokens nor a whole head is ever held, and keeps running sums for each position.
func measure(ctx context.Context, text *windows, sides []*side, threads int, report func(float64, string)) (*sums, error) {
	vocab := sides[0].config.Vocab
	for _, s := range sides {
		if s.config.Vocab != vocab {
			return nil, fmt.Errorf("vocabularies of %d and %d tokens cannot be compared", vocab, s.config.Vocab)
		}
	}
	positions := make([]position, len(text.ids))
	for i := range positions {
		positions[i] = newPosition(text, i)
	}
	for row := 0; row < vocab; row += measureRows {
		if err := step(ctx, report, row, vocab); err != nil {
			return nil, err
		}
		n := min(measureRows, vocab-row)
		if err := addRows(ctx, positions, sides, row, n, threads); err != nil {
			return nil, err
		}
	}
	return total(positions, len(sides))
}

// addRows adds the logits of n tokens of the vocabulary, from row on, to all positions.
func addRows(ctx context.Context, positions []position, sides []*side, row, n, threads int) error {
	heads := make([][]float32, len(sides))
	for i, s := range sides {
		heads[i] = make([]float32, n*s.config.Hidden)
		if err := s.rows(heads[i], row); err != nil {
			return err
		}
	}
	for at := 0; at < len(positions); at += measureTokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		tokens := min(measureTokens, len(positions)-at)
		logits := make([][]float32, len(sides))
		for i, s := range sides {
			width := s.config.Hidden
			x := make([]float32, tokens*width)
			if err := s.hidden.ReadFloats(hiddenName, x, int64(at)*int64(width)); err != nil {
				return err
			}
			logits[i] = make([]float32, tokens*n)
			kernels.SGEMM(logits[i], n, x, width, 1, heads[i], 1, width, tokens, n, width, threads)
		}
		parallel(threads, tokens, func(from, to int) {
			part, e := make([][]float32, len(logits)), make([]float64, n)
			for t := from; t < to; t++ {
				for i := range part {
					part[i] = logits[i][t*n : (t+1)*n]
				}
				positions[at+t].add(part, e, row)
			}
		})
	}
	return nil
}

// A position is where a token is predicted, with running sums over the vocabulary.
type position struct {
	next  int32 // the token that comes; -1 at the end of a window, where nothing is measured
	sides [2]distribution
	cross float64 // Σ exp(a − max a)(a − b) over the logits a of the first side, b of the second
}

// A distribution is what is needed of a softmax over logits z that come in pieces.
type distribution struct {
	max   float64
	sum   float64 // Σ exp(z − max)
	best  int     // the first token of the highest logit
	given float64 // logit of the token that comes
}

func newPosition(text *windows, i int) position {
	p := position{next: -1}
	if (i+1)%text.window != 0 {
		p.next = text.ids[i+1]
	}
	for s := range p.sides {
		p.sides[s].max = math.Inf(-1)
	}
	return p
}

// add adds the logits of each side for the tokens from row on. e is for its own use, as
// long as a side's logits.
func (p *position) add(logits [][]float32, e []float64, row int) {
	if p.next < 0 {
		return
	}
	if len(logits) == 2 {
		p.sides[1].add(e, logits[1], row, int(p.next))
	}
	p.cross *= p.sides[0].add(e, logits[0], row, int(p.next))
	if len(logits) == 2 {
		for i, a := range logits[0] {
			p.cross += e[i] * (float64(a) - float64(logits[1][i]))
		}
	}
}

// add adds the logits z for the tokens from row on, and leaves in e their exponentials,
// less the largest logit so far. It returns what those of before are to be multiplied by,
// if that one is new.
func (d *distribution) add(e []float64, z []float32, row, next int) (shrink float64) {
	high, best := z[0], 0
	for i, v := range z {
		if v > high {
			high, best = v, i
		}
	}
	shrink = 1
	if float64(high) > d.max {
		shrink = exp(d.max - float64(high))
		d.max, d.best = float64(high), row+best
	}
	d.sum *= shrink
	for i, v := range z {
		e[i] = exp(float64(v) - d.max)
		d.sum += e[i]
	}
	if next >= row && next < row+len(z) {
		d.given = float64(z[next-row])
	}
	return shrink
}

// logSum returns log Σ exp(z).
func (d *distribution) logSum() float64 { return d.max + math.Log(d.sum) }

// maxNLL is the largest negative log likelihood whose exponential is finite.
const maxNLL = 709

// total returns the means over positions. The error names the first position whose logits
// are not finite.
func total(positions []position, sides int) (*sums, error) {
	s := &sums{nll: make([]float64, sides)}
	n := 0.0
	for i := range positions {
		p := &positions[i]
		if p.next < 0 {
			continue
		}
		n++
		for k := range sides {
			nll := p.sides[k].logSum() - p.sides[k].given
			if math.IsNaN(nll) || math.IsInf(nll, 0) {
				return nil, fmt.Errorf("logits of token %d are not finite", i)
			}
			s.nll[k] += nll
		}
		a, b := &p.sides[0], &p.sides[1]
		if sides == 2 {
			s.kl += p.cross/a.sum - a.logSum() + b.logSum()
			if a.best == b.best {
				s.top1++
			}
		}
	}
	for k := range s.nll {
		if s.nll[k] /= n; s.nll[k] > maxNLL {
			return nil, fmt.Errorf("mean negative log likelihood of %.4g nats: its perplexity is no finite number", s.nll[k])
		}
	}
	s.kl, s.top1 = s.kl/n, s.top1/n
	return s, nil
}

// parallel cuts 0 to n into that many ranges, GOMAXPROCS if 0, and calls f for all at once.
func parallel(threads, n int, f func(from, to int)) {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	threads = min(threads, n)
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() { f(n*t/threads, n*(t+1)/threads) })
	}
	wg.Wait()
}
