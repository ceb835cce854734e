package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sampleResult() Result {
	return Result{
		Outputs:    []Output{{Digest: DigestOf(nil), Size: 7}},
		Manifest:   "op sample v1\nset text \"<ä&>\"\n",
		Note:       "45.1 % zeros",
		Backend:    "xla:cuda",
		Started:    time.Date(2026, 11, 30, 22, 31, 5, 123456789, time.UTC),
		Duration:   1500 * time.Millisecond,
		PeakMemory: 1 << 30,
		Version:    "0.1",
		Step:       "codes.body",
		Action:     "layer 0 qkv codes",
		Transient:  true,
		Evicted:    time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC),
	}
}

// goldenResult is format 1. A change that breaks this test needs format 2.
const goldenResult = `{"format":1,"outputs":[{"digest":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":7}],` +
	`"note":"45.1 % zeros","backend":"xla:cuda","version":"0.1","step":"codes.body","action":"layer 0 qkv codes","transient":true,"evicted":"2026-12-01T08:00:00Z","started":"2026-11-30T22:31:05.123456789Z",` +
	`"duration_ns":1500000000,"peak_memory_bytes":1073741824,"manifest":"op sample v1\nset text \"\u003cä\u0026\u003e\"\n"}`

func TestResultFormat(t *testing.T) {
	b, err := json.Marshal(sampleResult())
	if err != nil || string(b) != goldenResult {
		t.Errorf("Marshal = %s, %v\nwant %s", b, err, goldenResult)
	}
	var r Result
	if err := json.Unmarshal([]byte(goldenResult), &r); err != nil || !reflect.DeepEqual(r, sampleResult()) {
		t.Errorf("Unmarshal = %+v, %v", r, err)
	}
}

// Every field comes back, also one that is added to Result and forgotten in its JSON.
func TestResultKeepsEveryField(t *testing.T) {
	full := sampleResult()
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the sample leaves %s empty", v.Type().Field(i).Name)
		}
	}
	b, err := encodeResult(full)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeResult(b); err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("decodes to %+v, %v", got, err)
	}
}

func TestResultIgnoresUnknownFields(t *testing.T) {
	var r Result
	err := json.Unmarshal([]byte(strings.Replace(goldenResult, `"note"`, `"new":[1],"note"`, 1)), &r)
	if err != nil || r.Note != "45.1 % zeros" {
		t.Errorf("Unmarshal = %+v, %v", r, err)
	}
}

func TestResultRefuses(t *testing.T) {
	for _, test := range []struct{ name, old, new string }{
		{"format 2", `"format":1`, `"format":2`},
		{"no format", `"format":1,`, ``},
		{"a negative size", `"size":7`, `"size":-7`},
		{"a short digest", `e3b0`, `e3`},
		{"a digest in upper case", `e3b0`, `E3B0`},
		{"a size with a fraction", `"size":7`, `"size":7.5`},
	} {
		var r Result
		if err := json.Unmarshal([]byte(strings.Replace(goldenResult, test.old, test.new, 1)), &r); err == nil {
			t.Errorf("%s: no error", test.name)
		}
	}
	for name, r := range map[string]Result{
		"a manifest that is not UTF-8": {Manifest: "\xff"},
		"a note that is not UTF-8":     {Note: "\xff"},
		"a year of five digits":        {Started: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if _, err := json.Marshal(r); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFormatErrorIsNotDamage(t *testing.T) {
	var r Result
	err := json.Unmarshal([]byte(`{"format":7,"outputs":{"a":"form of tomorrow"}}`), &r)
	if e, ok := errors.AsType[*FormatError](err); !ok || e.Format != 7 {
		t.Errorf("error %v, want a FormatError of 7", err)
	}
}

// FuzzResult checks that no bytes make decoding panic, and that what decodes survives
// a round trip.
func FuzzResult(f *testing.F) {
	whole, err := encodeResult(sampleResult())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(goldenResult))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte(`{"format":1,"outputs":null,"started":"0001-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"format":1}`))
	f.Add([]byte(`{"format":1,"started":"2026-01-01T00:00:00+23:59","manifest":"\ud800"}`))
	f.Add([]byte(`{"format":1,"started":"0000-01-01T00:00:00+23:59"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Result
		_, _ = decodeResult(b)
		if json.Unmarshal(b, &r) != nil {
			return
		}
		again, err := encodeResult(r)
		if err != nil {
			t.Fatalf("%q decodes to %+v, which does not encode: %v", b, r, err)
		}
		got, err := decodeResult(again)
		if err != nil {
			t.Fatalf("%q does not decode: %v", again, err)
		}
		if third, err := encodeResult(got); err != nil || !bytes.Equal(third, again) {
			t.Errorf("encodes to %q, then to %q, %v", again, third, err)
		}
	})
}
