package disk

import (
	"errors"
	"time"
)

// A Stamp is what a file system says of a file without reading it. Any write to the
// file changes it, but one within the same tick of the clock.
type Stamp struct {
	Device, Inode uint64
	Size          int64 // bytes
	Modified      int64 // Unix time in ns
	Changed       int64 // Unix time in ns at which anything but the access time was last changed
}

// errNotFile says that a path leads to a folder, a device or the like.
var errNotFile = errors.New("not a regular file")

// Before reports whether the file was last touched before t.
func (s Stamp) Before(t time.Time) bool { return max(s.Modified, s.Changed) < t.UnixNano() }

// round rounds the times down to whole ticks.
func (s Stamp) round(tick time.Duration) Stamp {
	if tick > 0 {
		s.Modified -= s.Modified % int64(tick)
		s.Changed -= s.Changed % int64(tick)
	}
	return s
}
