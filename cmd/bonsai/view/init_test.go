package view_test

import (
	"bytes"
	"testing"

	"bonsai/cmd/bonsai/view"
)

func TestWriteInit(t *testing.T) {
	const want = `wrote other.hcl

  calibration    8 blocks of 64 tokens
                 (2 tokens for each of the 256 columns of the widest weights,
                 which is the least that there can be; 16 are usual)

  A build makes a file of 2.0 KiB, takes about 3.0 s and 2.0 GiB of memory at most.
  warning: the text is short
  warning: a build needs 2.0 GiB of memory, and 1.0 GiB are available here

  FILE is the text to calibrate on: of the kind that the model will see.
next: bonsai plan target=gguf recipe=other.hcl var.text=FILE
`
	i := view.Init{
		File: "other.hcl", NeedsText: true, Warnings: []string{"the text is short"},
		Choices: []view.Choice{{
			Name: "calibration", What: "8 blocks of 64 tokens",
			Why: "2 tokens for each of the 256 columns of the widest weights, which is the least that there can be; 16 are usual",
		}},
		Bytes: 2048, Seconds: 3, Peak: 2 << 30, Available: 1 << 30,
	}
	var b bytes.Buffer
	if err := view.WriteInit(&b, i, false); err != nil || b.String() != want {
		t.Errorf("WriteInit wrote, with error %v,\n%s\nwant\n%s", err, &b, want)
	}
}
