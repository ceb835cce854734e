package cache

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// minPrefix is how many hex digits of a key or a digest must be given.
const minPrefix = 4

// Find returns the keys and the digests in the store that begin with prefix, which is at
// least four hex digits, in order. It is an error if prefix is something else.
func (d *Dir) Find(prefix string) (keys []Key, digests []Digest, err error) {
	if len(prefix) < minPrefix || strings.Trim(prefix, "0123456789abcdef") != "" {
		return nil, nil, fmt.Errorf("%q is not the beginning of a key or a digest: at least %d lower-case hex digits", prefix, minPrefix)
	}
	for _, name := range d.named(resultsDir, prefix) {
		if k, err := ParseKey(name); err == nil {
			keys = append(keys, k)
		}
	}
	for _, folder := range []string{blobsDir, listsDir} {
		for _, name := range d.named(folder, prefix) {
			if digest, err := ParseDigest(name); err == nil {
				digests = append(digests, digest)
			}
		}
	}
	slices.SortFunc(digests, func(a, b Digest) int { return slices.Compare(a[:], b[:]) })
	return keys, slices.Compact(digests), nil
}

// named returns the names in a sharded folder that begin with prefix.
func (d *Dir) named(folder, prefix string) (names []string) {
	for _, e := range d.list(filepath.Join(d.path, folder, prefix[:2])) {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// A KeptError says that something is not deleted because it is needed.
type KeptError struct {
	What string // such as "result 0123456789ab"
	By   string // such as "pin release"
}

// Error implements error.
func (e *KeptError) Error() string { return fmt.Sprintf("%s is kept: %s", e.What, e.By) }

// Delete deletes a result for good, with the blobs that no other result names: the next
// build that needs it runs its action. It returns the bytes of those blobs, and a
// *KeptError if a pin or a running build needs it. Pins and leases of s are brought up to
// date.
func (d *Dir) Delete(s *Survey, k Key) (freed int64, err error) {
	i := s.find(k)
	if i < 0 {
		return 0, noResult(k)
	}
	defer d.gate()()
	g := &gc{d: d, s: s}
	if err := g.look(); err != nil {
		return 0, err
	}
	r := &s.Results[i]
	if err := g.keptBy("result "+k.Short(), r.Pins, candidate{StoredBlob: &StoredBlob{Results: []int{i}}, used: r.Used}); err != nil {
		return 0, err
	}
	if err := d.forget(r); err != nil {
		return 0, d.deleteError("result "+k.Short(), err)
	}
	for _, o := range r.Outputs {
		b := s.Blobs[o.Digest]
		if b == nil || len(b.Results) > 1 || len(b.Pins) > 0 || b.lists > 0 || g.held.uses(b.Stored) {
			continue
		}
		c := candidate{StoredBlob: b, digest: o.Digest}
		if err := d.take(c); err != nil {
			return freed, d.deleteError("blob "+o.Digest.Short(), err)
		}
		freed += b.Size + g.dropChunks(c)
		delete(s.Blobs, o.Digest)
	}
	return freed, nil
}

// DeleteBlob drops a blob, as a gc does: results that name it become tombstones. It
// returns a *KeptError if a pin or a running build needs it. Pins and leases of s are
// brought up to date.
func (d *Dir) DeleteBlob(s *Survey, digest Digest) (freed int64, err error) {
	b := s.Blobs[digest]
	if b == nil {
		return 0, noBlob(digest)
	}
	defer d.gate()()
	g := &gc{d: d, s: s}
	if err := g.look(); err != nil {
		return 0, err
	}
	c := g.judge(digest, b)
	if err := g.keptBy("blob "+digest.Short(), b.Pins, c); err != nil {
		return 0, err
	}
	if b.lists > 0 {
		return 0, &KeptError{What: "blob " + digest.Short(), By: "larger blobs that it is a chunk of"}
	}
	if err := g.evict(c); err != nil {
		return 0, d.deleteError("blob "+digest.Short(), err)
	}
	return b.Size + g.dropChunks(c), nil
}

func (g *gc) keptBy(what string, pins []string, c candidate) error {
	if len(pins) > 0 {
		return &KeptError{What: what, By: "pin " + strings.Join(pins, ", ")}
	}
	if g.held.uses(c.used) {
		return &KeptError{What: what, By: "used by " + g.s.Leases[0].String()}
	}
	return nil
}

func (d *Dir) deleteError(what string, err error) error {
	if errors.Is(err, errInUse) {
		return &KeptError{What: what, By: "it was used just now"}
	}
	return d.writeError(err)
}

// find returns the index of a result, or -1.
func (s *Survey) find(k Key) int {
	for i := range s.Results {
		if s.Results[i].Key == k {
			return i
		}
	}
	return -1
}
