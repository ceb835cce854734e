package cache

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// pinFormat is the version of the JSON form of a Pin.
const pinFormat = 1

// pinShelf holds the pins, by name.
const pinShelf Shelf = "pins"

// A Pin keeps results, with their blobs, and blobs by themselves: gc does not drop what
// a pin names.
type Pin struct {
	Name    string    `json:"name"` // as of a file: no slash, no colon, no dot in front
	Note    string    `json:"note"` // of what it is, such as "target gguf of recipes/tiny.hcl"
	At      time.Time `json:"at"`
	Keys    []Key     `json:"keys,omitempty"`
	Digests []Digest  `json:"digests,omitempty"`
}

// Pin keeps p, in place of an earlier one of its name. From when it returns, no gc drops
// what p names.
func (d *Dir) Pin(p Pin) error {
	if d.frozen {
		return d.writeError(ErrReadOnly)
	}
	body, err := json.Marshal(struct {
		Format int `json:"format"`
		Pin
	}{pinFormat, p})
	if err != nil {
		return fmt.Errorf("pin %s: %w", p.Name, err)
	}
	defer d.gate()()
	return d.Keep(pinShelf, p.Name, append(body, checksum(body)...))
}

// Unpin removes a pin. A name that there is none of is an ErrMiss.
func (d *Dir) Unpin(name string) error {
	if _, err := d.Kept(pinShelf, name); errors.Is(err, ErrMiss) {
		return &MissError{What: "pin " + name, Reason: "no such pin"}
	}
	return d.Discard(pinShelf, name)
}

// Pins returns all pins, in order of their names. A pin that cannot be read is an error
// that names it: what it keeps is not known, so nothing may be dropped.
func (d *Dir) Pins() ([]Pin, error) {
	names, err := d.KeptNames(pinShelf)
	if err != nil {
		return nil, err
	}
	var pins []Pin
	for _, name := range names {
		b, err := d.Kept(pinShelf, name)
		if errors.Is(err, ErrMiss) {
			continue // it was removed just now
		}
		p, err := decodePin(name, b, err)
		if err != nil {
			return nil, &PinError{Name: name, Err: err}
		}
		pins = append(pins, p)
	}
	return pins, nil
}

// A PinError is a pin that cannot be read.
type PinError struct {
	Name string
	Err  error
}

// Error implements error.
func (e *PinError) Error() string { return fmt.Sprintf("pin %s: %v", e.Name, e.Err) }

// Unwrap returns why.
func (e *PinError) Unwrap() error { return e.Err }

func decodePin(name string, b []byte, err error) (Pin, error) {
	if err != nil {
		return Pin{}, err
	}
	body, err := checked(b)
	if err != nil {
		return Pin{}, err
	}
	var p struct {
		Format int `json:"format"`
		Pin
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return Pin{}, err
	}
	if p.Format != pinFormat {
		return Pin{}, fmt.Errorf("it has format %d, and this version reads %d", p.Format, pinFormat)
	}
	p.Name = name
	slices.SortFunc(p.Keys, func(a, b Key) int { return slices.Compare(a[:], b[:]) })
	return p.Pin, nil
}
