package cache_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"bonsai/cache"
)

func ExampleDir() {
	path, err := os.MkdirTemp("", "cache")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(path)
	d, err := cache.OpenDir(path, func() time.Time { return time.Unix(1_800_000_000, 0) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}

	key := cache.KeyOf([]byte("op double v1\nin 0 digest ..."))
	_, err = d.Lookup(key)
	fmt.Fprintln(os.Stdout, errors.Is(err, cache.ErrMiss), err)

	w, err := d.Create()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Fprint(w, "bytes")
	out, err := w.Commit()
	if err := errors.Join(err, d.Record(key, cache.Result{Outputs: []cache.Output{out}})); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}

	r, err := d.Lookup(key)
	fmt.Fprintln(os.Stdout, r.Outputs[0].Digest.Short(), r.Outputs[0].Size, err)
	// Output:
	// true result 9f93e591f6ce: no result yet
	// 277089d91c0b 5 <nil>
}
