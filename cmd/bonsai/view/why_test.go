package view_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/view"
	"bonsai/engine/record"
)

func someWhy() view.Why {
	r := someRun()
	seed := []record.Reason{{Kind: "setting", Name: "seed", Old: "1", New: "2", Text: "seed: 1 → 2"}}
	why := view.Why{Asked: "codes.body", Last: &view.WhyRun{Run: r.Head, Since: 2}}
	for layer := range 3 {
		for _, name := range []string{"qkv", "down"} {
			a := view.WhyAction{Step: "codes.body", Name: fmt.Sprintf("layer %d %s", layer, name), Status: "maybe", Seconds: 20}
			a.Causes = []view.WhyCause{{
				Step: "calibration.mix", Reasons: seed, Places: []string{"recipes/x.hcl:41"}, Follows: true,
				Through: []string{"a", "b", "c", "d", "e"},
			}}
			why.Next = append(why.Next, a)
			a.Status, a.Causes = "hit", nil
			why.Last.Actions = append(why.Last.Actions, a)
		}
	}
	changed := record.Reason{
		Kind: "input", Name: "in.txt", Old: "digest 0123456789abcdef", New: "digest fedcba9876543210", Text: "input in.txt changed",
	}
	key := cache.Key{0xab}
	why.Last.Actions = append(why.Last.Actions, view.WhyAction{
		Step: "codes.body", Name: "layer 9 \x1b[2J", Status: "failed", Seconds: 3, Error: "no room", Key: &key, Manifest: "op codes v1\n",
		Causes: []view.WhyCause{{Step: "codes.body", Reasons: []record.Reason{changed}, Places: []string{""}}},
	})
	return why
}

func TestWriteWhy(t *testing.T) {
	var b bytes.Buffer
	opt := view.WhyOptions{Style: view.Style{Width: 80}, Now: someRun().Ended.Add(200 * time.Second)}
	if err := view.WriteWhy(&b, someWhy(), opt); err != nil {
		t.Fatal(err)
	}
	want := `last build  run k3f9ab, 3 min 20 s ago: failed
            2 builds since then found nothing changed
  up to date  codes.body layers 0-2: 6 actions
  failed      codes.body layer 9 �[2J, 3.0 s
              no room
              because input in.txt changed: 0123456789ab → fedcba987654
next build
  may run     codes.body layers 0-2: 6 actions, 2 min 00 s
              because calibration.mix: seed: 1 → 2 (recipes/x.hcl:41)
              through a, b, … 1 more …, d, e
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	checkWidth(t, b.String(), 80)

	b.Reset()
	opt.Manifest = true
	why := someWhy()
	why.Last.Actions, why.Next = why.Last.Actions[6:], nil
	if err := view.WriteWhy(&b, why, opt); err != nil {
		t.Fatal(err)
	}
	manifest := "              key ab" + fmt.Sprintf("%062d", 0) + "\n              op codes v1\nnext build\n"
	if !bytes.HasSuffix(b.Bytes(), []byte(manifest)) {
		t.Errorf("got\n%s\nwant at its end\n%s", b.String(), manifest)
	}
}

func TestWriteWhyOfNothing(t *testing.T) {
	var b bytes.Buffer
	why := view.Why{Next: []view.WhyAction{{Step: "a", Status: view.Unneeded}}}
	if err := view.WriteWhy(&b, why, view.WhyOptions{Style: view.Style{Width: 80}}); err != nil {
		t.Fatal(err)
	}
	want := "last build  no run of this recipe is recorded that had to do with it\nnext build\n  not needed  a\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestWriteWhyAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := view.WriteWhy(&b, someWhy(), view.WhyOptions{JSON: true}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version     int
		Type, Asked string
		Last        struct{ Actions []any }
		Next        []struct{ Causes []struct{ Places []string } }
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != 1 || got.Type != "why" || len(got.Last.Actions) != 7 || got.Next[0].Causes[0].Places[0] != "recipes/x.hcl:41" {
		t.Errorf("%s is %+v", b.String(), got)
	}
}
