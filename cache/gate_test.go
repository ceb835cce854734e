package cache_test

import (
	"fmt"
	"testing"
	"time"

	"bonsai/cache"
)

// A build that begins while a gc drops thousands of blobs does not wait for its end.
func TestHoldBesideALongGC(t *testing.T) {
	d := openDir(t)
	var actions []kept
	for i := range 400 {
		actions = append(actions, kept{fmt.Sprint("a", i), 100, time.Second, 5 * time.Hour})
	}
	keep(t, d, actions...)
	done := make(chan int, 1)
	go func() {
		c, err := d.GC(t.Context(), cache.Limits{Max: 1})
		if err != nil {
			t.Error(err)
		}
		done <- len(c.Dropped)
	}()
	for len(filesOf(t, d, "blobs")) == len(actions) && len(done) == 0 {
		time.Sleep(time.Millisecond)
	}
	release, err := reopen(t, d.Path(), clock).Hold("bonsai build")
	if err != nil {
		t.Fatal(err)
	}
	release()
	select {
	case n := <-done:
		t.Errorf("Hold waited for a gc of %d blobs to end", n)
	default:
		<-done
	}
}
