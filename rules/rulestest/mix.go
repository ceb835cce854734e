package rulestest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// A Mix writes a digest of its text and its inputs, and as many bytes as are asked for
// that follow from the digest.
type Mix struct {
	Text     string
	Bytes    int64 // written after the digest
	Constant bool  // the bytes depend on Text alone, whatever the inputs are

	takes time.Duration // it is at least this long at it
	fails string        // it ends with this error
}

// AppendText implements engine.Op.
func (o Mix) AppendText(b []byte) ([]byte, error) {
	return fmt.Appendf(b, "op mix v1\nset Text %q\nset Bytes %d\nset Constant %t\n", o.Text, o.Bytes, o.Constant), nil
}

// pieces is how many times a Mix reports and looks at its context.
const pieces = 10

// Run implements engine.Op.
func (o Mix) Run(ctx context.Context, in []*io.SectionReader, out []io.Writer, report func(float64, string)) error {
	h := sha256.New()
	_, _ = io.WriteString(h, o.Text)
	for i, r := range in {
		if o.Constant {
			break
		}
		fmt.Fprintf(h, "\n%d %d\n", i, r.Size())
		if _, err := io.Copy(h, r); err != nil {
			return err
		}
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	for i := range pieces {
		if err := sleep(ctx, o.takes/pieces); err != nil {
			return err
		}
		report(float64(i+1)/pieces, fmt.Sprintf("piece %d", i+1))
	}
	if o.fails != "" {
		return errors.New(o.fails)
	}
	if _, err := fmt.Fprintf(out[0], "%x\n", sum); err != nil {
		return err
	}
	_, err := io.CopyN(out[0], rand.NewChaCha8(sum), o.Bytes)
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
