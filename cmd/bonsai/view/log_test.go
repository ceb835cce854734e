package view_test

import (
	"bytes"
	"testing"

	"bonsai/cmd/bonsai/view"
)

func TestWriteLog(t *testing.T) {
	text, none := "one\ntwo \x1b[31m\nthree\n", ""
	logs := func() []view.ActionLog {
		return []view.ActionLog{
			{Step: "codes.body", Name: "layer 0", Run: "k3f9ab", Status: "built", Seconds: 3, Text: &text},
			{Step: "a", Run: "k3f9ab", Status: "failed", Seconds: 1, Error: "no room", Text: &none},
			{Step: "b", Run: "k3f9ab", Status: "failed", Error: "no room"},
		}
	}
	for n, want := range map[int]string{
		0: "== codes.body layer 0: built in 3.0 s by run k3f9ab\none\ntwo �[31m\nthree\n",
		1: "== codes.body layer 0: built in 3.0 s by run k3f9ab\nthree\n",
		2: "== codes.body layer 0: built in 3.0 s by run k3f9ab\ntwo �[31m\nthree\n",
		9: "== codes.body layer 0: built in 3.0 s by run k3f9ab\none\ntwo �[31m\nthree\n",
	} {
		want += "== a: failed after 1.0 s in run k3f9ab\nit said nothing\n== b: failed after 0 ms in run k3f9ab\nno log is kept\nfailed: no room\n"
		var b bytes.Buffer
		if err := view.WriteLog(&b, logs(), view.LogOptions{Tail: n}); err != nil || b.String() != want {
			t.Errorf("tail=%d: %v\n%s\nwant\n%s", n, err, b.String(), want)
		}
	}
	var b bytes.Buffer
	if err := view.WriteLog(&b, logs()[2:], view.LogOptions{JSON: true}); err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"type":"log","actions":[{"step":"b","key":"0000000000000000000000000000000000000000000000000000000000000000","run":"k3f9ab","status":"failed","error":"no room","log":null}]}` + "\n"
	if b.String() != want {
		t.Errorf("got %s want %s", b.String(), want)
	}
}
